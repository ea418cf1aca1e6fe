import { defined } from '#shared/defined.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { DEFAULT_POLICY, type Policy, type Rules } from '#shared/eviction/policy.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Forecast } from './forecast.ts';

export interface UnknownForecast {
  readonly kind: 'unknown';
  readonly reason: string;
}

export const enforcedRules = (matching: MatchOptions): Rules => ({
  policy: { ...DEFAULT_POLICY, mode: 'enforce' },
  ordersRevision: 0,
  policyRevision: 0,
  stops: [],
  holds: [],
  trips: [],
  guardRevision: 0,
  matching,
});

/** Returns the rules of the built-in controller: enforce mode without a guard and without reading Leases. */
export function builtInRules(matching: MatchOptions): Rules {
  const { policy, ...rules } = enforcedRules(matching);
  return { ...rules, policy: { ...policy, guard: { dryRun: false }, requireExpiredLease: false } };
}

export const ungoverned = (why: string): UnknownForecast => ({
  kind: 'unknown',
  reason: `the rules of the cluster cannot be read, and nothing is evicted there until they can (${why})`,
});

export const gatesOf = (forecast: Forecast): readonly EvictionGate[] =>
  forecast.kind === 'held'
    ? [...forecast.before, forecast.by]
    : forecast.kind === 'evict'
      ? forecast.heldBy
      : [];

export type PolicyAccount = ReturnType<typeof policyOf>;

/**
 * A policy by its settings' names. Forecasts and gates account for those that select or hold pods. A setting that is
 * missing here does not compile.
 */
export function policyOf(policy: Policy) {
  const { mode: _mode, guard: _guard, exclude: _exclude, include: _include, ...shown } = policy;
  const { requireExpiredLease: _lease, giveUpAfterMs: _giveUpAfter, ...evicts } = shown;
  const { method, evictionRate, releaseRate, maxEvictionsPerWorkload, ...timed } = evicts;
  const { tolerationSecondsOverrides, treatAsNoExecute, ...others } = timed;
  others satisfies Readonly<Record<keyof typeof others, never>>;
  return {
    mode: policy.mode,
    method,
    ...defined({ evictionRate, releaseRate, maxEvictionsPerWorkload }),
    tolerationSecondsOverrides,
    treatAsNoExecute,
  };
}
