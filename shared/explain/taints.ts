import { podDeadlines } from '#shared/eviction/pod-deadline.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { TimedTaint } from '#shared/eviction/records.ts';
import { INT64_MAX } from '#shared/taints/int64.ts';
import { tolerates } from '#shared/taints/match.ts';
import { evicts, type Taint, type Toleration } from '#shared/taints/taint.ts';
import { asExecuting } from '#shared/taints/virtual.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { originOf, settingOf, type TaintOrigin } from './cause.ts';
import type { AskedPod, NodeForecast } from './forecast.ts';

/** A toleration of a pod, by its place in the pod's list, counted from 0. */
export interface PlacedToleration {
  readonly index: number;
  /** As the pod says it; absent: for ever. */
  readonly seconds?: number;
}

/** What one taint of a node means for a pod. */
export interface TaintAccount {
  readonly taint: Pick<Taint, 'key' | 'value' | 'effect'>;
  /** `no`: it only keeps pods from being scheduled; `virtual`: it does so by itself, and policy has it evict. */
  readonly evicts: 'yes' | 'virtual' | 'no';
  /** When its countdown started, and how that is known; with those that evict only. */
  readonly since?: EpochMs;
  readonly known?: TaintOrigin;
  /** The one that decides, which is the first that matches; absent: none does. */
  readonly toleration?: PlacedToleration;
  /** Later ones that match as well, and count for nothing. */
  readonly shadowed: readonly PlacedToleration[];
  /** For so long it is tolerated; absent: for ever, or it does not evict. */
  readonly seconds?: number;
  /** What changed that: a field of the cluster's policy, or `takeover`, the note of a pod that is taken over. */
  readonly changedBy?: string;
  /** When the pod must go by this taint alone; absent: never. */
  readonly deadlineAt?: EpochMs;
  /** It is this taint, perhaps among others, that sets when the pod must go. */
  readonly decides: boolean;
  /** Whether a scheduler places such a pod on the node in spite of it; for how long it is tolerated does not count. */
  readonly schedules: boolean;
}

/**
 * What each taint of a node means for a pod that was bound at `podSince`: those that evict in the node's order, then the
 * others of `live`.
 */
export function accountsOf(
  { taints, deletedAt }: Pick<NodeForecast, 'taints' | 'deletedAt'>,
  live: readonly Taint[],
  { tolerations }: Pick<AskedPod, 'tolerations'>,
  podSince: EpochMs,
  rules: Rules,
): readonly TaintAccount[] {
  const first = podDeadlines(taints, deletedAt, rules)(tolerations, podSince);
  const isTimed = ({ key, effect }: Taint) =>
    taints.some((timed) => timed.key === key && timed.effect === effect);
  const evicting = taints.map((taint) => {
    const own = podDeadlines([taint], deletedAt, rules)(tolerations, podSince);
    const [reason] = own?.reasons ?? [];
    return {
      ...accountOf(taint, tolerations, rules),
      since: taint.since,
      known: originOf(taint.known),
      ...(own && reason ? { seconds: reason.seconds, deadlineAt: own.at } : {}),
      ...(reason?.policy === undefined ? {} : { changedBy: settingOf(reason.policy) }),
      decides: own !== undefined && own.at === first?.at,
    };
  });
  return [
    ...evicting,
    ...live.filter((taint) => !isTimed(taint)).map((taint) => accountOf(taint, tolerations, rules)),
  ];
}

function accountOf(
  taint: Taint | TimedTaint,
  tolerations: readonly Toleration[],
  { matching }: Rules,
): TaintAccount {
  const { key, value, effect, virtual } = taint;
  const places = (matched: Taint) =>
    tolerations.flatMap((toleration, index) =>
      tolerates(matched, toleration, matching) ? [placed(toleration, index)] : [],
    );
  const asItIs = places(taint);
  const executing = places(asExecuting(taint));
  // Whoever tolerates a virtual taint as the NoSchedule taint it is stays.
  const matches = executing.length > 0 ? executing : asItIs;
  const [toleration, ...shadowed] = matches;
  return {
    taint: { key, ...(value ? { value } : {}), effect },
    evicts: virtual ? 'virtual' : evicts(taint) ? 'yes' : 'no',
    ...(toleration ? { toleration } : {}),
    shadowed,
    decides: false,
    schedules: effect === 'PreferNoSchedule' || asItIs.length > 0,
  };
}

const placed = ({ tolerationSeconds, ownSeconds }: Toleration, index: number): PlacedToleration => {
  const seconds = ownSeconds ?? tolerationSeconds;
  return { index, ...(seconds === undefined || seconds === INT64_MAX ? {} : { seconds: Number(seconds) }) };
};
