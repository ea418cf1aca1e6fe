import { type Command, InvalidArgumentError, Option } from 'commander';
import { theCluster } from '#functions/operator/fleet.ts';
import { LabelSelectorError, parseLabelSelector } from '#functions/operator/label-selector.ts';
import { askWhatIf, type NodeChoice, type WhatIfAnswer } from '#functions/operator/what-if.ts';
import { tripText } from '#shared/eviction/guard.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import { wordsOf } from '#shared/explain/brake-words.ts';
import type { Fate } from '#shared/explain/fate.ts';
import type { Break, BudgetFate, Stay, WorkloadFate } from '#shared/explain/what-if.ts';
import { type Taint, taintText } from '#shared/taints/taint.ts';
import { parseTaint, TaintArgumentError } from '#shared/taints/taint-argument.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { CliDeps } from './command.ts';
import { EXIT } from './exit-codes.ts';
import {
  type Column,
  linesText,
  type OutputFormat,
  outputOption,
  shownAs,
  spanText,
  tableOf,
  withExamples,
} from './output.ts';
import type { Paint } from './paint.ts';
import { addLiveOptions, withLive } from './with-fleet.ts';

interface WhatIfOptions {
  readonly taint: Taint;
  readonly nodes: NodeChoice;
  readonly comparisonOperators: boolean;
  readonly output: OutputFormat;
}

/** `taintward what-if`: what would happen if nodes had a taint. */
export function addWhatIfCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('what-if')
    .summary('Preview the effect of a taint')
    .description(
      'Preview the effect of a taint on nodes: the evicted pods, and the workloads that this breaks. Changes nothing. Exits with 2 if a workload breaks.',
    )
    .argument('[cluster]', 'cluster name (default: the only one)')
    .addOption(
      new Option('--taint <taint>', 'taint in kubectl syntax, for example maintenance=now:NoExecute')
        .argParser(readTaint)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--nodes <selector>', 'node names (node-1,node-2) or a label selector (zone=a,!gpu)')
        .argParser(readNodes)
        .makeOptionMandatory(),
    )
    .option(
      '--comparison-operators',
      'support the toleration operators Lt and Gt, if the service does',
      false,
    )
    .addOption(outputOption());
  addLiveOptions(
    withExamples(
      command,
      'taintward what-if prod --taint maintenance=now:NoExecute --nodes node-1,node-2',
      'taintward what-if --context kind-kind --taint out=yes:NoExecute --nodes topology.kubernetes.io/zone=a -o wide',
    ),
  ).action((name: string | undefined) =>
    withLive<WhatIfOptions>(command, deps, async (fleet, options) => {
      const { taint, nodes, comparisonOperators } = options;
      const cluster = await theCluster(name, fleet);
      const question = { cluster, taint, nodes, matching: { comparisonOperators } };
      const answer = await askWhatIf(fleet, question, {
        now: () => deps.clock.now(),
        progress: deps.progress,
      });
      const shown = {
        data: () => withTimes(answer),
        text: (wide: boolean) => answerText(answer, wide, deps.paint),
      };
      deps.print(shownAs(options.output, shown));
      if (answer.breaks.length > 0) deps.exitWith(EXIT.needsYou);
    }),
  );
}

function readTaint(text: string): Taint {
  try {
    return parseTaint(text);
  } catch (error) {
    if (error instanceof TaintArgumentError) throw new InvalidArgumentError(`${error.message}.`);
    throw error;
  }
}

/** What no name of a node holds, and each label selector that is not the name of a label alone. */
const OF_LABELS = /[=!()/\s]/;

function readNodes(text: string): NodeChoice {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.every((part) => part !== '' && !OF_LABELS.test(part))) return { names: parts };
  try {
    return { labels: { matchExpressions: parseLabelSelector(text) } };
  } catch (error) {
    if (error instanceof LabelSelectorError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}

/** An answer for programs, its moments as texts. */
const withTimes = (answer: WhatIfAnswer): unknown =>
  JSON.parse(
    JSON.stringify(answer, (key, value) =>
      typeof value === 'number' && MOMENT.test(key) ? timeText(value) : value,
    ),
  );

const MOMENT = /^(?:at|since|until)$|At$/;

function answerText(answer: WhatIfAnswer, wide: boolean, paint: Paint): string {
  const { cluster, taint, nodes, pods, now, later, stays, at } = answer;
  const which = nodes.length === 1 ? `node ${nodes[0]}` : `${nodes.length} nodes`;
  const lines = [
    `If ${which} of cluster ${cluster} had the taint ${taintText(taint)}: of ${pods} pods there ${now} would go now, ${later} later, and ${stays} stay.`,
    ...provisosOf(answer),
    paceText(answer),
  ].filter((line) => line !== '');
  const sections = [
    linesText(lines),
    ...(pods === 0 ? [] : [tableOf(answer.workloads, workloadColumns(at), { wide, paint })]),
    ...(answer.budgets.length === 0 ? [] : [tableOf(answer.budgets, BUDGET_COLUMNS, { wide, paint })]),
    ...(wide && pods > 0 ? [tableOf(answer.each, podColumns(at), { wide, paint })] : []),
    breaksText(answer, paint),
  ];
  return sections.join('\n');
}

/** What the answer depends on. */
function provisosOf({ policy, brake, guarded, guard, unknown }: WhatIfAnswer): readonly string[] {
  return [
    ...(policy === 'default'
      ? ['No policy of the cluster is known, so the default one is taken, as if it were enforced.']
      : []),
    ...(brake
      ? [`All is held by ${wordsOf(brake).name(brake)}: none of it happens before that is over.`]
      : []),
    ...(guarded > 0
      ? [`The guard would hold ${guarded} of those that go, until it is released or few nodes are affected.`]
      : []),
    ...(guard.shadow
      ? guard.trips.map((trip) => `The guard would only tell that it would have tripped: ${tripText(trip)}.`)
      : []),
    ...unknown.map((each) => (each.endsWith('.') ? each : `${each}.`)),
  ];
}

function paceText({ at, pace, brake, guarded }: WhatIfAnswer): string {
  if (pace.lastAt === undefined) return '';
  const when = pace.lastAt <= at ? 'at once' : `in ${spanText(pace.lastAt - at)}`;
  const rate = pace.rate === undefined ? '' : `, at ${pace.rate} a second`;
  const drained =
    brake || guarded > 0
      ? `; all that is held goes within ${spanText(pace.drainMs)} of being let go, at ${pace.drain} a second`
      : '';
  return `The last would go ${when}${rate}${drained}.`;
}

const workloadColumns = (now: EpochMs): readonly Column<WorkloadFate>[] => [
  { head: 'WORKLOAD', of: ({ kind, namespace, name }) => `${namespace}/${kind}/${name}` },
  { head: 'PODS', of: ({ pods }) => String(pods) },
  { head: 'NOW', of: (each) => String(each.now) },
  { head: 'LATER', of: ({ later }) => laterText(later, now) },
  {
    head: 'STAY',
    of: ({ stays }) => stays.map((stay) => `${stay.pods} (${stayText(stay)})`).join(', ') || '0',
  },
  {
    head: 'READY LEFT',
    of: ({ replicas, together }) =>
      replicas ? `${Math.max(0, replicas.ready - together)} of ${replicas.ready}` : '',
  },
  { head: 'WANTED', of: ({ replicas }) => (replicas ? String(replicas.desired) : ''), wide: true },
];

function laterText({ pods, firstAt = 0, lastAt = 0 }: WorkloadFate['later'], now: EpochMs): string {
  if (pods === 0) return '0';
  const [first, last] = [firstAt, lastAt].map((at) => spanText(at - now));
  return `${pods} in ${first === last ? first : `${first} to ${last}`}`;
}

const stayText = ({ because, hold }: Stay): string => (hold === undefined ? because : `${because} ${hold}`);

const BUDGET_COLUMNS: readonly Column<BudgetFate>[] = [
  { head: 'BUDGET', of: (budget) => budgetText(budget) },
  { head: 'ALLOWS', of: ({ allowed }) => (allowed === undefined ? '?' : String(allowed)) },
  { head: 'PODS GOING', of: ({ going }) => String(going) },
  { head: 'READY, TOGETHER', of: ({ together }) => String(together) },
  { head: 'REFUSED ALONE', of: ({ blocked, known }) => (known === 'asked' ? String(blocked) : '?') },
  { head: 'BREAKS', of: ({ breaks }) => (breaks ? 'yes' : 'no') },
  { head: 'KNOWN', of: ({ known }) => (known === 'asked' ? 'Eviction API, summed up' : 'by its status') },
  { head: 'MESSAGE', of: ({ reason, why }) => reason ?? why ?? '', wide: true },
];

const budgetText = ({ namespace, name }: BudgetFate): string =>
  name === undefined ? `of namespace ${namespace}` : `${namespace}/${name}`;

const podColumns = (now: EpochMs): readonly Column<WhatIfAnswer['each'][number]>[] => [
  { head: 'POD', of: ({ namespace, name }) => `${namespace}/${name}` },
  { head: 'NODE', of: ({ node }) => node },
  { head: 'OUTCOME', of: ({ fate }) => fateText(fate, now) },
  {
    head: 'CAUSE',
    of: ({ fate }) => ('reasons' in fate ? fate.reasons.map(({ taint }) => taintText(taint)).join(', ') : ''),
  },
];

function fateText(fate: Fate, now: EpochMs): string {
  switch (fate.kind) {
    case 'goes':
      return fate.at <= now ? 'goes now' : `goes in ${spanText(fate.at - now)}`;
    case 'stays':
      return `stays (${fate.because})`;
    case 'held':
      return fate.by.kind === 'hold' ? `stays (hold ${fate.by.id})` : 'stays (excluded)';
    case 'leaving':
      return 'leaving already';
    case 'gave-up':
      return 'stays (given up)';
    case 'blocked':
      return 'stays (disruption budget)';
    default:
      return fate satisfies never;
  }
}

function breaksText({ breaks, guarded }: WhatIfAnswer, paint: Paint): string {
  if (breaks.length === 0) return `${paint('green', 'Nothing breaks.')}\n`;
  const lines = breaks.map((each) => `- ${breakText(each, guarded)}`);
  return linesText([paint('red', 'This would break:'), ...lines]);
}

function breakText(broken: Break, guarded: number): string {
  switch (broken.kind) {
    case 'guard':
      return `The guard would trip (${tripText(broken.trip)}), and hold ${guarded} evictions.`;
    case 'budget': {
      const { together, allowed, heeded, reason } = broken.budget;
      const allows = allowed === undefined ? 'does not allow it' : `allows ${allowed} to be disrupted`;
      const all = `${together} of its ready pods would go together`;
      const then = heeded
        ? 'they go only as it lets them, or when the policy has waited long enough'
        : 'evictions by taints do not heed it';
      const said = reason === undefined ? '' : ` The API server says: ${reason.replace(/\.$/, '')}.`;
      return `Budget ${budgetText(broken.budget)} ${allows}, and ${all}: ${then}.${said}`;
    }
    case 'emptied': {
      const { namespace, kind, name, together } = broken.workload;
      return `${kind} ${namespace}/${name} is left without a ready pod: ${together === 1 ? 'its only one goes' : `all ${together} go together`}.`;
    }
    case 'bare-pod':
      return `Pod ${broken.namespace}/${broken.name} would go, and nobody makes it anew.`;
    default:
      return broken satisfies never;
  }
}
