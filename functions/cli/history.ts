import { Argument, type Command, Option } from 'commander';
import { defined } from '#shared/defined.ts';
import { type ClusterName, type NodeName, nodeName } from '#shared/eviction/identity.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { type Happening, happened } from '#shared/operations/look/history.ts';
import { HISTORY_COLUMNS } from '#shared/operations/look/history-text.ts';
import type { HistoryEntry, HistoryQuery } from '#shared/state/history.ts';
import { causesOutput } from './causes.ts';
import { type CliDeps, parseClusterName } from './command.ts';
import { compare, comparisonOutput, comparisonText } from './comparison.ts';
import { type Column, outputOption, roomIn, type TableLayout, tableOf, withExamples } from './output.ts';
import { tableLines } from './sections.ts';
import { type MomentGiven, momentOf, parseMoment } from './time-option.ts';
import { showFleet } from './with-fleet.ts';

interface HistoryOptions {
  readonly node?: NodeName;
  readonly namespace?: string;
  readonly pod?: string;
  readonly since: MomentGiven;
  readonly until?: MomentGiven;
  readonly compare?: true;
}

const DEFAULT_SINCE = '24h';

/** `taintward history`: past evictions, compared on request with those of the built-in controller. */
export function addHistoryCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('history')
    .summary('Show past evictions')
    .description(
      'Show past evictions and changes: scheduled, moved, held, and evicted pods, observed decisions, and operator actions. Newest entries last.',
    )
    .addArgument(
      new Argument('[cluster]', 'cluster name (default: all clusters)').argParser(parseClusterName),
    )
    .addOption(new Option('--node <name>', 'node name').argParser((name) => nodeName(name)))
    .option('--namespace <name>', 'namespace of the pods')
    .option('--pod <name>', 'pod name')
    .addOption(
      new Option('--since <when>', 'start time, for example 30m, 2h, 7d, or a date')
        .argParser(parseMoment)
        .default(parseMoment(DEFAULT_SINCE), DEFAULT_SINCE),
    )
    .addOption(new Option('--until <when>', 'end time, likewise (default: now)').argParser(parseMoment))
    .option('--compare', 'evictions by the built-in controller, compared with our deadlines')
    .addOption(outputOption());
  withExamples(
    command,
    'taintward history prod --since 2h',
    'taintward history prod --namespace shop --pod web-0 -o json',
    'taintward history prod --since 7d --compare',
  ).action((cluster: ClusterName | undefined) =>
    showFleet<HistoryOptions>(command, deps, async (fleet, options) => {
      const happenings = await read(cluster, options, fleet, deps);
      if (!options.compare)
        return {
          data: () => happenings.map(historyOutput),
          text: (layout) => historyText(happenings, layout),
        };
      const comparison = compare(happenings.flatMap((each) => (each.of === 'pod' ? [each.entry] : [])));
      return {
        data: () => comparisonOutput(comparison),
        text: (layout) => comparisonText(comparison, roomIn(layout)),
      };
    }),
  );
}

async function read(
  cluster: ClusterName | undefined,
  { since, until, ...which }: HistoryOptions,
  fleet: Fleet,
  { clock, progress }: CliDeps,
): Promise<readonly Happening[]> {
  const now = clock.now();
  const { node, namespace, pod } = which;
  const about: Omit<HistoryQuery, 'cluster'> = {
    ...defined({ node, namespace, pod }),
    from: momentOf(since, now),
    to: until ? momentOf(until, now) : now,
  };
  const clusters = cluster === undefined ? await fleet.clusters() : [cluster];
  return happened(fleet, clusters, about, (name, index) =>
    progress(`Reading the history of ${name}, ${index + 1} of ${clusters.length}`),
  );
}

/** The lines are part of a larger answer, in the given order. */
export function podHistoryLines(entries: readonly HistoryEntry[], layout: TableLayout): readonly string[] {
  const happenings = entries.map((entry): Happening => ({ of: 'pod', entry }));
  return tableLines(happenings, columnsFor(happenings, layout.wide), layout);
}

function historyText(happenings: readonly Happening[], layout: TableLayout): string {
  if (happenings.length === 0)
    return 'No entries in this period. To search further back, specify --since, for example --since 7d.\n';
  return tableOf(happenings, columnsFor(happenings, layout.wide), layout);
}

function columnsFor(happenings: readonly Happening[], wide: boolean): readonly Column<Happening>[] {
  const several = new Set(happenings.flatMap(({ entry }) => entry.cluster ?? [])).size > 1;
  return HISTORY_COLUMNS.filter(({ head }) => several || wide || head !== 'CLUSTER');
}

/** Entries of one or all clusters have no pod. */
function historyOutput(happening: Happening) {
  if (happening.of === 'pod') return entryOutput(happening.entry);
  const { at, ...entry } = happening.entry;
  return { time: at, ...entry };
}
export type HistoryOutput = ReturnType<typeof historyOutput>;

function entryOutput({ at, deleted, causes, ...entry }: HistoryEntry) {
  return {
    time: at,
    ...entry,
    ...defined({ deletedBy: deleted?.by, deletedAt: deleted?.at }),
    causes: causesOutput(causes),
  };
}
