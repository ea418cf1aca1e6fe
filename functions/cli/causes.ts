import type { Cause } from '#shared/eviction/records.ts';
import { taintText } from '#shared/taints/taint.ts';
import { durationText } from '#shared/time/duration.ts';
import { timeText } from '#shared/time/time-text.ts';

export function causeTexts(causes: readonly Cause[]): readonly string[] {
  return causes.map(({ taint, since, known, toleration, seconds, policy }) => {
    const tolerated =
      toleration === undefined
        ? 'not tolerated'
        : `toleration ${toleration}: ${durationText(seconds * 1000)}`;
    const changed = policy === undefined ? '' : ` by ${policy}`;
    return `${taintText(taint)} since ${timeText(since)} (${known}), ${tolerated}${changed}`;
  });
}

export const causesOutput = (causes: readonly Cause[]) =>
  causes.map(({ taint, ...cause }) => ({ taint: taintText(taint), ...cause }));
