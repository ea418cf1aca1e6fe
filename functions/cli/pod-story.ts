import { gateText } from '#shared/explain/gate-text.ts';
import { failsJob, jobText } from '#shared/explain/job.ts';
import type { PlacedToleration, TaintAccount } from '#shared/explain/taints.ts';
import type { PodStory } from '#shared/operations/ask/explain-pod.ts';
import { taintText } from '#shared/taints/taint.ts';
import { durationText } from '#shared/time/duration.ts';
import { timeText } from '#shared/time/time-text.ts';
import { podHistoryLines } from './history.ts';
import type { Column } from './output.ts';
import type { Paint } from './paint.ts';
import { sectionsText, tableLines } from './sections.ts';

/** Returns a pod's story as text for people: first the answer, then the evidence. */
export function podStoryText(
  story: PodStory,
  { wide, paint }: { readonly wide: boolean; readonly paint: Paint },
): string {
  const { headline, taints, history, unknown, node } = story;
  return sectionsText(
    headline,
    [
      {
        heading: `Taints of node ${node}, and the pod's tolerations (* decides)`,
        lines: tableLines(taints, columnsFor(taints), { wide, paint }),
      },
      { heading: 'Rules', lines: governingLines(story) },
      { heading: 'After the eviction', lines: schedulingLines(story) },
      { heading: 'How to keep the pod', lines: keepingLines(story) },
      { heading: 'How to release it', lines: story.release },
      { heading: 'History', lines: podHistoryLines(history, { wide, paint }) },
      { heading: 'Unknown', lines: unknown.map(({ what, reason }) => `${what}: ${reason}`) },
    ],
    paint,
  );
}

/** Leaves out the column SHADOWED unless a toleration is shadowed, which is rare. */
const columnsFor = (taints: readonly TaintAccount[]): readonly Column<TaintAccount>[] =>
  TAINT_COLUMNS.filter(
    ({ head }) => head !== 'SHADOWED' || taints.some(({ shadowed }) => shadowed.length > 0),
  );

const TAINT_COLUMNS: readonly Column<TaintAccount>[] = [
  { head: '', of: ({ decides }) => (decides ? '*' : '') },
  { head: 'TAINT', of: ({ taint }) => taintText(taint) },
  {
    head: 'SINCE',
    of: ({ since, known }) => (since === undefined ? '' : `${timeText(since)} (${known})`),
  },
  { head: 'TOLERATION', of: tolerationText },
  { head: 'SHADOWED', of: ({ shadowed }) => shadowed.map(placeText).join(', ') },
  {
    head: 'DEADLINE',
    of: ({ evicts, deadlineAt }) =>
      evicts === 'no' ? 'does not evict' : deadlineAt === undefined ? 'never' : timeText(deadlineAt),
  },
];

function tolerationText({ toleration, changedBy, seconds }: TaintAccount): string {
  const matched = toleration ? placeText(toleration) : 'none';
  if (changedBy === 'tolerationSecondsOverrides')
    return `${matched}, by policy ${durationText((seconds ?? 0) * 1000)}`;
  return changedBy === 'treatAsNoExecute' ? `${matched}, by policy as NoExecute` : matched;
}

/** Formats a toleration with its index, counted from 0 as in `kubectl get pod -o jsonpath`. */
const placeText = ({ index, seconds }: PlacedToleration): string =>
  `[${index}] ${seconds === undefined ? 'indefinitely' : durationText(seconds * 1000)}`;

function governingLines({ policy, gates, budgets = [], builtIn, ...story }: PodStory): readonly string[] {
  const lines: string[] = workloadLines(story);
  if (policy) {
    const { mode, method, evictionRate, ...others } = policy;
    others satisfies Readonly<Record<Exclude<keyof typeof others, ShownElsewhere>, never>>;
    const manner = method.kind === 'delete' ? 'deletes pods' : 'uses the Eviction API';
    lines.push(
      `policy: ${mode}, ${manner}${evictionRate === undefined ? '' : `, at most ${evictionRate} pods per second`}`,
    );
  }
  for (const gate of gates) lines.push(`held by: ${gateText(gate, timeText)}`);
  for (const { name, allowed } of budgets) {
    const heeded = policy?.method.kind === 'evict' ? '' : '; this method ignores it';
    lines.push(
      `disruption budget: ${name}, which allows ${allowed} ${allowed === 1 ? 'disruption' : 'disruptions'} now${heeded}`,
    );
  }
  if (builtIn) {
    const { state, evidence, evictsAt } = builtIn;
    const does =
      evictsAt === undefined ? 'it would not evict the pod' : `it evicts the pod at ${timeText(evictsAt)}`;
    const consequence = state === 'off' ? '' : state === 'on' ? `; ${does}` : `; if it runs, ${does}`;
    lines.push(`built-in controller: ${state}${evidence === '' ? '' : ` (${evidence})`}${consequence}`);
  }
  return lines;
}

type OfTiming = 'tolerationSecondsOverrides' | 'treatAsNoExecute' | 'maxEvictionsPerWorkload';
/** Settings that the forecast or a gate shows where they apply. */
type ShownElsewhere = OfTiming | 'releaseRate';

/** A static pod has no workload. */
function workloadLines({ workload, owner }: Pick<PodStory, 'workload' | 'owner'>): string[] {
  if (!workload || !owner || workload.kind === 'Node') return [];
  const made = workload.kind === owner.kind ? '' : `, by ${owner.kind} ${owner.name}`;
  return [`workload: ${workload.kind} ${workload.name}${made}`];
}

function schedulingLines({
  scheduling,
  owner,
  workload,
  node,
  outcome,
  taints,
}: PodStory): readonly string[] {
  if (!scheduling || outcome.kind === 'keep') return [];
  const { replacedBy, keptOffBy, loops, finished, job } = scheduling;
  if (finished) return ['the pod has finished: only its object and its logs are deleted'];
  const maker = job ? owner : (workload ?? owner);
  const creator = maker ? `${maker.kind} ${maker.name}` : '';
  const once = owner?.kind === 'StatefulSet' ? ' once this pod has ended' : '';
  const made = `${creator} ${job ? jobText(job) : `creates a replacement${once}`}`;
  if (job && failsJob(job)) return [made];
  switch (replacedBy) {
    case 'nobody':
      return ['no controller owns the pod, so no replacement is created'];
    case 'kubelet':
      return [`it is a static pod: only its mirror pod is deleted, and the kubelet of ${node} recreates it`];
    case 'daemonset':
    case 'controller': {
      const off = keptOffBy.map(taintText).join(' and ');
      if (off !== '' && replacedBy === 'daemonset')
        return [`${creator} creates no replacement on ${node} as long as it has ${off}`];
      if (off !== '') return [`${made}; ${off} keeps the replacement off ${node}`];
      if (!loops) return [made];
      const seconds = Math.min(...taints.flatMap((taint) => taint.seconds ?? []));
      const again = seconds === 0 ? 'immediately' : `after ${durationText(seconds * 1000)}`;
      const where =
        replacedBy === 'daemonset' ? `, on ${node}` : `, and a scheduler may place it on ${node} again`;
      return [
        `${made}${where}, because it tolerates the taint; the replacement is then evicted ${again}, repeatedly${job?.kind === 'replaced' ? ', until the Job fails' : ''}`,
        'a toleration with a time limit does not keep pods off a node: add a NoSchedule taint that the pod does not tolerate',
      ];
    }
    default:
      return replacedBy satisfies never;
  }
}

function keepingLines({ remediations, builtIn }: PodStory): readonly string[] {
  return remediations.flatMap((remedy) => {
    switch (remedy.kind) {
      case 'tolerate':
        return [
          'tolerate the taint indefinitely (also in the template of the workload, for its next pods):',
          `  ${remedy.command}`,
        ];
      case 'untaint':
        return [`remove ${taintText(remedy.taint)}:`, `  ${remedy.command}`];
      case 'fix-node':
        return [
          `repair the node: ${remedy.taints.map(taintText).join(' and ')} stays as long as the node is down`,
        ];
      case 'hold':
        return [`hold it${heedText(builtIn)}:`, `  ${remedy.command}`];
      default:
        return remedy satisfies never;
    }
  });
}

function heedText(builtIn: PodStory['builtIn']): string {
  if (builtIn?.evictsAt === undefined || builtIn.state === 'off') return '';
  return builtIn.state === 'on'
    ? ', which the built-in controller ignores'
    : ', which the built-in controller ignores if it runs';
}
