import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { evaluate, type NodeObservation } from '#shared/eviction/evaluate.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { type DuePod, findGate, leaseNoteOn, mayStillHold } from '#shared/eviction/gate.ts';
import { podUid } from '#shared/eviction/identity.ts';
import { type NodeLease, type NodeLife, nodeLife } from '#shared/eviction/node-life.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { NODE_NOT_READY, NODE_OUT_OF_SERVICE, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { after, at, nodeDelta, pod, recordIn, ref, rules, taint } from './builders.ts';

const NOW = at(1000);
const MINUTE = 60_000;

/** A Lease of 40 s, renewed the given number of seconds before the API server's time `asOf`. */
const renewed = (secondsAgo: number, fields: Partial<NodeLease> = {}): NodeLease => ({
  renewedAt: NOW - secondsAgo * 1000,
  durationMs: 40_000,
  asOf: NOW,
  ...fields,
});

const ruled = (policy: Partial<Rules['policy']>): Rules => ({
  ...rules,
  policy: { ...rules.policy, ...policy },
});

describe('a node', () => {
  test('is alive until its Lease expires, by our clock', () => {
    const life = nodeLife(renewed(15), NOW + 500);
    assert.deepEqual(life, { kind: 'alive', renewedAt: NOW - 15_000, until: NOW + 25_500 });
  });

  test('is alive by the API server’s clock, for any offset of our clock', () => {
    const life = nodeLife(renewed(15), NOW - 3 * 3_600_000);
    assert.deepEqual(life, { kind: 'alive', renewedAt: NOW - 15_000, until: NOW - 3 * 3_600_000 + 25_000 });
  });

  test('is not alive after its Lease expired', () => {
    assert.equal(nodeLife(renewed(39.999), NOW).kind, 'alive');
    assert.deepEqual(nodeLife(renewed(40), NOW), { kind: 'lapsed', because: 'expired' });
  });

  test('is not alive without a Lease, or with an incomplete Lease', () => {
    assert.deepEqual(nodeLife(undefined, NOW), { kind: 'lapsed', because: 'missing' });
    const { renewedAt: _renewedAt, ...never } = renewed(1);
    const { durationMs: _durationMs, ...endless } = renewed(1);
    for (const lease of [never, endless])
      assert.deepEqual(nodeLife(lease, NOW), { kind: 'lapsed', because: 'malformed' });
  });

  test('is alive for at most twice the duration when its clock is ahead', () => {
    assert.deepEqual(nodeLife(renewed(-40), NOW), {
      kind: 'alive',
      renewedAt: NOW + 40_000,
      until: NOW + 80_000,
    });
    assert.deepEqual(nodeLife(renewed(-40.001), NOW), { kind: 'lapsed', because: 'future' });
    assert.deepEqual(nodeLife(renewed(-1e9), NOW), { kind: 'lapsed', because: 'future' });
  });

  test('is alive for at most ten minutes, for any duration in its Lease', () => {
    const endless = { durationMs: (2 ** 31 - 1) * 1000 };
    assert.deepEqual(nodeLife(renewed(0, endless), NOW), {
      kind: 'alive',
      renewedAt: NOW,
      until: NOW + 10 * MINUTE,
    });
    assert.deepEqual(nodeLife(renewed(600, endless), NOW), { kind: 'lapsed', because: 'expired' });
    assert.deepEqual(nodeLife(renewed(-601, endless), NOW), { kind: 'lapsed', because: 'future' });
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
      const life: NodeLife = { kind: 'lapsed', because };
      assert.equal(findGate(rules, due({ life }), NOW), undefined);
      assert.equal(leaseNoteOn(rules, due({ life }), NOW), because);
    }
  });
});

test('needs no Lease for any other taint', () => {
  for (const key of ['a', NODE_NOT_READY, NODE_OUT_OF_SERVICE])
    for (const life of [ALIVE, 'unread'] as const) {
      assert.equal(findGate(rules, due({ dueBy: [key], life }), NOW), undefined);
      assert.equal(leaseNoteOn(rules, due({ dueBy: [key], life }), NOW), undefined);
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
  const observed = (fields: Partial<NodeObservation> = {}): NodeObservation => ({
    node: ref.node,
    at: NOW,
    taints: [{ key: NODE_UNREACHABLE, effect: 'NoExecute', timeAdded: at(10) }],
    ...fields,
  });
  const verdict = (seen: NodeObservation) => evaluate(partition.node, seen, rules)(record, shown);
  const evicted = { kind: 'evict', by: 'delete', unlimited: false };

  test('requires a read of the Lease before an eviction, but of no deleted node, and reports why it does not hold', () => {
    assert.deepEqual(verdict(observed()), { ...evicted, lease: 'unread' });
    assert.deepEqual(verdict(observed({ taints: undefined })), evicted);
    const life: NodeLife = { kind: 'lapsed', because: 'missing' };
    assert.deepEqual(verdict(observed({ life })), { ...evicted, lease: 'missing' });
  });

  test('holds the pod until the Lease expires', () => {
    const found = verdict(observed({ life: ALIVE }));
    assert.ok(found.kind === 'hold');
    assert.deepEqual(found.record.held, { by: KEPT, since: NOW, until: ALIVE.until });
  });

  test('looks at the pod again when another taint is due first', () => {
    const taints = [...(observed().taints ?? []), { key: 'a', effect: 'NoExecute', timeAdded: at(10) }];
    const both = after(nodeDelta(10, { taints: [UNREACHABLE, taint('a', 10)], pods: [untolerating] }));
    const tolerations = [{ key: 'a', operator: 'Exists', tolerationSeconds: 1000n }];
    const found = evaluate(
      both.node,
      observed({ taints, life: ALIVE }),
      rules,
    )(record, { ...shown, tolerations });
    assert.ok(found.kind === 'hold');
    assert.equal(found.record.held?.until, at(1011) - 1);
  });
});
