import type { PodStory } from '#functions/operator/explain-pod.ts';
import { brakeText } from '#shared/explain/brake-words.ts';
import type { PlacedToleration, TaintAccount } from '#shared/explain/taints.ts';
import { taintText } from '#shared/taints/taint.ts';
import { timeText } from '#shared/time/time-text.ts';
import { podHistoryLines } from './history.ts';
import { type Column, spanText } from './output.ts';
import type { Paint } from './paint.ts';
import { sectionsText, tableLines } from './sections.ts';

/** A pod's story for people: the answer, then what it rests on. */
export function podStoryText(
  story: PodStory,
  { wide, paint }: { readonly wide: boolean; readonly paint: Paint },
): string {
  const { headline, taints, history, unknown, node } = story;
  return sectionsText(
    headline,
    [
      {
        heading: `Taints of node ${node}, and what the pod says of them (* decides)`,
        lines: tableLines(taints, columnsFor(taints), { wide, paint }),
      },
      { heading: 'What governs it', lines: governingLines(story) },
      { heading: 'Once it is gone', lines: schedulingLines(story) },
      { heading: 'What would keep it', lines: keepingLines(story) },
      { heading: 'What lets it go', lines: story.release },
      { heading: 'History', lines: podHistoryLines(history, { wide, paint }) },
      { heading: 'Not known', lines: unknown.map(({ what, why }) => `${what}: ${why}`) },
    ],
    paint,
  );
}

/** Seldom is a toleration shadowed. */
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
    head: 'GOES',
    of: ({ evicts, deadlineAt }) =>
      evicts === 'no' ? 'does not evict' : deadlineAt === undefined ? 'never' : timeText(deadlineAt),
  },
];

function tolerationText({ toleration, changedBy, seconds }: TaintAccount): string {
  const said = toleration ? placeText(toleration) : 'none';
  if (changedBy === 'tolerationSeconds') return `${said}, by policy ${seconds} s`;
  return changedBy === 'virtualKeys' ? `${said}, by policy as NoExecute` : said;
}

/** As `kubectl get pod -o jsonpath` counts them, from 0. */
const placeText = ({ index, seconds }: PlacedToleration): string =>
  `[${index}] ${seconds === undefined ? 'for ever' : `${seconds} s`}`;

function governingLines({ policy, brakes, budgets = [], builtIn, ...story }: PodStory): readonly string[] {
  const lines: string[] = workloadLines(story);
  if (policy) {
    const { mode, method, rate } = policy;
    const by = method.kind === 'delete' ? 'deletes' : 'asks the Eviction API';
    lines.push(`policy: ${mode}, ${by}${rate === undefined ? '' : `, at most ${rate} pods a second`}`);
  }
  for (const brake of brakes) lines.push(`held by: ${brakeText(brake, timeText)}`);
  for (const { name, allowed } of budgets) {
    const heeded = policy?.method.kind === 'evict' ? '' : '; it is not heeded by this method';
    lines.push(`disruption budget: ${name}, which allows ${allowed} now${heeded}`);
  }
  if (builtIn) {
    const { state, evidence, evictsAt } = builtIn;
    const does =
      evictsAt === undefined ? 'it would not evict the pod' : `it evicts it at ${timeText(evictsAt)}`;
    const told = state === 'off' ? '' : state === 'on' ? `; ${does}` : `; where it runs ${does}`;
    lines.push(`built-in controller: ${state}${evidence === '' ? '' : ` (${evidence})`}${told}`);
  }
  return lines;
}

/** What runs it; and, where something stands between the two, what made it. Whom a kubelet runs stands on its own. */
function workloadLines({ workload, owner }: Pick<PodStory, 'workload' | 'owner'>): string[] {
  if (!workload || !owner || workload.kind === 'Node') return [];
  const made = workload.kind === owner.kind ? '' : `, by ${owner.kind} ${owner.name}`;
  return [`workload: ${workload.kind} ${workload.name}${made}`];
}

function schedulingLines({ scheduling, owner, workload, node, fate, taints }: PodStory): readonly string[] {
  if (!scheduling || fate.kind === 'stays') return [];
  const { replacedBy, keptOffBy, loops } = scheduling;
  const maker = workload ?? owner;
  const by = maker ? `${maker.kind} ${maker.name}` : '';
  switch (replacedBy) {
    case 'nobody':
      return ['nobody makes another: no controller owns it'];
    case 'kubelet':
      return [`the kubelet of ${node} runs it on: it is a static pod, and only its mirror is deleted`];
    case 'daemonset':
    case 'controller': {
      const made = `${by} makes another`;
      if (keptOffBy.length > 0)
        return [`${made}; ${keptOffBy.map(taintText).join(' and ')} keeps it off ${node}`];
      if (!loops) return [made];
      const seconds = Math.min(...taints.flatMap((taint) => taint.seconds ?? []));
      const again = seconds === 0 ? 'at once' : `after ${spanText(seconds * 1000)}`;
      const where =
        replacedBy === 'daemonset' ? `, on ${node}` : `, and a scheduler may place it on ${node} again`;
      return [
        `${made}${where}, as it tolerates the taint; it is then evicted ${again}, and so on`,
        'a toleration with a time limit does not keep pods off a node: a NoSchedule taint that it does not tolerate would',
      ];
    }
    default:
      return replacedBy satisfies never;
  }
}

function keepingLines({ remedies, builtIn }: PodStory): readonly string[] {
  return remedies.flatMap((remedy) => {
    switch (remedy.kind) {
      case 'tolerate':
        return [
          'tolerate it for ever (and in the template of its workload, for the next ones):',
          `  ${remedy.command}`,
        ];
      case 'untaint':
        return [`remove ${taintText(remedy.taint)}:`, `  ${remedy.command}`];
      case 'mend-node':
        return [
          `bring the node back: ${remedy.taints.map(taintText).join(' and ')} is there for as long as it is down`,
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
    ? ', which the built-in controller does not heed'
    : ', which the built-in controller, where it runs, does not heed';
}
