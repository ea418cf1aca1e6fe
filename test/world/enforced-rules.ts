import { DEFAULT_POLICY, type Rules } from '#shared/eviction/policy.ts';
import type { RulesReader } from '#shared/state/rules-store.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';

/** Returns rules that only set the mode to enforce. */
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

/** Returns a reader that reads {@link enforced} for every cluster. */
export const enforcing = (matching: MatchOptions): RulesReader => {
  const rules = enforced(matching);
  return async () => rules;
};
