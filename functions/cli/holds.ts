import { Argument, type Command, InvalidArgumentError } from 'commander';
import { defined } from '#shared/defined.ts';
import { type ClusterName, nodeName } from '#shared/eviction/identity.ts';
import type { HoldTarget, OperatorAction } from '#shared/eviction/policy.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import { targetText } from '#shared/operations/acts/act.ts';
import type { Performed } from '#shared/operations/acts/perform.ts';
import { targetExists } from '#shared/operations/ask/hold-target.ts';
import { parseLabelSelector } from '#shared/operations/ask/label-selector.ts';
import {
  clusterNamed,
  clusterOrAll,
  type Fleet,
  storedRulesNow,
  theCluster,
  UsageError,
} from '#shared/operations/fleet/fleet.ts';
import { type StoredRules, stopsOf } from '#shared/state/rules-store.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';
import { type CliDeps, CliError, forOption, whyOption } from './command.ts';
import { doActs } from './do-acts.ts';
import { addDryRun, type DryRunOptions } from './dry-run.ts';
import { type Column, linesText, listShown, outputOption, withExamples } from './output.ts';
import { showFleet, withFleet } from './with-fleet.ts';

/** `taintward hold`, `release`, `holds`: stops, holds, and guard trips that keep pods from being evicted. */
export function addHoldCommands(program: Command, deps: CliDeps): void {
  const hold = program.command('hold').summary('Prevent pods from being evicted');
  for (const target of TARGETS) addTarget(hold, deps, target);
  addReleaseCommand(program, deps);
  addHoldsCommand(program, deps);
}

type Target = readonly [
  name: string,
  what: string,
  argument: string,
  example: string,
  read: (text: string) => HoldTarget,
];

const TARGETS: readonly Target[] = [
  ['pod', 'a pod', 'NAMESPACE/NAME', 'default/web-0', podTarget],
  [
    'workload',
    'the pods of a workload',
    'NAMESPACE/KIND/NAME, for example default/Deployment/web',
    'default/Deployment/web',
    workloadTarget,
  ],
  ['node', 'the pods of a node', 'node name', 'node-1', (name) => ({ kind: 'node', node: nodeName(name) })],
  [
    'namespace',
    'the pods of a namespace',
    'namespace name',
    'shop',
    (namespace) => ({ kind: 'namespace', namespace }),
  ],
  [
    'labels',
    'the pods that match a label selector',
    'label selector, for example app=web,tier!=db',
    'app=web -n shop',
    labelsTarget,
  ],
  ['zone', 'the pods on nodes of a zone', 'zone name', 'eu-west-1a', (zone) => ({ kind: 'zone', zone })],
];

function addTarget(hold: Command, deps: CliDeps, [name, what, argument, example, read]: Target): void {
  const command = hold
    .command(name)
    .summary(`Hold ${what}`)
    .description(`Prevent ${what} from being evicted.`)
    .addArgument(new Argument(name === 'labels' ? '<selector>' : `<${name}>`, argument).argParser(read))
    .option('--cluster <name>', 'cluster name (default: the only cluster)')
    .addOption(whyOption())
    .addOption(forOption())
    .option('--yes', `hold ${what} even if nothing matches`, false);
  if (name === 'labels') command.option('-n, --namespace <name>', 'namespace of the pods (default: all)');
  withExamples(
    addDryRun(command),
    `taintward hold ${name} ${example} --cluster prod --reason "debugging" --for 4h`,
  ).action((named: HoldTarget) =>
    withFleet<HoldOptions>(command, deps, async (fleet, { reason, for: durationMs, yes, ...options }) => {
      const { namespace } = options;
      const target = named.kind === 'labels' ? { ...named, ...defined({ namespace }) } : named;
      const cluster = await theCluster(options.cluster, fleet);
      if (!yes) await checkTarget(target, cluster, fleet, deps);
      const act = { kind: 'hold', cluster, target, reason, durationMs } as const;
      const hint = ({ hold: id }: Performed) =>
        `To release it, run taintward release ${id} --reason 'REASON'.`;
      await doActs([{ act, hint }], fleet, options, deps);
    }),
  );
}

interface HoldOptions extends DryRunOptions {
  readonly cluster?: string;
  readonly namespace?: string;
  readonly reason: string;
  readonly for?: number;
  readonly yes: boolean;
}

/** Rejects with `CliError` if the hold would match nothing. Unknown, it proceeds: it may be urgent. */
async function checkTarget(
  target: HoldTarget,
  cluster: ClusterName,
  fleet: Fleet,
  deps: CliDeps,
): Promise<void> {
  const exists = await targetExists(fleet, cluster, target);
  const text = targetText(target);
  if ('unknown' in exists) {
    deps.complain(linesText([`Could not check whether ${text} exists: ${exists.unknown}.`]));
  } else if (!exists.value) {
    const found =
      target.kind === 'workload' || target.kind === 'namespace'
        ? `has no pods in cluster ${cluster}. Check ${target.kind === 'workload' ? 'namespace, kind, and name' : 'its name'}`
        : `not found in cluster ${cluster}`;
    throw new CliError(`${capitalized(text)} ${found}. To hold it anyway, rerun with --yes.`);
  }
}

function podTarget(text: string): HoldTarget {
  const [namespace, name, ...more] = text.split('/');
  if (namespace && name && more.length === 0) return { kind: 'pod', namespace, name };
  throw new InvalidArgumentError('Specify the pod as NAMESPACE/NAME.');
}

function workloadTarget(text: string): HoldTarget {
  const [namespace, kind, name, ...more] = text.split('/');
  if (namespace && kind && name && more.length === 0) {
    return { kind: 'workload', namespace, owner: { kind, name } };
  }
  throw new InvalidArgumentError(
    'Specify the workload as NAMESPACE/KIND/NAME, for example default/Deployment/web.',
  );
}

function labelsTarget(text: string): HoldTarget {
  return { kind: 'labels', labels: { matchExpressions: parseLabelSelector(text) } };
}

function addReleaseCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('release')
    .summary('Release a hold or the guard')
    .description('Release a hold, or the guard of a cluster. Held pods that are due are then evicted.')
    .argument('<hold>', 'hold ID from holds, or "guard"')
    .argument('[cluster]', 'cluster name, with "guard"')
    .option('--scope <scope>', 'tripped scope: cluster, customTaints, or zone/NAME (default: the only one)')
    .addOption(whyOption());
  withExamples(
    addDryRun(command),
    'taintward release h3f9a2c1d --reason "debugged"',
    'taintward release guard prod --reason "the zone is lost"',
    'taintward release guard prod --scope zone/eu-west-1a --reason "the zone is lost" --dry-run',
  ).action((id: string, name: string | undefined) =>
    withFleet<ReleaseOptions>(command, deps, async (fleet, { reason, scope, ...options }) => {
      if (id === 'guard') {
        if (name === undefined)
          throw new UsageError(
            "Missing cluster name. Usage: taintward release guard CLUSTER --reason 'REASON'",
          );
        const cluster = await clusterNamed(name, fleet);
        await doActs([{ act: { kind: 'release-guard', cluster, scope, reason } }], fleet, options, deps);
        return;
      }
      const storedRules = await storedRulesNow(await fleet.clusters(), fleet);
      const [cluster] = [...storedRules].flatMap(([cluster, { orders }]) =>
        orders.holds.some((hold) => hold.id === id) ? [cluster] : [],
      );
      if (cluster === undefined) {
        throw new CliError(`Hold "${id}" not found. Run "taintward holds".`);
      }
      await doActs([{ act: { kind: 'release', cluster, id, reason } }], fleet, options, deps);
    }),
  );
}

interface ReleaseOptions extends DryRunOptions {
  readonly reason: string;
  readonly scope?: string;
}

function addHoldsCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('holds')
    .summary('List stops and holds')
    .description('List stops, holds, and tripped guards, with actor and reason.')
    .argument('[cluster]', 'cluster name (default: all clusters)')
    .addOption(outputOption());
  withExamples(command, 'taintward holds', 'taintward holds prod -o yaml').action(
    (name: string | undefined) =>
      showFleet(command, deps, async (fleet) => {
        const clusters = await clusterOrAll(name, fleet);
        const storedRules = await storedRulesNow(clusters, fleet);
        const fleetStop = await fleet.rulesStore.fleetStop();
        const now = deps.clock.now();
        const resumed = [...storedRules].flatMap(([cluster, found]) =>
          stopsOf(found).some(({ scope }) => scope === 'fleet') ? [] : [cluster],
        );
        const except = resumed.length === 0 ? '' : `, except in ${resumed.join(', ')}`;
        const rows = [
          ...(fleetStop
            ? [{ cluster: '(all)', id: 'stop', what: `all evictions${except}`, ...fleetStop }]
            : []),
          ...[...storedRules].flatMap(([cluster, found]) => heldBy(cluster, found)),
        ].filter(({ until }) => until === undefined || now < until);
        return listShown(rows, COLUMNS, 'No stops or holds.', () => rows.map(holdOutput));
      }),
  );
}

interface Row extends OperatorAction {
  readonly cluster: string;
  readonly id: string;
  readonly what: string;
  readonly until?: EpochMs;
}

const COLUMNS: readonly Column<Row>[] = [
  { head: 'CLUSTER', of: ({ cluster }) => cluster },
  { head: 'ID', of: ({ id }) => id },
  { head: 'WHAT', of: ({ what }) => what },
  { head: 'SINCE', of: ({ at }) => timeText(at) },
  { head: 'UNTIL', of: ({ until }) => (until === undefined ? '' : timeText(until)) },
  { head: 'ACTOR', of: ({ actor }) => actor },
  { head: 'REASON', of: ({ reason }) => reason },
];

function heldBy(cluster: ClusterName, { orders: { stops, holds }, guard }: StoredRules): readonly Row[] {
  return [
    ...stops.map((stop) => ({ cluster, id: 'stop', what: 'all evictions', ...stop })),
    ...guard.trips.map((trip) => ({
      cluster,
      id: 'guard',
      actor: 'guard',
      at: trip.trippedAt,
      what: scopeText(trip),
      reason: `${trip.nodes} of ${trip.outOf} nodes were affected`,
    })),
    ...holds.map((hold) => ({ cluster, ...hold, what: targetText(hold.target) })),
  ];
}

const holdOutput = ({ cluster, id, what, at, until, actor, reason }: Row) => ({
  cluster,
  id,
  what,
  actor,
  reason,
  since: at,
  ...defined({ until }),
});
export type HoldOutput = ReturnType<typeof holdOutput>;
