import { asksLease } from '#shared/eviction/gate.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { NodeCase } from './forecast.ts';
import { type Fact, known, knownOr } from './known.ts';

/** Returns why the node's Lease could not be read, if policy needs it. */
export function lifeKnown(node: Fact<NodeCase['live']>, rules: Fact<Rules>): Fact<undefined> {
  const why = knownOr(node, undefined)?.lifeUnknown;
  const governing = knownOr(rules, undefined);
  return why === undefined || !governing || !asksLease(governing) ? known(undefined) : { unknown: why };
}
