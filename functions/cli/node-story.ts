import type { NodeName } from '#shared/eviction/identity.ts';
import { gateText, keptLabel } from '#shared/explain/gate-text.ts';
import type { NodePod, NodeTaint, NodeWorkload } from '#shared/explain/node.ts';
import { workloadText } from '#shared/explain/workload.ts';
import type { NodeStory } from '#shared/operations/ask/explain-node.ts';
import type { WorkloadStory } from '#shared/operations/ask/explain-workload.ts';
import { taintText } from '#shared/taints/taint.ts';
import { timeText } from '#shared/time/time-text.ts';
import { podHistoryLines } from './history.ts';
import type { Column, TableLayout } from './output.ts';
import { sectionsText, tableLines } from './sections.ts';

/** First the answer, then the evidence. `wide`: includes each pod. */
export function nodeStoryText(
  { headline, taints, workloads, pods, history, unknown, ...answer }: NodeStory,
  { wide, paint }: TableLayout,
): string {
  const table = <Row>(rows: readonly Row[], columns: readonly Column<Row>[]) =>
    tableLines(rows, columns, { wide, paint });
  return sectionsText(
    headline,
    [
      { heading: 'Taints', lines: table(taints, TAINT_COLUMNS) },
      { heading: 'Pods by workload', lines: table(workloads, WORKLOAD_COLUMNS) },
      { heading: 'Pods', lines: wide ? table(pods, POD_COLUMNS) : [] },
      { heading: 'Rules', lines: ruleLines(answer) },
      { heading: 'History', lines: podHistoryLines(history, { wide, paint }) },
      { heading: 'Unknown', lines: unknown.map(({ what, reason }) => `${what}: ${reason}`) },
    ],
    paint,
  );
}

const ruleLines = ({
  policy,
  gates,
  builtIn: { state, evidence },
}: Pick<NodeStory, 'policy' | 'gates' | 'builtIn'>) => [
  ...(policy ? [`policy: ${policy.mode}`] : []),
  ...gates.map((gate) => `held by: ${gateText(gate, timeText)}`),
  `built-in controller: ${state}${evidence === '' ? '' : ` (${evidence})`}`,
];

/** First the answer, then the pods of all nodes, and the effects of a hold. */
export function workloadStoryText(
  { headline, nodes, budgets = [], hold, ...workload }: WorkloadStory,
  { wide, paint }: TableLayout,
): string {
  const pods = nodes.flatMap(({ node, zone = '', pods: its }) => its.map((pod) => ({ node, zone, ...pod })));
  const command = `taintward hold workload ${workloadText(workload)} --cluster ${nodes[0]?.cluster} --reason 'REASON'`;
  const unknown = nodes.flatMap((each) => each.unknown.map(({ what, reason }) => `${what}: ${reason}`));
  return sectionsText(
    headline,
    [
      { heading: 'Pods', lines: tableLines(pods, PLACED_COLUMNS, { wide, paint }) },
      {
        heading: 'Rules',
        lines: [
          ...budgets.map(({ name, allowed }) => `disruption budget: ${name} allows ${allowed}`),
          ...new Set(nodes.flatMap(ruleLines)),
        ],
      },
      { heading: 'How to keep its pods', lines: hold ? [`hold it: ${command}`, ...hold] : [] },
      { heading: 'Unknown', lines: [...new Set(unknown)] },
    ],
    paint,
  );
}

const TAINT_COLUMNS: readonly Column<NodeTaint>[] = [
  { head: 'TAINT', of: ({ taint }) => taintText(taint) },
  {
    head: 'EVICTS',
    of: ({ evicts }) => (evicts === 'virtual' ? 'by policy' : evicts),
  },
  {
    head: 'SINCE',
    of: ({ since, known }) => (since === undefined ? '' : `${timeText(since)} (${known})`),
  },
];

const WORKLOAD_COLUMNS: readonly Column<NodeWorkload>[] = [
  {
    head: 'WORKLOAD',
    of: ({ namespace, owner }) => `${namespace}/${owner ? `${owner.kind}/${owner.name}` : '(none)'}`,
  },
  { head: 'PODS', of: ({ pods }) => String(pods) },
  {
    head: 'EVICTED',
    of: ({ evict: { pods, firstAt, lastAt, limited } }) => {
      if (firstAt === undefined || lastAt === undefined) return '';
      const last = lastAt === firstAt ? '' : ` to ${timeText(lastAt)}`;
      return `${pods}: ${timeText(firstAt)}${last}${limited ? ' at the earliest' : ''}`;
    },
  },
  {
    head: 'HELD',
    of: ({ held }) => held.map(({ by, pods }) => `${pods} ${by.map(keptLabel).join(' and ')}`).join(', '),
  },
  {
    head: 'STAY',
    of: ({ keep }) => keep.map(({ cause, pods }) => `${pods}: ${STAYS[cause]}`).join(', '),
  },
  { head: 'TERMINATING', of: ({ terminating }) => (terminating === 0 ? '' : String(terminating)) },
];

const STAYS: Readonly<Record<NodeWorkload['keep'][number]['cause'], string>> = {
  unbound: 'not bound to a node',
  untainted: 'no taint that evicts',
  tolerated: 'tolerated indefinitely',
  'bound-later': 'bound after the node was deleted',
};

const POD_COLUMNS: readonly Column<NodePod>[] = [
  { head: 'POD', of: ({ namespace, name }) => `${namespace}/${name}` },
  { head: 'OUTCOME', of: forecastText },
];

const PLACED_COLUMNS: readonly Column<NodePod & { readonly node: NodeName; readonly zone: string }>[] = [
  { head: 'NODE', of: ({ node }) => node },
  { head: 'ZONE', of: ({ zone }) => zone },
  ...POD_COLUMNS,
];

function forecastText({ outcome, heldBy }: NodePod): string {
  switch (outcome.kind) {
    case 'evict':
      return outcome.retrying
        ? `retrying at ${timeText(outcome.at)}: ${outcome.retrying.error}`
        : `evicted at ${timeText(outcome.at)}${outcome.pacedBy ? ' at the earliest' : ''}`;
    case 'held':
      return `${heldBy.map(({ kind }) => keptLabel(kind)).join(' and ')}, due ${timeText(outcome.dueAt)}`;
    case 'blocked':
      return `${outcome.by.length > 0 ? `budget ${outcome.by.join(', ')}` : 'rejected by admission'}, due ${timeText(outcome.dueAt)}`;
    case 'failed':
      return `failed at ${timeText(outcome.at)}`;
    case 'keep':
      return `stays: ${STAYS[outcome.cause]}`;
    case 'terminating':
      return 'terminating';
    case 'unknown':
      return 'unknown';
    default:
      return outcome satisfies never;
  }
}
