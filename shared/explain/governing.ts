import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { isOn, modeOf } from '#shared/eviction/gate.ts';
import { DEFAULT_POLICY, type Policy, type Rules } from '#shared/eviction/policy.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Forecast } from './forecast.ts';

/**
 * How a cluster's policy evicts, by the names of its settings, without the settings that select pods, and without the
 * guard's.
 */
export interface PolicyAccount {
  readonly mode: Policy['mode'];
  readonly pausedUntil?: EpochMs;
  readonly method:
    | { readonly kind: 'delete' }
    | { readonly kind: 'evict'; readonly timeoutMs: number; readonly onTimeout: 'delete' | 'fail' };
  readonly evictionRate?: number;
  readonly releaseRate: number;
  readonly maxEvictionsPerWorkload?: NonNullable<Policy['maxEvictionsPerWorkload']>;
  readonly tolerationSecondsOverrides: Policy['tolerationSeconds'];
  readonly treatAsNoExecute: Policy['virtualKeys'];
}

/** The outcome for a pod is unknown, for this reason. */
export interface UnknownForecast {
  readonly kind: 'unknown';
  readonly reason: string;
}

/** Returns the rules of a cluster with the default policy, but in enforce mode. */
export const enforcedRules = (matching: MatchOptions): Rules => ({
  policy: { ...DEFAULT_POLICY, mode: 'enforce' },
  ...{ ordersRevision: 0, policyRevision: 0, stops: [], holds: [], trips: [], guardRevision: 0, matching },
});

/** Returns the rules of the built-in controller: enforce mode without a guard and without reading Leases. */
export function builtInRules(matching: MatchOptions): Rules {
  const { policy, ...rules } = enforcedRules(matching);
  return { ...rules, policy: { ...policy, guard: { shadow: false }, requireExpiredLease: false } };
}

/** Returns the forecast of a pod in a cluster whose rules can't be read. */
export const ungoverned = (why: string): UnknownForecast => ({
  kind: 'unknown',
  reason: `the rules of the cluster cannot be read, and nothing is evicted there until they can (${why})`,
});

/** Returns the gates of a forecast, one after the other. */
export const gatesOf = (forecast: Forecast): readonly EvictionGate[] =>
  forecast.kind === 'held'
    ? [...forecast.before, forecast.by]
    : forecast.kind === 'evict'
      ? forecast.heldBy
      : [];

/** Returns a policy as it is at `now`. */
export function policyOf(policy: Policy, now: EpochMs): PolicyAccount {
  const { pausedUntil, method, rate, drain, maxEvictionsPerWorkload, tolerationSeconds, virtualKeys } =
    policy;
  return {
    mode: modeOf(policy, now),
    ...(pausedUntil !== undefined && isOn(pausedUntil, now) ? { pausedUntil } : {}),
    method:
      method.kind === 'delete'
        ? { kind: 'delete' }
        : {
            kind: 'evict',
            timeoutMs: method.deadlineMs,
            onTimeout: method.afterDeadline === 'never' ? 'fail' : 'delete',
          },
    ...(rate === undefined ? {} : { evictionRate: rate }),
    releaseRate: drain,
    ...(maxEvictionsPerWorkload === undefined ? {} : { maxEvictionsPerWorkload }),
    tolerationSecondsOverrides: tolerationSeconds,
    treatAsNoExecute: virtualKeys,
  };
}
