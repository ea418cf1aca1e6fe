import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { evaluate, type NodeObservation } from '#shared/eviction/evaluate.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { type DuePod, findGate, leaseNoteOn, mayStillHold } from '#shared/eviction/gate.ts';
import { podUid } from '#shared/eviction/identity.ts';
import { type Lapse, type NodeLease, type NodeLife, nodeLife } from '#shared/eviction/node-life.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { NODE_NOT_READY, NODE_OUT_OF_SERVICE, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { after, at, nodeDelta, pod, recordIn, ref, rules, taint } from './builders.ts';

const NOW = at(1000);
const MINUTE = 60_000;

/** A Lease of 40 s, renewed the given number of seconds before the API server's time `asOf`. */
const renewed = (secondsAgo: number, fields: Partial<NodeLease> = {}): NodeLease => ({
  ...{ renewedAt: NOW - secondsAgo * 1000, durationMs: 40_000, asOf: NOW },
  ...fields,
});

const ruled = (policy: Partial<Rules['policy']>): Rules => ({
  ...rules,
  policy: { ...rules.policy, ...policy },
});

const lapsed = (because: Lapse): NodeLife => ({ kind: 'lapsed', because });

describe('a node', () => {
  test('is alive until its Lease expires by the API server’s clock, for any offset of our clock', () => {
    for (const offsetMs of [500, -3 * 3_600_000]) {
      const life = nodeLife(renewed(15), NOW + offsetMs);
      assert.deepEqual(life, { kind: 'alive', renewedAt: NOW - 15_000, until: NOW + 25_000 + offsetMs });
    }
    assert.equal(nodeLife(renewed(39.999), NOW).kind, 'alive');
    assert.deepEqual(nodeLife(renewed(40), NOW), lapsed('expired'));
  });

  test('is not alive without a Lease, or with an incomplete Lease', () => {
    assert.deepEqual(nodeLife(undefined, NOW), lapsed('missing'));
    const { renewedAt: _renewedAt, ...never } = renewed(1);
    const { durationMs: _durationMs, ...endless } = renewed(1);
    for (const lease of [never, endless]) assert.deepEqual(nodeLife(lease, NOW), lapsed('malformed'));
  });

  test('is alive for at most twice the duration when its clock is ahead', () => {
    const ahead = { kind: 'alive', renewedAt: NOW + 40_000, until: NOW + 80_000 };
    assert.deepEqual(nodeLife(renewed(-40), NOW), ahead);
    for (const seconds of [-40.001, -1e9])
      assert.deepEqual(nodeLife(renewed(seconds), NOW), lapsed('future'));
  });

  test('is alive for at most ten minutes, for any duration in its Lease', () => {
    const endless = { durationMs: (2 ** 31 - 1) * 1000 };
    const alive = { kind: 'alive', renewedAt: NOW, until: NOW + 10 * MINUTE };
    assert.deepEqual(nodeLife(renewed(0, endless), NOW), alive);
    assert.deepEqual(nodeLife(renewed(600, endless), NOW), lapsed('expired'));
    assert.deepEqual(nodeLife(renewed(-601, endless), NOW), lapsed('future'));
  });
});

const ALIVE = { kind: 'alive', renewedAt: NOW - 5_000, until: NOW + 35_000 } as const;

const due = (fields: Partial<DuePod> = {}): DuePod => ({
  node: ref.node,
  dueBy: [NODE_UNREACHABLE],
  record: { uid: podUid('u1'), namespace: 'default', name: 'pod-u1' },
  traits: {},
  life: ALIVE,
  ...fields,
});

const revisions = { revision: 1, guardRevision: 0 };
const KEPT: EvictionGate = { ...ALIVE, kind: 'node-alive', ...revisions };

describe('a pod on an unreachable node', () => {
  test('is held while the node is alive, until its Lease expires', () => {
    assert.deepEqual(findGate(rules, due(), NOW), KEPT);
    assert.equal(findGate(rules, due(), ALIVE.until), undefined);
  });

  test('is not held where another taint evicts it as well', () => {
    for (const key of ['a', NODE_NOT_READY, NODE_OUT_OF_SERVICE]) {
      const pod = due({ dueBy: [NODE_UNREACHABLE, key] });
      assert.equal(findGate(rules, pod, NOW), undefined, key);
      assert.equal(leaseNoteOn(rules, pod, NOW), undefined, key);
    }
  });

  test('is held where policy excludes the other taint', () => {
    const excluding = ruled({ exclude: [{ taints: ['a'], until: NOW + 1 }] });
    const pod = due({ dueBy: ['a', NODE_UNREACHABLE] });
    assert.deepEqual(findGate(excluding, pod, NOW), { kind: 'excluded', ...revisions, until: NOW + 1 });
    assert.equal(leaseNoteOn(excluding, due({ dueBy: pod.dueBy, life: 'unread' }), NOW), 'unread');
  });

  test('is not held where policy does not require an expired Lease', () => {
    const given = ruled({ requireExpiredLease: false });
    assert.equal(findGate(given, due(), NOW), undefined);
    for (const life of [ALIVE, 'unread'] as const)
      assert.equal(leaseNoteOn(given, due({ life }), NOW), undefined);
  });

  test('is evicted only after a read of the Lease, and another read after its expiry', () => {
    assert.equal(leaseNoteOn(rules, due({ life: 'unread' }), NOW), 'unread');
    assert.equal(leaseNoteOn(rules, due(), ALIVE.until), 'unread');
    for (const because of ['expired', 'missing', 'malformed', 'future', 'hidden'] as const) {
      const pod = due({ life: lapsed(because) });
      assert.equal(findGate(rules, pod, NOW), undefined);
      assert.equal(leaseNoteOn(rules, pod, NOW), because);
    }
  });
});

test('requires no Lease of a node with any other taint', () => {
  for (const key of ['a', NODE_NOT_READY, NODE_OUT_OF_SERVICE])
    for (const life of [ALIVE, 'unread'] as const) {
      const pod = due({ dueBy: [key], life });
      assert.deepEqual([findGate(rules, pod, NOW), leaseNoteOn(rules, pod, NOW)], [undefined, undefined]);
    }
});

test('ends the gate of a node’s Lease with the Lease, and with another policy', () => {
  assert.equal(mayStillHold(KEPT, rules, ALIVE.until - 1), true);
  assert.equal(mayStillHold(KEPT, rules, ALIVE.until), false);
  assert.equal(mayStillHold(KEPT, { ...rules, policyRevision: 2 }, NOW), false);
});

describe('evaluate', () => {
  const UNREACHABLE = taint(NODE_UNREACHABLE, 10);
  const untolerating = pod('u1', { tolerations: [] });
  const partition = after(nodeDelta(10, { taints: [UNREACHABLE], pods: [untolerating] }));
  const record = recordIn(partition);
  assert.ok(record);
  const shown = { uid: record.uid, tolerations: [], terminating: false, disrupted: false };
  const live = { key: NODE_UNREACHABLE, effect: 'NoExecute', timeAdded: at(10) };
  const look = (fields: Partial<NodeObservation> = {}): NodeObservation => ({
    ...{ node: ref.node, at: NOW, taints: [live] },
    ...fields,
  });
  const verdict = (seen: NodeObservation) => evaluate(partition.node, seen, rules)(record, shown);
  const evicted = { kind: 'evict', by: 'delete', unlimited: false };

  test('evicts only after a read of the Lease, reports why it lapsed, and requires none of a deleted node', () => {
    assert.deepEqual(verdict(look()), { ...evicted, lease: 'unread' });
    assert.deepEqual(verdict(look({ life: lapsed('missing') })), { ...evicted, lease: 'missing' });
    assert.deepEqual(verdict(look({ taints: undefined })), evicted);
  });

  test('holds the pod until the Lease expires', () => {
    const found = verdict(look({ life: ALIVE }));
    assert.ok(found.kind === 'hold');
    assert.deepEqual(found.record.held, { by: KEPT, since: NOW, until: ALIVE.until });
  });

  test('looks at the pod again when another taint is due first', () => {
    const taints = [live, { ...live, key: 'a' }];
    const both = after(nodeDelta(10, { taints: [UNREACHABLE, taint('a', 10)], pods: [untolerating] }));
    const tolerations = [{ key: 'a', operator: 'Exists', tolerationSeconds: 1000n }];
    const verdictOn = evaluate(both.node, look({ taints, life: ALIVE }), rules);
    const found = verdictOn(record, { ...shown, tolerations });
    assert.ok(found.kind === 'hold');
    assert.equal(found.record.held?.until, at(1011) - 1);
  });
});
