import type { TaintAccount } from '#shared/explain/taints.ts';
import type { PodStory } from '#shared/operations/ask/explain-pod.ts';
import {
  governingFacts,
  placeText,
  remedyText,
  schedulingTexts,
  tolerationText,
} from '#shared/operations/ask/words.ts';
import { taintText } from '#shared/taints/taint.ts';
import { timeText } from '#shared/time/time-text.ts';
import { podHistoryLines } from './history.ts';
import type { Column, TableLayout } from './output.ts';
import { sectionsText, tableLines } from './sections.ts';

/** Returns a pod's story as text for people: first the answer, then the evidence. */
export function podStoryText(story: PodStory, { wide, paint }: TableLayout): string {
  const { headline, taints, history, unknown, node } = story;
  return sectionsText(
    headline,
    [
      {
        heading: `Taints of node ${node}, and the pod's tolerations (* decides)`,
        lines: tableLines(taints, columnsFor(taints), { wide, paint }),
      },
      { heading: 'Rules', lines: governingFacts(story, 'pod').map(([name, text]) => `${name}: ${text}`) },
      { heading: 'After the eviction', lines: schedulingTexts(story) },
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

const keepingLines = ({ remediations, builtIn }: PodStory): readonly string[] =>
  remediations.flatMap((remedy) => {
    const text = remedyText(remedy, builtIn);
    return 'command' in remedy ? [`${text}:`, `  ${remedy.command}`] : [text];
  });
