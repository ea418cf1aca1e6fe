import type { Command } from 'commander';
import { clusterOrAll } from '#functions/operator/fleet.ts';
import { hearingOf, type Need } from '#functions/operator/needs.ts';
import { type ClusterStatus, type FleetStatus, statusOf } from '#functions/operator/status.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { CliDeps } from './command.ts';
import { EXIT } from './exit-codes.ts';
import {
  type Column,
  type OutputFormat,
  outputOption,
  shownAs,
  spanText,
  tableOf,
  withExamples,
} from './output.ts';
import type { Paint } from './paint.ts';
import { withFleet } from './with-fleet.ts';

/** `taintward status`: how the fleet does, and what needs somebody. */
export function addStatusCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('status')
    .description('shows how clusters do and what needs you; ends with 2 when something does')
    .argument('[cluster]', 'its name (default: all clusters)')
    .addOption(outputOption());
  withExamples(command, 'taintward status', 'taintward status prod -o yaml').action(
    (name: string | undefined) =>
      withFleet<{ output: OutputFormat }>(command, deps, async (fleet, { output }) => {
        const status = await statusOf(fleet, await clusterOrAll(name, fleet), deps);
        deps.print(
          shownAs(output, {
            data: () => statusJson(status),
            text: (wide) => statusText(status, wide, deps.paint),
          }),
        );
        if (status.needs.length > 0) deps.exitWith(EXIT.needsYou);
      }),
  );
}

function statusText(status: FleetStatus, wide: boolean, paint: Paint): string {
  const { clusters, where, versions, deadLetters, backlog, unknown, needs, at } = status;
  const table =
    clusters.length === 0
      ? 'No cluster is managed.\n'
      : tableOf(clusters, columnsAt(at, paint), { wide, paint });
  const facts: readonly (readonly [string, string])[] = [
    ['Fleet', where],
    [
      'Versions',
      Object.entries(versions)
        .map(([of, version]) => `${of} ${version}`)
        .join(', '),
    ],
    ['Dead letters', deadLetters ? countsText(deadLetters) : 'unknown'],
    ['Backlog', backlog ? countsText(backlog) : 'unknown'],
    ...unknown.map((why) => ['Unknown', why] as const),
  ];
  const lines = facts.map(([name, text]) => `${`${name}:`.padEnd(14)} ${text}\n`).join('');
  const found =
    needs.length === 0
      ? `${paint('green', 'Nothing needs you.')}\n`
      : `${paint('bold', 'Needs you')}\n${needs.map((need) => `  ${paint('red', '!')} ${needText(need)}\n`).join('')}`;
  return `${table}\n${lines}\n${found}`;
}

const needText = ({ cluster, text, remedy }: Need): string =>
  [...(cluster === undefined ? [] : [`${cluster}:`]), text, ...(remedy === undefined ? [] : [remedy])].join(
    ' ',
  );

const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([queue, count]) => `${queue} ${count}`)
    .join(', ') || 'none';

function columnsAt(at: EpochMs, paint: Paint): readonly Column<ClusterStatus>[] {
  const count = (value: number | undefined) => (value === undefined ? '?' : `${value}`);
  const bad = (text: string, isBad: boolean) => (isBad && text !== '' ? paint('red', text) : text);
  return [
    { head: 'CLUSTER', of: ({ cluster }) => cluster },
    { head: 'MODE', of: (each) => modeText(each) },
    { head: 'BUILT-IN', of: ({ builtIn }) => bad(builtIn?.state ?? '?', builtIn?.state === 'on') },
    {
      head: 'HEARD',
      of: ({ heardAt, lagMs = 0 }) =>
        heardAt === undefined
          ? bad('never', true)
          : bad(`${spanText(lagMs)} ago`, hearingOf(heardAt, at) !== 'live'),
    },
    { head: 'NODES', of: ({ nodes }) => count(nodes) },
    { head: 'TAINTED', of: ({ tainted }) => count(tainted) },
    { head: 'PENDING', of: ({ pending }) => count(pending) },
    { head: 'HELD', of: ({ held }) => count(held) },
    { head: 'STUCK', of: ({ stuck = 0, gaveUp = 0 }) => bad(`${stuck + gaveUp}`, stuck + gaveUp > 0) },
    { head: 'LATE', of: ({ lateMs = 0 }) => (lateMs < 1_000 ? '' : spanText(lateMs)) },
    { head: 'NEXT', of: ({ nextAt }) => (nextAt === undefined ? '' : `in ${spanText(nextAt - at)}`) },
    {
      head: 'GUARD',
      of: ({ trips = [] }) => bad(trips.map(({ scope, zone }) => zone ?? scope).join(', '), true),
    },
    { head: 'STOP', of: ({ stop }) => (stop ? bad(stop.who, true) : '') },
    { head: 'HOLDER', of: ({ holder = '' }) => holder, wide: true },
    { head: 'RELAY', of: ({ service }) => service?.state ?? '', wide: true },
    { head: 'DOWN', of: ({ service }) => (service ? `${service.down}` : ''), wide: true },
    { head: 'KUBERNETES', of: ({ kubernetes = '' }) => kubernetes, wide: true },
    { head: 'POLICY', of: ({ policyRevision = 0 }) => `${policyRevision}`, wide: true },
    { head: 'EVIDENCE', of: ({ builtIn }) => builtIn?.evidence ?? '', wide: true },
  ];
}

function modeText({ mode, pausedUntil, error }: ClusterStatus): string {
  if (error !== undefined) return 'unreadable';
  return pausedUntil === undefined ? (mode ?? '?') : `${mode} until ${timeText(pausedUntil)}`;
}

/** For programs. */
function statusJson({ at, clusters, stop, needs, ...status }: FleetStatus): object {
  return {
    at: timeText(at),
    ...status,
    needs: needs.map(({ since, ...need }) => ({ ...need, ...momentsJson({ since }) })),
    ...(stop ? { stop: actJson(stop) } : {}),
    clusters: clusters.map(({ heardAt, nextAt, pausedUntil, trips, stop: own, service, ...rest }) => ({
      ...rest,
      ...momentsJson({ heardAt, nextAt, pausedUntil }),
      ...(service
        ? { service: { ...service, ...momentsJson({ heardAt: service.heardAt, since: service.since }) } }
        : {}),
      ...(trips ? { trips: trips.map((trip) => ({ ...trip, trippedAt: timeText(trip.trippedAt) })) } : {}),
      ...(own ? { stop: actJson(own) } : {}),
    })),
  };
}

const actJson = <Act extends { readonly at: EpochMs; readonly until?: EpochMs }>(act: Act): object => ({
  ...act,
  ...momentsJson({ at: act.at, until: act.until }),
});

const momentsJson = (moments: Readonly<Record<string, EpochMs | undefined>>): object =>
  Object.fromEntries(
    Object.entries(moments).flatMap(([name, at]) => (at === undefined ? [] : [[name, timeText(at)]])),
  );
