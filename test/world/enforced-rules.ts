import { DEFAULT_POLICY, type Rules } from '#shared/eviction/policy.ts';
import type { RulesReader } from '#shared/state/rules-store.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';

/** As if each cluster's owner had said that it is to be enforced, and nothing else. */
export const enforced = (matching: MatchOptions): Rules => ({
  policy: { ...DEFAULT_POLICY, mode: 'enforce' },
  ordersRevision: 0,
  policyRevision: 0,
  stops: [],
  holds: [],
  trips: [],
  guardRevision: 0,
  matching,
});

/** Reads the same of each cluster: {@link enforced}. */
export const enforcing = (matching: MatchOptions): RulesReader => {
  const rules = enforced(matching);
  return async () => rules;
};
