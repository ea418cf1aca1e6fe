import { defined } from '#shared/defined.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Deletion } from '#shared/eviction/facts.ts';
import type { NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import type { CancelReason, Cause, Outcome } from '#shared/eviction/records.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface PastEntry {
  readonly at: EpochMs;
  readonly node: NodeName;
  readonly uid: PodUid;
  readonly event: 'scheduled' | Noted['event'] | Outcome;
  /** Absent: Taintward had not scheduled the eviction. */
  readonly dueAt?: EpochMs;
  readonly causes: readonly Cause[];
  readonly previousDueAt?: EpochMs;
  readonly by?: EvictionGate;
  readonly delayMs?: number;
  readonly cancelReason?: CancelReason;
  readonly error?: string;
  readonly deleted?: Deletion;
}

export type PastOutcome =
  | {
      readonly kind: 'evicted';
      readonly at: EpochMs;
      readonly node: NodeName;
      readonly delayMs: number;
      readonly dueAt: EpochMs;
      readonly causes: readonly Cause[];
    }
  | {
      readonly kind: 'deleted';
      /** When the pod was deleted. If history does not name the actor, the time of the last entry. */
      readonly at: EpochMs;
      readonly node: NodeName;
      /** Absent: history does not name the actor. */
      readonly by?: Deletion['by'];
      /** The deadline of Taintward's eviction; absent: none was scheduled. */
      readonly dueAt?: EpochMs;
      readonly causes: readonly Cause[];
      /** Why the eviction was canceled while the pod existed. */
      readonly cancelReason?: CancelReason;
      /** The eviction was due in a cluster that was only observed. */
      readonly observed: boolean;
    }
  /** History, as far as it is kept, has no pod of this name. */
  | { readonly kind: 'not-found' };

/** Returns the outcome for the last pod in history, ignoring the pod `except`. `entries`: oldest first. */
export function pastOutcome(entries: readonly PastEntry[], except?: PodUid): PastOutcome {
  const last = entries.findLast(({ uid }) => uid !== except);
  if (!last) return { kind: 'not-found' };
  const own = entries.filter(({ uid }) => uid === last.uid);
  const done = own.findLast(({ event }) => event === 'evicted');
  const { node } = last;
  if (done) {
    const { at, delayMs = 0, dueAt = at, causes } = done;
    return { kind: 'evicted', at, node, delayMs, dueAt, causes };
  }
  const { deleted, dueAt, causes } = own.findLast((entry) => entry.deleted) ?? last;
  const cancelReason = last.cancelReason === 'pod-gone' ? undefined : last.cancelReason;
  return {
    kind: 'deleted',
    at: deleted?.at ?? last.at,
    node,
    ...(deleted ? { by: deleted.by } : {}),
    ...defined({ dueAt }),
    causes,
    ...(cancelReason ? { cancelReason } : {}),
    observed: own.some(({ event }) => event === 'would-evict'),
  };
}
