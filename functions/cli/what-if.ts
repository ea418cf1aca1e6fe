import { type Command, InvalidArgumentError, Option } from 'commander';
import type { BudgetForecast, Stay, WorkloadForecast } from '#shared/explain/what-if.ts';
import { LabelSelectorError, parseLabelSelector } from '#shared/operations/ask/label-selector.ts';
import { askWhatIf, type NodeChoice, type WhatIfAnswer } from '#shared/operations/ask/what-if.ts';
import { breakText, budgetText, forecastText, paceText, provisosOf } from '#shared/operations/ask/words.ts';
import { theCluster } from '#shared/operations/fleet/fleet.ts';
import { type Taint, taintText } from '#shared/taints/taint.ts';
import { parseTaint, TaintArgumentError } from '#shared/taints/taint-argument.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type CliDeps, comparisonOption } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { type Column, linesText, outputOption, type TableLayout, tableOf, withExamples } from './output.ts';
import type { Paint } from './paint.ts';
import { addLiveOptions, showLive } from './with-fleet.ts';

interface WhatIfOptions {
  readonly taint: Taint;
  readonly nodes: NodeChoice;
  readonly comparisonOperators: boolean;
}

/** `taintward what-if`: previews the effect of a taint on nodes. */
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
    .addOption(comparisonOption())
    .addOption(outputOption());
  addLiveOptions(
    withExamples(
      command,
      'taintward what-if prod --taint maintenance=now:NoExecute --nodes node-1,node-2',
      'taintward what-if --context kind-kind --taint out=yes:NoExecute --nodes topology.kubernetes.io/zone=a -o wide',
    ),
  ).action((name: string | undefined) =>
    showLive<WhatIfOptions>(command, deps, async (fleet, { taint, nodes, comparisonOperators }) => {
      const cluster = await theCluster(name, fleet);
      const question = { cluster, taint, nodes, matching: { comparisonOperators } };
      const answer = await askWhatIf(fleet, question, deps);
      if (answer.breaks.length > 0) deps.exitWith(EXIT.actionRequired);
      return { data: () => answer, text: (layout) => answerText(answer, layout) };
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

/** No node name contains these; a label selector does, unless it is only a label's name. */
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

function answerText(answer: WhatIfAnswer, layout: TableLayout): string {
  const { cluster, taint, nodes, pods, now, later, keep, at } = answer;
  const which = nodes.length === 1 ? `node ${nodes[0]}` : `${nodes.length} nodes`;
  const lines = [
    `With taint ${taintText(taint)} on ${which} of cluster ${cluster}, of ${pods} ${pods === 1 ? 'pod' : 'pods'}, ${now} would be evicted immediately, ${later} later, and ${keep} would stay.`,
    ...provisosOf(answer),
    paceText(answer),
  ].filter((line) => line !== '');
  const sections = [
    linesText(lines),
    ...(pods === 0 ? [] : [tableOf(answer.workloads, workloadColumns(at), layout)]),
    ...(answer.budgets.length === 0 ? [] : [tableOf(answer.budgets, BUDGET_COLUMNS, layout)]),
    ...(layout.wide && pods > 0 ? [tableOf(answer.each, podColumns(at), layout)] : []),
    breaksText(answer, layout.paint),
  ];
  return sections.join('\n');
}

const workloadColumns = (now: EpochMs): readonly Column<WorkloadForecast>[] => [
  { head: 'WORKLOAD', of: ({ kind, namespace, name }) => `${namespace}/${kind}/${name}` },
  { head: 'PODS', of: ({ pods }) => String(pods) },
  { head: 'NOW', of: (each) => String(each.now) },
  { head: 'LATER', of: ({ later }) => laterText(later, now) },
  {
    head: 'STAY',
    of: ({ keep }) => keep.map((stay) => `${stay.pods} (${stayText(stay)})`).join(', ') || '0',
  },
  {
    head: 'READY LEFT',
    of: ({ replicas, together }) =>
      replicas ? `${Math.max(0, replicas.ready - together)} of ${replicas.ready}` : '',
  },
  { head: 'DESIRED', of: ({ replicas }) => (replicas ? String(replicas.desired) : ''), wide: true },
];

function laterText({ pods, firstAt = 0, lastAt = 0 }: WorkloadForecast['later'], now: EpochMs): string {
  if (pods === 0) return '0';
  const [first, last] = [firstAt, lastAt].map((at) => durationText(at - now));
  return `${pods} in ${first === last ? first : `${first} to ${last}`}`;
}

const stayText = ({ cause, hold }: Stay): string => (hold === undefined ? cause : `${cause} ${hold}`);

const BUDGET_COLUMNS: readonly Column<BudgetForecast>[] = [
  { head: 'BUDGET', of: (budget) => budgetText(budget) },
  { head: 'ALLOWS', of: ({ allowed }) => (allowed === undefined ? '?' : String(allowed)) },
  { head: 'PODS EVICTED', of: ({ evicted }) => String(evicted) },
  { head: 'READY PODS AT ONCE', of: ({ together }) => String(together) },
  {
    head: 'REJECTED ONE BY ONE',
    of: ({ blocked, source }) => (source === 'eviction-api' ? String(blocked) : '?'),
  },
  { head: 'BREAKS', of: ({ breaks }) => (breaks ? 'yes' : 'no') },
  {
    head: 'SOURCE',
    of: ({ source }) => (source === 'eviction-api' ? 'Eviction API' : 'budget status'),
  },
  { head: 'MESSAGE', of: ({ reason, error }) => reason ?? error ?? '', wide: true },
];

const podColumns = (now: EpochMs): readonly Column<WhatIfAnswer['each'][number]>[] => [
  { head: 'POD', of: ({ namespace, name }) => `${namespace}/${name}` },
  { head: 'NODE', of: ({ node }) => node },
  { head: 'OUTCOME', of: ({ outcome }) => forecastText(outcome, now) },
  {
    head: 'CAUSE',
    of: ({ outcome }) =>
      'causes' in outcome ? outcome.causes.map(({ taint }) => taintText(taint)).join(', ') : '',
  },
];

function breaksText({ breaks, guarded }: WhatIfAnswer, paint: Paint): string {
  if (breaks.length === 0) return `${paint('green', 'Nothing breaks.')}\n`;
  const lines = breaks.map((each) => `- ${breakText(each, guarded)}`);
  return linesText([paint('red', 'This breaks:'), ...lines]);
}
