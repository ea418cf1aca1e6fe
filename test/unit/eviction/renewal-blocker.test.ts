import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RenewalInputs, renewalBlocker, watchesDownNodes } from '#shared/eviction/renewal-blocker.ts';

const WELL: RenewalInputs = {
  mode: 'enforce',
  guarded: true,
  connectionState: 'live',
  keys: ['a', 'b'],
  treatAsNoExecute: ['c', 'b', 'a'],
  holdsLease: true,
  skewMs: -250,
};

test('watches nodes that are down by cluster or by zone, and not in dry run', () => {
  const threshold = { percent: 20, nodes: 3 };
  assert.equal(watchesDownNodes({ dryRun: false, cluster: threshold }), true);
  assert.equal(watchesDownNodes({ dryRun: false, zone: threshold }), true);
  assert.equal(watchesDownNodes({ dryRun: false, customTaints: { ...threshold, windowMs: 60_000 } }), false);
  assert.equal(watchesDownNodes({ dryRun: true, cluster: threshold, zone: threshold }), false);
});

describe('the takeover heartbeat is renewed', () => {
  const rows: readonly (readonly [when: string, given: Partial<RenewalInputs>])[] = [
    ['when all is as it ought to be', {}],
  ];
  for (const [when, given] of rows)
    test(when, () => assert.equal(renewalBlocker({ ...WELL, ...given }), undefined));
});

describe('the takeover heartbeat is suspended, with a reason,', () => {
  const rows: readonly (readonly [when: string, given: Partial<RenewalInputs>, why: string])[] = [
    ['while policy only observes', { mode: 'observe' }, 'the policy is in observe mode: set mode to enforce'],
    [
      'when policy does not read the taints as NoExecute',
      { treatAsNoExecute: ['b'] },
      'policy does not name a in treatAsNoExecute',
    ],
    [
      'without a guard',
      { guarded: false },
      'policy has no guard over nodes that are down: set guard.cluster or guard.zone, without dryRun',
    ],
    [
      'when policy reads none of them so',
      { treatAsNoExecute: [] },
      'policy does not name a and b in treatAsNoExecute',
    ],
    [
      'before it knows the cluster',
      { connectionState: 'syncing' },
      "the relay hasn't listed the whole cluster yet",
    ],
    [
      'when it does not hear the cluster',
      { connectionState: 'disconnected' },
      'the relay is disconnected from the cluster',
    ],
    [
      'when its lease was not renewed in time',
      { holdsLease: false },
      "the relay couldn't renew the cluster's lease in time",
    ],
    ['by a clock that may be wrong', { skewMs: undefined }, "the API server's clock is not known yet"],
    ['by clocks that differ', { clocksApart: 'the clock is 1m behind' }, 'the clock is 1m behind'],
  ];
  for (const [when, given, why] of rows)
    test(when, () => assert.equal(renewalBlocker({ ...WELL, ...given }), why));
});
