import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { EvictionGate } from './eviction-gate.ts';
import type { DeadlineCause, EvictionRecord } from './records.ts';

/** Something that became of an eviction that is still to come. */
export type Noted = Pick<EvictionRecord, 'uid' | 'namespace' | 'name' | 'fireAt' | 'reasons'> &
  (
    | {
        /** Its deadline, or what sets it, is another one than it was. */
        readonly what: 'moved';
        readonly from: { readonly fireAt: EpochMs; readonly reasons: readonly DeadlineCause[] };
      }
    /** It is due, and `by` forbids it; `would-have`: the cluster is only observed. */
    | { readonly what: 'held' | 'would-have'; readonly by: EvictionGate }
    /** `by` held it, and nothing does any more. */
    | { readonly what: 'freed'; readonly by: EvictionGate }
    /** Its disruption budget forbids it (`blocked`); or it failed for too long, and is left alone. */
    | { readonly what: 'blocked' | 'gave-up'; readonly error: string }
  );

/**
 * What became of an eviction, by its record before and after; `undefined`: nothing to tell later. That it was scheduled
 * needs no note: its record, and later its end, say when and why.
 */
export function changeOf(before: EvictionRecord | undefined, after: EvictionRecord): Noted | undefined {
  if (!before) return undefined;
  const { uid, namespace, name, fireAt, reasons } = after;
  const pod = { uid, namespace, name, fireAt, reasons };
  if (before.fireAt !== fireAt) {
    return { ...pod, what: 'moved', from: { fireAt: before.fireAt, reasons: before.reasons } };
  }
  if (after.gaveUpAt !== undefined && before.gaveUpAt === undefined) {
    return { ...pod, what: 'gave-up', error: after.failure?.error ?? '' };
  }
  if (after.blocked && !before.blocked) return { ...pod, what: 'blocked', error: after.blocked.reason };
  const [was, is] = [before.held?.by, after.held?.by];
  if (is && is.kind !== was?.kind) {
    return { ...pod, what: is.kind === 'observe' ? 'would-have' : 'held', by: is };
  }
  return was && !is ? { ...pod, what: 'freed', by: was } : undefined;
}
