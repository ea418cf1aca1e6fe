import { type Command, Option } from 'commander';
import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import {
  GROUPINGS,
  type Grouping,
  groupTexts,
  type PendingGroup,
  pendingGroups,
} from '#shared/operations/ask/pending-groups.ts';
import { stuckAdvice } from '#shared/operations/ask/words.ts';
import { clusterOrAll, type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import { blindnessIn } from '#shared/operations/look/blind.ts';
import { causeTexts } from '#shared/operations/look/history-text.ts';
import { type Snapshot, view } from '#shared/operations/look/look.ts';
import type { PendingEviction } from '#shared/operations/look/pending.ts';
import { isHeldNow, pendingStateOf, retryOf } from '#shared/operations/look/pending-state.ts';
import { taintText } from '#shared/taints/taint.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { CliDeps } from './command.ts';
import {
  type Column,
  linesText,
  listShown,
  type OutputFormat,
  outputOption,
  type Shown,
  shownAs,
  withExamples,
} from './output.ts';
import { warnOutdated, withFleet } from './with-fleet.ts';

interface PendingOptions {
  readonly held: boolean;
  readonly stuck: boolean;
  readonly by?: Grouping;
  readonly watch: boolean;
  readonly output: OutputFormat;
}

/** `taintward pending`: pending evictions, their deadlines, and the reasons of held ones. */
export function addPendingCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('pending')
    .summary('List pending evictions')
    .description(
      'List pending evictions with their deadlines, and the reasons of held ones. Exits with 69 if the list may be outdated.',
    )
    .argument('[cluster]', 'cluster name (default: all clusters)')
    .option('--held', 'only due evictions that are held', false)
    .addOption(
      new Option('--stuck', 'instead, evicted pods that are stuck terminating, with advice')
        .conflicts('held')
        .default(false),
    )
    .addOption(
      new Option('--by <place>', 'counts by workload, node, or zone; workloads with ready pods and budgets')
        .choices(GROUPINGS)
        .conflicts('stuck'),
    )
    .option('-w, --watch', 'refresh until Ctrl-C', false)
    .addOption(outputOption());
  withExamples(
    command,
    'taintward pending prod --watch',
    'taintward pending --held -o wide',
    'taintward pending --stuck',
    'taintward pending prod --by workload',
  ).action((name: string | undefined) =>
    withFleet<PendingOptions>(command, deps, async (fleet, options) => {
      const read = async () => {
        const clusters = await clusterOrAll(name, fleet);
        const shown = options.stuck
          ? stuckShown(await stuckOf(fleet, clusters))
          : await pendingShown(fleet, await seenOf(fleet, clusters, deps), options, deps);
        return shownAs(options.output, shown, deps.paint);
      };
      if (options.watch) await deps.watch(read);
      else deps.print(await read());
    }),
  );
}

async function stuckOf({ leases }: Fleet, clusters: readonly ClusterName[]): Promise<readonly StuckPodOf[]> {
  const found: StuckPodOf[] = [];
  for (const cluster of clusters) {
    for (const pod of await leases.stuck(cluster)) found.push({ cluster, ...pod });
  }
  return found;
}

interface PendingRow extends PendingEviction {
  readonly heldBy: string;
  readonly inMs: number;
}

/** Warns that the list may be outdated if changes may go unnoticed. */
async function seenOf(fleet: Fleet, clusters: readonly ClusterName[], deps: CliDeps): Promise<Snapshot> {
  const seen = await view(fleet, clusters, () => ({}), { clock: deps.clock });
  for (const { error } of seen.clusters) if (error !== undefined) throw new FleetError(error);
  warnOutdated('list', blindnessIn(seen).warnings, deps);
  return seen;
}

async function pendingShown(
  fleet: Fleet,
  { at, clusters }: Snapshot,
  { held, by: grouping }: PendingOptions,
  { complain }: CliDeps,
): Promise<Shown> {
  const isShown = (eviction: PendingEviction) => !held || isHeldNow(eviction, at);
  const chosen = clusters.map(({ pending = [], ...read }) => ({ ...read, pending: pending.filter(isShown) }));
  const none = `No ${held ? 'held' : 'pending'} evictions.`;
  if (grouping) {
    const found = [];
    for (const read of chosen) found.push(await pendingGroups(fleet, read, grouping, at));
    complain(linesText(found.flatMap(({ unknown }) => unknown)));
    const groups = found.flatMap((each) => each.groups);
    return listShown(groups, groupColumns(grouping, at), none, () => groups.map(groupOutput));
  }
  const rows = chosen.flatMap(({ storedRules, pending }) =>
    pending.map((eviction): PendingRow => {
      const { note: heldBy } = pendingStateOf(eviction, storedRules, at);
      return { ...eviction, heldBy, inMs: eviction.record.dueAt - at };
    }),
  );
  return listShown(rows, COLUMNS, none, () => rows.map((row) => pendingOutput(row, at)));
}

const COLUMNS: readonly Column<PendingRow>[] = [
  { head: 'CLUSTER', of: ({ cluster }) => cluster },
  { head: 'NODE', of: ({ node }) => node },
  { head: 'POD', of: ({ record }) => `${record.namespace}/${record.name}` },
  { head: 'UID', of: ({ record }) => record.uid, wide: true },
  { head: 'DUE', of: ({ record }) => timeText(record.dueAt) },
  { head: 'IN', of: ({ inMs }) => (inMs > 0 ? durationText(inMs) : 'due') },
  { head: 'TAINT', of: ({ record }) => record.causes.map(({ taint }) => taintText(taint)).join(', ') },
  { head: 'CAUSE', of: ({ record }) => causeTexts(record.causes).join('; '), wide: true },
  { head: 'HELD BY', of: ({ heldBy }) => heldBy },
];

function pendingOutput(row: PendingEviction, at: EpochMs) {
  const { cluster, node, record, gates } = row;
  const { uid, namespace, name, dueAt, causes, held, gaveUpAt, blocked, turnAt } = record;
  const { nextTryAt, error } = retryOf(row, at) ?? {};
  return {
    cluster,
    node,
    namespace,
    pod: name,
    uid,
    dueAt,
    taints: causes.map(({ taint }) => taintText(taint)),
    ...defined({
      heldBy: gates.length > 0 ? gates : undefined,
      held,
      blocked: blocked && {
        since: blocked.since,
        by: blocked.by ?? ('disruption-budget' as const),
        reason: blocked.reason,
      },
      rateLimitedUntil: turnAt,
      failedAt: gaveUpAt,
      nextTryAt,
      error,
    }),
  };
}
export type PendingOutput = ReturnType<typeof pendingOutput>;

const groupOutput = ({ cluster, place, target: _, holds: _holds, ...group }: PendingGroup) => ({
  cluster,
  ...place,
  ...group,
});
export type GroupOutput = ReturnType<typeof groupOutput>;

const groupColumns = (grouping: Grouping, at: EpochMs): readonly Column<PendingGroup>[] => [
  { head: 'CLUSTER', of: ({ cluster }) => cluster },
  { head: grouping.toUpperCase(), of: (group) => groupTexts(group).name },
  { head: 'PENDING', of: ({ pending }) => String(pending) },
  { head: 'DUE', of: ({ due }) => String(due) },
  { head: 'HELD', of: (group) => groupTexts(group).keptBy },
  { head: 'NEXT', of: ({ nextAt }) => (nextAt === undefined ? '' : `in ${durationText(nextAt - at)}`) },
  ...(grouping === 'workload' ? OF_WORKLOADS : []),
];

const OF_WORKLOADS: readonly Column<PendingGroup>[] = [
  { head: 'READY', of: (group) => groupTexts(group).ready },
  { head: 'BUDGET', of: (group) => groupTexts(group).budget },
];

type StuckPodOf = StuckPod & { readonly cluster: ClusterName };

const stuckShown = (found: readonly StuckPodOf[]): Shown =>
  listShown(found, STUCK_COLUMNS, 'No pods are stuck terminating.', () => found.map(stuckOutput));

const stuckOutput = ({ cluster, node, namespace, name, uid, ...state }: StuckPodOf) => ({
  cluster,
  node,
  namespace,
  pod: name,
  uid,
  ...state,
  remediation: stuckAdvice(state),
});
export type StuckOutput = ReturnType<typeof stuckOutput>;

const STUCK_COLUMNS: readonly Column<StuckPodOf>[] = [
  { head: 'CLUSTER', of: ({ cluster }) => cluster },
  { head: 'NODE', of: ({ node }) => node },
  { head: 'POD', of: ({ namespace, name }) => `${namespace}/${name}` },
  { head: 'UID', of: ({ uid }) => uid, wide: true },
  { head: 'GRACE PERIOD ENDED', of: ({ gracePeriodEndedAt }) => timeText(gracePeriodEndedAt) },
  { head: 'FINALIZERS', of: ({ finalizers }) => finalizers.join(', ') },
  { head: 'REMEDIATION', of: stuckAdvice },
];
