import { defined } from '#shared/defined.ts';
import type { TaintOrigin } from '#shared/eviction/facts.ts';
import { podDeadlines } from '#shared/eviction/pod-deadline.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { TimedTaint } from '#shared/eviction/records.ts';
import { INT64_MAX } from '#shared/taints/int64.ts';
import { tolerates } from '#shared/taints/match.ts';
import { evicts, type Taint, type Toleration } from '#shared/taints/taint.ts';
import { asExecuting } from '#shared/taints/virtual.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ForecastPod, NodeForecast } from './forecast.ts';

export interface PlacedToleration {
  readonly index: number;
  /** The pod's own value; absent: indefinitely. */
  readonly seconds?: number;
}

export interface TaintAccount {
  readonly taint: Pick<Taint, 'key' | 'value' | 'effect'>;
  /** `no`: the taint only prevents scheduling. `virtual`: so does this one, but policy treats it as NoExecute. */
  readonly evicts: 'yes' | 'virtual' | 'no';
  /** When the countdown started; only for taints that evict. `known`: the evidence for that time. */
  readonly since?: EpochMs;
  readonly known?: TaintOrigin;
  /** The toleration that decides: the first match; absent: none matches. */
  readonly toleration?: PlacedToleration;
  readonly shadowed: readonly PlacedToleration[];
  /** How long the taint is tolerated; absent: indefinitely, or the taint does not evict. */
  readonly seconds?: number;
  /** A field of the cluster's policy, or `takeover`, the note of a pod that is taken over. */
  readonly changedBy?: string;
  /** The pod's deadline by this taint alone; absent: never. */
  readonly deadlineAt?: EpochMs;
  /** This taint, perhaps with others, sets the pod's deadline. */
  readonly decides: boolean;
  /** A scheduler places such a pod on the node in spite of the taint. The duration of the toleration does not matter. */
  readonly schedules: boolean;
}

/** The effect of each taint on a pod bound at `podSince`: evicting ones first, in the node's order, then the others. */
export function accountsOf(
  { taints, deletedAt }: Pick<NodeForecast, 'taints' | 'deletedAt'>,
  live: readonly Taint[],
  { tolerations }: Pick<ForecastPod, 'tolerations'>,
  podSince: EpochMs,
  rules: Rules,
): readonly TaintAccount[] {
  const first = podDeadlines(taints, deletedAt, rules)(tolerations, podSince);
  const isTimed = ({ key, effect }: Taint) =>
    taints.some((timed) => timed.key === key && timed.effect === effect);
  const evicting = taints.map((taint) => {
    const own = podDeadlines([taint], deletedAt, rules)(tolerations, podSince);
    const [reason] = own?.causes ?? [];
    return {
      ...accountOf(taint, tolerations, rules),
      since: taint.since,
      known: taint.known,
      ...(own && reason ? { seconds: reason.seconds, deadlineAt: own.at } : {}),
      ...(reason?.policy === undefined ? {} : { changedBy: reason.policy }),
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
  // A pod that tolerates a virtual taint as the NoSchedule taint that it is stays.
  const matches = executing.length > 0 ? executing : asItIs;
  const [toleration, ...shadowed] = matches;
  return {
    taint: { key, ...(value ? { value } : {}), effect },
    evicts: virtual ? 'virtual' : evicts(taint) ? 'yes' : 'no',
    ...defined({ toleration }),
    shadowed,
    decides: false,
    schedules: effect === 'PreferNoSchedule' || asItIs.length > 0,
  };
}

const placed = ({ tolerationSeconds: seconds }: Toleration, index: number): PlacedToleration => ({
  index,
  ...(seconds === undefined || seconds === INT64_MAX ? {} : { seconds: Number(seconds) }),
});
