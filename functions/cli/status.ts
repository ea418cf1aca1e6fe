import type { Command } from 'commander';
import type { Issue } from '#shared/conditions/conditions.ts';
import { defined } from '#shared/defined.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import { clusterOrAll } from '#shared/operations/fleet/fleet.ts';
import type { ServiceClusterView } from '#shared/operations/fleet/service-view.ts';
import { readClusters } from '#shared/operations/look/look.ts';
import {
  type ClusterStatus,
  type FleetStatus,
  type RelayStatus,
  statusOf,
} from '#shared/operations/look/status.ts';
import { LEASE_TTL_MS } from '#shared/state/lease.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { CliDeps } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { type Column, linesText, outputOption, type TableLayout, tableOf, withExamples } from './output.ts';
import type { Paint } from './paint.ts';
import { showFleet } from './with-fleet.ts';

/** The relay counts as gone, if clocks agree: it renews every few seconds. */
const SILENT_MS = 3 * LEASE_TTL_MS;

/** `taintward status`: the state of the fleet, and required actions. */
export function addStatusCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('status')
    .summary('Show clusters, relays, and required actions')
    .description(
      'Show clusters, relays, and required actions. Exits with 2 if an action is required, and with 69 if the state is unknown.',
    )
    .argument('[cluster]', 'cluster name (default: all clusters)')
    .addOption(outputOption());
  withExamples(command, 'taintward status', 'taintward status prod -o yaml').action(
    (name: string | undefined) =>
      showFleet(command, deps, async (fleet) => {
        const status = statusOf(await readClusters(fleet, await clusterOrAll(name, fleet), deps));
        if (status.issues.length > 0) deps.exitWith(EXIT.actionRequired);
        else if (status.unknown.length > 0) deps.exitWith(EXIT.cannotKnow);
        return { data: () => statusOutput(status), text: (layout) => statusText(status, layout) };
      }),
  );
}

function statusText(status: FleetStatus, layout: TableLayout): string {
  const { paint } = layout;
  const { clusters, relays, where, versions, deadLetters, backlog, unknown, issues, at } = status;
  const table =
    clusters.length === 0 ? 'No clusters are managed.\n' : tableOf(clusters, columnsAt(at, paint), layout);
  const facts: readonly (readonly [string, string])[] = [
    ['Fleet', where],
    [
      'Versions',
      Object.entries(versions)
        .map(([of, version]) => `${of} ${[version].flat().join(' and ')}`)
        .join(', '),
    ],
    ['Dead letters', deadLetters ? countsText(deadLetters) : 'unknown'],
    ['Backlog', backlog ? countsText(backlog) : 'unknown'],
    ...unknown.map((why) => ['Unknown', why] as const),
  ];
  const lines = linesText(facts.map(([name, text]) => `${`${name}:`.padEnd(14)} ${text}`));
  const found =
    issues.length === 0
      ? unknown.length === 0
        ? `${paint('green', 'No action required.')}\n`
        : `${paint('yellow', 'Unknown whether an action is required.')}\n`
      : linesText([
          paint('bold', 'Action required'),
          ...issues.map((need) => `  ${paint('red', '!')} ${needText(need)}`),
        ]);
  const relayTable = relays.length === 0 ? '' : `\n${tableOf(relays, relayColumns(at, paint), layout)}`;
  return `${table}${relayTable}\n${lines}\n${found}`;
}

const needText = ({ cluster, message, remediation }: Issue): string =>
  [cluster && `${cluster}:`, message, remediation].filter(Boolean).join(' ');

const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([queue, count]) => `${queue} ${count}`)
    .join(', ') || 'none';

function relayColumns(at: EpochMs, paint: Paint): readonly Column<RelayStatus>[] {
  return [
    { head: 'RELAY', of: ({ holder }) => holder },
    { head: 'VERSION', of: ({ version = '?' }) => version },
    { head: 'CLUSTERS', of: ({ clusters }) => `${clusters.length}` },
    { head: 'NODES', of: ({ nodes }) => `${nodes}` },
    {
      head: 'RENEWED',
      of: ({ renewedAt }) => {
        const agoMs = Math.max(0, at - renewedAt);
        const text = `${durationText(agoMs)} ago`;
        return agoMs > SILENT_MS ? paint('red', text) : text;
      },
    },
  ];
}

function columnsAt(at: EpochMs, paint: Paint): readonly Column<ClusterStatus>[] {
  const count = (value: number | undefined) => (value === undefined ? '?' : `${value}`);
  const bad = (text: string, isBad: boolean) => (isBad && text !== '' ? paint('red', text) : text);
  return [
    { head: 'CLUSTER', of: ({ cluster }) => cluster },
    { head: 'MODE', of: (each) => modeText(each) },
    { head: 'BUILT-IN', of: ({ builtIn }) => bad(builtIn?.state ?? '?', builtIn?.state === 'on') },
    {
      head: 'LAST CONTACT',
      of: ({ connection, lastContactAt }) =>
        lastContactAt === undefined
          ? connection === undefined
            ? '?'
            : bad('never', true)
          : bad(`${durationText(at - lastContactAt)} ago`, connection !== 'connected'),
    },
    { head: 'NODES', of: ({ nodes }) => count(nodes) },
    { head: 'TAINTED', of: ({ tainted }) => count(tainted) },
    { head: 'PENDING', of: ({ pending }) => count(pending) },
    { head: 'HELD', of: ({ held }) => count(held) },
    {
      head: 'STUCK',
      of: ({ stuck, failed = 0 }) =>
        stuck === undefined ? '?' : bad(`${stuck + failed}`, stuck + failed > 0),
    },
    { head: 'DELAY', of: ({ delayMs = 0 }) => (delayMs < 1_000 ? '' : durationText(delayMs)) },
    {
      head: 'NEXT',
      of: ({ nextAt }) => (nextAt === undefined ? '' : `in ${durationText(nextAt - at)}`),
    },
    {
      head: 'GUARD',
      of: ({ guard = '?', trips = [], releasedScopes = [] }) =>
        [
          ...trips.map((trip) => bad(scopeText(trip), true)),
          ...releasedScopes.map(({ scope }) => `${scope} (released)`),
        ].join(', ') || guard,
    },
    {
      head: 'STOP',
      of: ({ stop }) => (stop ? bad(stop.scope === 'fleet' ? `all: ${stop.actor}` : stop.actor, true) : ''),
    },
    { head: 'HOLDER', of: ({ holder = '' }) => holder, wide: true },
    { head: 'RELAY', of: ({ service }) => service?.state ?? '', wide: true },
    {
      head: 'BREAKER',
      of: ({ breakerOpen }) =>
        breakerOpen === undefined ? '?' : bad(breakerOpen ? 'open' : 'closed', breakerOpen),
      wide: true,
    },
    { head: 'OBSERVED', of: ({ observed }) => count(observed), wide: true },
    { head: 'BLOCKED', of: ({ blocked }) => count(blocked), wide: true },
    { head: 'RETRYING', of: ({ retrying }) => count(retrying), wide: true },
    { head: 'DOWN', of: ({ service }) => (service ? `${service.down}` : ''), wide: true },
    { head: 'KUBERNETES', of: ({ kubernetes = '' }) => kubernetes, wide: true },
    { head: 'POLICY', of: ({ policyRevision }) => count(policyRevision), wide: true },
    { head: 'EVIDENCE', of: ({ builtIn }) => builtIn?.evidence ?? '', wide: true },
  ];
}

function modeText({ mode, stop, error }: ClusterStatus): string {
  if (error !== undefined) return 'unreadable';
  if (!stop) return mode ?? '?';
  return `${mode}, stopped${stop.until === undefined ? '' : ` until ${timeText(stop.until)}`}`;
}

const statusOutput = ({ clusters, ...status }: FleetStatus) => ({
  ...status,
  clusters: clusters.map(({ service, ...cluster }) => ({
    ...cluster,
    ...defined({
      service: service && withoutFaults(service),
      contactAgeMs: contactAgeMs(cluster, status.at),
    }),
  })),
});
export type StatusOutput = ReturnType<typeof statusOutput>;

/** The cluster has its faults, from any source. */
const withoutFaults = ({ faults: _faults, ...service }: ServiceClusterView) => service;

const contactAgeMs = ({ lastContactAt }: Pick<ClusterStatus, 'lastContactAt'>, at: EpochMs) =>
  lastContactAt === undefined ? undefined : Math.max(0, at - lastContactAt);
