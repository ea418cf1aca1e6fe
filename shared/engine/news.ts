import type { Version } from '#shared/eviction/facts.ts';
import type { NodeRef, PodRef, PodUid } from '#shared/eviction/identity.ts';
import type { DeadlineCause, EvictionRecord } from '#shared/eviction/records.ts';
import { taintText } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A pod whose eviction was cancelled. */
export interface CancelledPod extends PodRef {
  readonly uid: PodUid;
}

/** A pod whose countdown started, or moved. */
export interface Countdown extends CancelledPod {
  readonly fireAt: EpochMs;
  /** It was to go at another moment before. */
  readonly moved: boolean;
  /** The taints that set the moment, as kubectl prints them; which toleration of the pod counts, and for how long. */
  readonly because: readonly Because[];
}

export interface Because {
  readonly taint: string;
  /** Its place in the pod's list; absent: none tolerates the taint. */
  readonly toleration?: number;
  readonly seconds: number;
}

/** What a reason of an eviction says, in few words. */
export const becauseOf = ({ taint, toleration, seconds }: DeadlineCause): Because => ({
  taint: taintText(taint),
  ...(toleration === undefined ? {} : { toleration }),
  seconds,
});

/** When and why a scheduled pod goes, as it is announced. */
export const countdownOf = ({
  uid,
  namespace,
  name,
  fireAt,
  reasons,
}: EvictionRecord): Omit<Countdown, 'moved'> => ({
  uid,
  namespace,
  name,
  fireAt,
  because: reasons.map(becauseOf),
});

export interface CancelledPods extends NodeRef {
  readonly version: Version;
  readonly pods: readonly CancelledPod[];
}

/** What there is to announce of a node: what deltas of those versions cancelled, and whose countdowns started or moved. */
export interface News {
  readonly cancelled: readonly Pick<CancelledPods, 'version' | 'pods'>[];
  readonly countdowns: readonly Countdown[];
}
