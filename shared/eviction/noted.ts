import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { EvictionGate } from './eviction-gate.ts';
import type { Cause, EvictionRecord } from './records.ts';

/** A change of a pending eviction. */
export type Noted = Pick<EvictionRecord, 'uid' | 'namespace' | 'name' | 'dueAt' | 'causes'> &
  (
    | {
        readonly event: 'rescheduled';
        readonly from: { readonly dueAt: EpochMs; readonly causes: readonly Cause[] };
      }
    /** The eviction is due, and the gate `by` holds it; `would-evict`: the cluster is only observed. */
    | { readonly event: 'held' | 'would-evict'; readonly by: EvictionGate }
    /** The gate `by` held the eviction, and opened. */
    | { readonly event: 'released'; readonly by: EvictionGate }
    /** The Eviction API blocks the eviction, or it failed for too long and is not retried (`failed`). */
    | { readonly event: 'blocked' | 'failed'; readonly error: string }
  );

/**
 * The change between two states of a record; `undefined`: nothing to report. A new record needs no note: it states the
 * time and the causes, and so does its final record.
 */
export function changeOf(before: EvictionRecord | undefined, after: EvictionRecord): Noted | undefined {
  if (!before) return undefined;
  const { uid, namespace, name, dueAt, causes } = after;
  const pod = { uid, namespace, name, dueAt, causes };
  if (before.dueAt !== dueAt) {
    return { ...pod, event: 'rescheduled', from: { dueAt: before.dueAt, causes: before.causes } };
  }
  if (after.gaveUpAt !== undefined && before.gaveUpAt === undefined) {
    return { ...pod, event: 'failed', error: after.failure?.error ?? '' };
  }
  if (after.blocked && !before.blocked) return { ...pod, event: 'blocked', error: after.blocked.reason };
  const [was, gate] = [before.held?.by, after.held?.by];
  if (gate && gate.kind !== was?.kind) {
    return { ...pod, event: gate.kind === 'observe' ? 'would-evict' : 'held', by: gate };
  }
  return was && !gate ? { ...pod, event: 'released', by: was } : undefined;
}
