import type { Reason } from '#shared/eviction/records.ts';
import { taintText } from '#shared/taints/taint.ts';
import { timeText } from '#shared/time/time-text.ts';

/** Why a pod must go, for people. */
export function reasonTexts(reasons: readonly Reason[]): readonly string[] {
  return reasons.map(({ taint, since, known, toleration, seconds, policy }) => {
    const tolerated = toleration === undefined ? 'not tolerated' : `toleration ${toleration}: ${seconds} s`;
    const changed = policy === undefined ? '' : ` by ${policy}`;
    return `${taintText(taint)} since ${timeText(since)} (${known}), ${tolerated}${changed}`;
  });
}

/** Why a pod must go, for programs. */
export const reasonsJson = (reasons: readonly Reason[]): readonly object[] =>
  reasons.map(({ taint, since, ...reason }) => ({
    taint: taintText(taint),
    since: new Date(since).toISOString(),
    ...reason,
  }));
