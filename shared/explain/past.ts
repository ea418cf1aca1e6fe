import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Deletion } from '#shared/eviction/facts.ts';
import type { NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { Noted } from '#shared/eviction/noted.ts';
import type { CancelReason, DeadlineCause, Outcome } from '#shared/eviction/records.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Cause, causesOf } from './cause.ts';

/** Something that history tells of a pod. */
export interface PastEntry {
  readonly at: EpochMs;
  readonly ref: { readonly node: NodeName };
  readonly uid: PodUid;
  readonly what: 'scheduled' | Noted['what'] | Outcome;
  /** When it was to go, as was known then. */
  readonly fireAt: EpochMs;
  readonly reasons: readonly DeadlineCause[];
  readonly movedFrom?: EpochMs;
  readonly by?: EvictionGate;
  readonly lateMs?: number;
  readonly cancelled?: CancelReason;
  readonly error?: string;
  readonly deleted?: Deletion;
}

/** What became of a pod that is there no more. */
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
      /** When it was deleted; where history does not say who did that, when it was last heard of. */
      readonly at: EpochMs;
      readonly node: NodeName;
      /** Absent: history does not say. */
      readonly by?: Deletion['by'];
      /** When it was to go by us; absent: it was not. */
      readonly dueAt?: EpochMs;
      readonly causes: readonly Cause[];
      /** Its eviction was cancelled while it was there. */
      readonly cancelReason?: CancelReason;
      /** It was due in a cluster that was only observed. */
      readonly observed: boolean;
    }
  /** History, for as long as it is kept, knows no pod of this name. */
  | { readonly kind: 'not-found' };

/** More than that no date holds: nothing of ours was to evict it. */
const NEVER: EpochMs = 8.64e15;

/** What became of the last of the pods that history tells of, but of `except`. `entries`: the oldest first. */
export function pastOutcome(entries: readonly PastEntry[], except?: PodUid): PastOutcome {
  const last = entries.findLast(({ uid }) => uid !== except);
  if (!last) return { kind: 'not-found' };
  const own = entries.filter(({ uid }) => uid === last.uid);
  const done = own.findLast(({ what }) => what === 'done');
  const { node } = last.ref;
  if (done) {
    const { at, lateMs = 0, fireAt: dueAt, reasons } = done;
    return { kind: 'evicted', at, node, delayMs: lateMs, dueAt, causes: causesOf(reasons) };
  }
  const { deleted, fireAt, reasons } = own.findLast((entry) => entry.deleted) ?? last;
  const cancelled = last.cancelled === 'pod-gone' ? undefined : last.cancelled;
  return {
    kind: 'deleted',
    at: deleted?.at ?? last.at,
    node,
    ...(deleted ? { by: deleted.by } : {}),
    ...(fireAt >= NEVER ? {} : { dueAt: fireAt }),
    causes: causesOf(reasons),
    ...(cancelled ? { cancelReason: cancelled } : {}),
    observed: own.some(({ what }) => what === 'would-have'),
  };
}
