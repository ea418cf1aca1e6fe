import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import type { Fleet } from '#functions/operator/fleet.ts';
import { clusterNameSchema } from '#shared/clusters/registry.ts';
import type { Brake } from '#shared/eviction/brake.ts';
import { type ClusterName, type NodeName, nodeName } from '#shared/eviction/identity.ts';
import type { CancelReason } from '#shared/eviction/records.ts';
import type { HistoryEntry, HistoryQuery } from '#shared/store/history.ts';
import type { CliDeps } from './command.ts';
import { compare, comparisonJson, comparisonText } from './comparison.ts';
import { type MomentGiven, momentOf, parseMoment } from './moment.ts';
import {
  type Column,
  type OutputFormat,
  outputOption,
  shownAs,
  tableOf,
  timeText,
  withExamples,
} from './output.ts';
import type { Paint } from './paint.ts';
import { reasonsJson, reasonTexts } from './reasons.ts';
import { withFleet } from './with-fleet.ts';

interface HistoryOptions {
  readonly node?: NodeName;
  readonly namespace?: string;
  readonly pod?: string;
  readonly since: MomentGiven;
  readonly until?: MomentGiven;
  readonly compare?: true;
  readonly output: OutputFormat;
}

const DEFAULT_SINCE = '24h';

/** `taintward history`: what became of evictions, and beside which the built-in controller made its own. */
export function addHistoryCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('history')
    .description('shows what was scheduled, moved, held, evicted, and what would have been; the newest last')
    .addArgument(new Argument('[cluster]', 'of which cluster; all, if none is named').argParser(parseCluster))
    .addOption(new Option('--node <name>', 'on this node').argParser((name) => nodeName(name)))
    .option('--namespace <name>', 'of pods in this namespace')
    .option('--pod <name>', 'of pods of this name')
    .addOption(
      new Option('--since <when>', 'from then on: 30m, 2h, 7d ago, or a date')
        .argParser(parseMoment)
        .default(parseMoment(DEFAULT_SINCE), DEFAULT_SINCE),
    )
    .addOption(new Option('--until <when>', 'up to then, likewise (default: now)').argParser(parseMoment))
    .option('--compare', 'what the built-in controller evicted, and when it would have gone by us')
    .addOption(outputOption());
  withExamples(
    command,
    'taintward history prod --since 2h',
    'taintward history prod --namespace shop --pod web-0 -o json',
    'taintward history prod --since 7d --compare',
  ).action((cluster: ClusterName | undefined) =>
    withFleet<HistoryOptions>(command, deps, async (fleet, options) => {
      const entries = await read(cluster, options, fleet, deps);
      const { output, compare: compared } = options;
      const comparison = compared && compare(entries);
      deps.print(
        shownAs(
          output,
          comparison
            ? { data: () => comparisonJson(comparison), text: () => comparisonText(comparison) }
            : { data: () => entries.map(entryJson), text: (wide) => historyText(entries, wide, deps.paint) },
        ),
      );
    }),
  );
}

/** The oldest first. */
async function read(
  cluster: ClusterName | undefined,
  { since, until, ...which }: HistoryOptions,
  fleet: Fleet,
  { clock, progress }: CliDeps,
): Promise<readonly HistoryEntry[]> {
  const now = clock.now();
  const { node, namespace, pod } = which;
  const about: Omit<HistoryQuery, 'cluster'> = {
    ...(node === undefined ? {} : { node }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(pod === undefined ? {} : { pod }),
    from: momentOf(since, now),
    to: until ? momentOf(until, now) : now,
  };
  const clusters = cluster === undefined ? await fleet.clusters() : [cluster];
  const found: HistoryEntry[] = [];
  for (const [index, each] of clusters.entries()) {
    progress(`Reading the history of ${each}, ${index + 1} of ${clusters.length}`);
    for await (const entry of fleet.history.entries({ cluster: each, ...about })) found.push(entry);
  }
  progress();
  // Those of one moment in the order in which they happened.
  return found.reverse().sort((a, b) => a.at - b.at);
}

function parseCluster(text: string): ClusterName {
  const { data, error } = clusterNameSchema.safeParse(text);
  if (data === undefined) throw new InvalidArgumentError(`It ${error.issues[0]?.message}.`);
  return data;
}

function historyText(entries: readonly HistoryEntry[], wide: boolean, paint: Paint): string {
  if (entries.length === 0) return 'Nothing happened in that time: --since 7d goes further back.\n';
  const several = new Set(entries.map(({ ref }) => ref.cluster)).size > 1;
  const columns = COLUMNS.filter(({ head }) => several || wide || head !== 'CLUSTER');
  return tableOf(entries, columns, { wide, paint });
}

const COLUMNS: readonly Column<HistoryEntry>[] = [
  { head: 'TIME', of: ({ at }) => timeText(at) },
  { head: 'CLUSTER', of: ({ ref }) => ref.cluster },
  { head: 'WHAT', of: ({ what }) => WHAT[what] },
  { head: 'POD', of: ({ namespace, name }) => `${namespace}/${name}` },
  { head: 'NODE', of: ({ ref }) => ref.node },
  { head: 'DUE', of: dueText },
  { head: 'LATE', of: ({ lateMs }) => (lateMs === undefined ? '' : `${lateMs} ms`) },
  { head: 'BY', of: whoText },
  { head: 'UID', of: ({ uid }) => uid, wide: true },
  { head: 'BECAUSE', of: becauseText },
];

const WHAT: Readonly<Record<HistoryEntry['what'], string>> = {
  scheduled: 'scheduled',
  moved: 'moved',
  held: 'held',
  freed: 'freed',
  blocked: 'blocked',
  'would-have': 'would have gone',
  'gave-up': 'given up',
  done: 'evicted',
  gone: 'gone',
  cancelled: 'cancelled',
  unregistered: 'unregistered',
};

const CANCELLED: Readonly<Record<CancelReason, string>> = {
  'taint-removed': 'the taint was removed',
  'tolerated-forever': 'it tolerates the taint for ever',
  'pod-gone': 'the pod is gone',
};

/** Nothing of ours makes a pod go that has no reasons. */
function dueText({ fireAt, reasons }: HistoryEntry): string {
  return reasons.length === 0 ? '' : timeText(fireAt);
}

function whoText({ what, deleted, by }: HistoryEntry): string {
  if (deleted) {
    const who = deleted.by === 'taint-manager' ? 'built-in controller' : 'somebody else';
    return `${who}, ${timeText(deleted.at)}`;
  }
  if (by) return brakeText(by);
  return what === 'done' ? 'taintward' : '';
}

function brakeText(by: Brake): string {
  switch (by.kind) {
    case 'observe':
      return 'observe';
    case 'paused':
      return 'paused';
    case 'stopped':
      return by.scope === 'fleet' ? 'stop of all clusters' : 'stop';
    case 'hold':
      return `hold ${by.id}`;
    case 'excluded':
      return `policy, revision ${by.revision}`;
    case 'guard':
      return `guard (${by.scope})`;
    default:
      return by satisfies never;
  }
}

function becauseText(entry: HistoryEntry): string {
  const { reasons, cancelled, deleted, error, movedFrom } = entry;
  return [
    ...(cancelled && !deleted ? [CANCELLED[cancelled]] : []),
    ...(error ? [error] : []),
    ...(movedFrom === undefined ? [] : [`was due ${timeText(movedFrom)}`]),
    ...reasonTexts(reasons),
  ].join('; ');
}

/** An entry for programs. */
function entryJson({ at, ref, name, fireAt, movedFrom, deleted, ...entry }: HistoryEntry): object {
  const { reasons, uid, namespace, what, ...more } = entry;
  return {
    time: new Date(at).toISOString(),
    ...ref,
    ...{ namespace, pod: name, uid, what },
    ...(reasons.length === 0 ? {} : { due: new Date(fireAt).toISOString() }),
    ...(movedFrom === undefined ? {} : { movedFrom: new Date(movedFrom).toISOString() }),
    ...(deleted ? { deletedBy: deleted.by, deletedAt: new Date(deleted.at).toISOString() } : {}),
    ...more,
    because: reasonsJson(reasons),
  };
}
