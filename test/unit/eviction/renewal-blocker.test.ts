import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RenewalInputs, renewalBlocker, watchesDownNodes } from '#shared/eviction/renewal-blocker.ts';

const WELL: RenewalInputs = {
  mode: 'enforce',
  guarded: true,
  connectionState: 'live',
  keys: ['a', 'b'],
  virtualKeys: ['c', 'b', 'a'],
  holdsLease: true,
  skewMs: -250,
};

test('watches nodes that are down by cluster or by zone, and not in dry run', () => {
  const threshold = { percent: 20, nodes: 3 };
  assert.equal(watchesDownNodes({ shadow: false, cluster: threshold }), true);
  assert.equal(watchesDownNodes({ shadow: false, zone: threshold }), true);
  assert.equal(watchesDownNodes({ shadow: false, people: { ...threshold, withinMs: 60_000 } }), false);
  assert.equal(watchesDownNodes({ shadow: true, cluster: threshold, zone: threshold }), false);
});

describe('the takeover heartbeat is renewed', () => {
  test('in enforce mode, and while policy pauses: nobody else is to evict either', () => {
    for (const given of [{}, { mode: 'paused' } as const])
      assert.equal(renewalBlocker({ ...WELL, ...given }), undefined);
  });
});

describe('the takeover heartbeat is suspended because', () => {
  const reasons: Readonly<Record<string, Partial<RenewalInputs>>> = {
    'the policy is in observe mode: set mode to enforce': { mode: 'observe' },
    'policy does not name a in treatAsNoExecute': { virtualKeys: ['b'] },
    'policy does not name a and b in treatAsNoExecute': { virtualKeys: [] },
    'policy has no guard over nodes that are down: set guard.cluster or guard.zone, without dryRun': {
      guarded: false,
    },
    "the relay hasn't listed the whole cluster yet": { connectionState: 'syncing' },
    'the relay is disconnected from the cluster': { connectionState: 'disconnected' },
    "the relay couldn't renew the cluster's lease in time": { holdsLease: false },
    "the API server's clock is not known yet": { skewMs: undefined },
    'the clock is 60 s behind': { clocksApart: 'the clock is 60 s behind' },
  };
  for (const [reason, given] of Object.entries(reasons))
    test(reason, () => assert.equal(renewalBlocker({ ...WELL, ...given }), reason));
});
