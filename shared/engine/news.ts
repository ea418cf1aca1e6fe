import { defined } from '#shared/defined.ts';
import type { Version } from '#shared/eviction/facts.ts';
import type { NodeRef, PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { Cause, EvictionRecord } from '#shared/eviction/records.ts';
import { taintText } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface CanceledPod extends PodRef {
  readonly uid: PodUid;
}

/** A pod whose eviction was scheduled or rescheduled. */
export interface Countdown extends CanceledPod {
  readonly dueAt: EpochMs;
  readonly moved: boolean;
  /** Taints that set the deadline, as kubectl prints them, with the toleration that applies and its seconds. */
  readonly because: readonly Because[];
}

export interface Because {
  readonly taint: string;
  /** The toleration's index in the pod's list. Absent: no toleration matches the taint. */
  readonly toleration?: number;
  readonly seconds: number;
}

export const becauseOf = ({ taint, toleration, seconds }: Cause): Because => ({
  taint: taintText(taint),
  ...defined({ toleration }),
  seconds,
});

export const countdownOf = ({
  uid,
  namespace,
  name,
  dueAt,
  causes,
}: EvictionRecord): Omit<Countdown, 'moved'> => ({
  uid,
  namespace,
  name,
  dueAt,
  because: causes.map(becauseOf),
});

export interface CanceledPods extends NodeRef {
  readonly version: Version;
  readonly pods: readonly CanceledPod[];
}

/** Announcements for a node: evictions canceled by deltas of those versions, and evictions (re)scheduled. */
export interface News {
  readonly canceled: readonly Pick<CanceledPods, 'version' | 'pods'>[];
  readonly countdowns: readonly Countdown[];
}
