import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PodFacts } from '#shared/eviction/facts.ts';
import { type DownNode, MAX_OVERDUE_MS, stallOf, stallText } from '#shared/eviction/stalled.ts';
import { after, at, nodeDelta, pod, recordIn, ref, rules, taint, tolerating } from './builders.ts';

const DELTA = nodeDelta(1);
const STORED = after(DELTA);
const NOTHING = after();
const record = recordIn(STORED);
const { node } = STORED;
assert.ok(record && node);

const down = (fields: Partial<DownNode> = {}): DownNode => ({
  node: ref.node,
  taints: [taint('a')],
  pods: [pod()],
  ...fields,
});

/** Returns what stalls at `second`. Taints have settled if they were seen more than a minute before. */
function stall(node: DownNode, partition = STORED, second = 61, epoch = 1): string | undefined {
  const found = stallOf(node, partition, {
    rules,
    epoch,
    now: at(second),
    isSettled: ({ seenAt }) => at(second) - seenAt > MAX_OVERDUE_MS,
  });
  return found && stallText(found);
}

const UNSTORED = "node n1 is down, and its stored state is out of date: its deltas aren't sent or processed";
const UNLISTED = "node n1 is down, and the relay hasn't listed its pods";
const UNSCHEDULED = 'node n1 is down, and its pod default/pod-u2 has no stored deadline';

describe('evictions proceed from a node that is down', () => {
  const forGood: PodFacts = pod('u2', { tolerations: [tolerating('a')] });
  for (const [what, node, partition, second] of [
    ['when each pod that does not tolerate its taints has a deadline', down()],
    ['when all of its pods tolerate its taints', down({ pods: [forGood] })],
    ['when it has no pods', down({ pods: [] })],
    ['when it has been down for a minute, but no more', down(), NOTHING, 60],
    ['when a deadline passed a minute ago, but no more', down(), STORED, 120],
    [
      'when another taint came less than a minute ago',
      down({ taints: [taint('a'), taint('b', 30)] }),
      STORED,
      61,
    ],
  ] as const) {
    test(what, () => assert.equal(stall(node, partition, second), undefined));
  }

  test('when it is deleted, and the store has fewer of its last taints', () => {
    assert.equal(stall(down({ deletedAt: at(30), taints: [taint('a'), taint('b')] })), undefined);
  });

  for (const outcome of ['evicted', 'already-gone', 'failed'] as const) {
    test(`when the eviction of a pod ended as ${outcome}`, () => {
      const end = { ...record, outcome, endedAt: at(61) };
      const ended = { ...STORED, scheduled: new Map(), ended: new Map([[record.uid, end]]) };
      assert.equal(stall(down(), ended), undefined);
    });
  }

  for (const [what, fields] of [
    ['is held', { held: { by: { kind: 'stopped', scope: 'fleet' }, since: at(60) } }],
    ['failed for good', { gaveUpAt: at(70) }],
    ['waits for its disruption budget', { blocked: { since: at(60), nextTryAt: at(900), reason: 'x' } }],
    ['waits its turn', { turnAt: at(900) }],
  ] as const) {
    test(`when an eviction is long due, and ${what}`, () => {
      const scheduled = new Map([[record.uid, { ...record, ...fields }]]);
      assert.equal(stall(down(), { ...STORED, scheduled }, 900), undefined);
    });
  }
});

describe('evictions do not proceed from a node that is down', () => {
  test('while its pods are not listed', () => {
    const { pods: _pods, ...unlisted } = down();
    assert.equal(stall(unlisted), UNLISTED);
    assert.equal(stall(unlisted, NOTHING), UNLISTED);
  });

  for (const [what, node, partition, epoch] of [
    ['while nothing is stored of it', down(), NOTHING, 1],
    ['while it is stored under an earlier lease only', down(), STORED, 2],
    ['while one of its taints is not stored', down({ taints: [taint('a'), taint('b')] }), STORED, 1],
    ['while a taint is stored with another value', down({ taints: [taint('a', 0, 'x')] }), STORED, 1],
  ] as const) {
    test(what, () => assert.equal(stall(node, partition, 61, epoch), UNSTORED));
  }

  test('while a pod that does not tolerate its taints has no deadline', () => {
    assert.equal(stall(down({ pods: [pod(), pod('u2')] })), UNSCHEDULED);
  });

  test('while the deadline of an existing pod is canceled', () => {
    const uid = pod('u2').uid;
    const end = { ...record, uid, outcome: 'canceled', endedAt: at(50) } as const;
    assert.equal(
      stall(down({ pods: [pod('u2')] }), { ...STORED, scheduled: new Map(), ended: new Map([[uid, end]]) }),
      UNSCHEDULED,
    );
  });

  test('while a pod that a budget blocks is not retried, a minute after the retry of its node', () => {
    const blocked = { since: at(60), nextTryAt: at(60), reason: 'x' };
    const waiting = {
      ...STORED,
      node: { ...node, blocked: { attempts: 5, nextTryAt: at(300) } },
      scheduled: new Map([[record.uid, { ...record, blocked }]]),
    };
    assert.equal(stall(down(), waiting, 360), undefined);
    assert.equal(stall(down(), waiting, 361), 'an eviction is overdue by 1m1s');
  });

  test('while a failed eviction is overdue, for any next retry of its node', () => {
    const retry = { attempts: 9, since: at(60), nextTryAt: at(900), error: 'no', everything: true };
    const failing = {
      ...STORED,
      node: { ...node, retry },
      scheduled: new Map([[record.uid, { ...record, failure: { since: at(60), error: 'no' } }]]),
    };
    assert.equal(stall(down(), failing, 125), 'an eviction is overdue by 1m5s');
  });

  test('while an eviction is overdue by more than a minute, however recently the node went down', () => {
    assert.equal(stall(down(), STORED, 125), 'an eviction is overdue by 1m5s');
    assert.equal(stall(down({ taints: [taint('a', 120)] }), STORED, 125), 'an eviction is overdue by 1m5s');
  });
});
