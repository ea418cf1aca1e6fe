import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rulesLines } from '#functions/service/start-report.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Rules } from '#shared/eviction/policy.ts';
import { enforced } from '#test/world/enforced-rules.ts';

const rules = enforced({ comparisonOperators: false });
const linesOf = (...all: readonly Rules[]) =>
  rulesLines(new Map(all.map((each, index) => [clusterName(`c${index}`), each])), 0);

test('prints the mode of each cluster at the start and how to change it', () => {
  const unsaid = { ...rules, policy: DEFAULT_POLICY };
  const stop = { scope: 'fleet', actor: 'anna', at: 0, reason: 'an incident' } as const;
  assert.deepEqual(linesOf(unsaid, rules, unsaid), [
    'c0, c2: observe mode, no pods are evicted. To evict pods, add --enforce or apply a policy (docs/reference/policy.md)',
    'c1: enforce mode, pods are evicted',
  ]);
  assert.deepEqual(linesOf({ ...unsaid, policyRevision: 1 }), [
    'c0: observe mode, no pods are evicted. To evict pods, apply a policy (docs/reference/policy.md)',
  ]);
  assert.deepEqual(linesOf({ ...rules, stops: [stop] }), [
    "c0: stopped by anna (an incident), no pods are evicted. To resume, run taintward resume --all --reason 'REASON'",
  ]);
  assert.deepEqual(linesOf({ ...rules, stops: [{ ...stop, scope: 'cluster', reason: 'a\nb' }] }), [
    "c0: stopped by anna (a\\u000ab), no pods are evicted. To resume, run taintward resume CLUSTER --reason 'REASON'",
  ]);
});
