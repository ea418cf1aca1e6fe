import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deduplicationId, encodeDelta, messageGroupId } from '#shared/aws/delta-message.ts';
import { messageFault } from '#shared/aws/sqs-message.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { nodeDelta, pod, podDelta, podGone, ref } from '#test/unit/eviction/builders.ts';

test('SQS accepts the IDs of any cluster and node names', () => {
  const odd = { cluster: clusterName('ü '.repeat(300)), node: nodeName('n'.repeat(253)) };
  for (const delta of [nodeDelta(1, { ref: odd }), podDelta(1, { ref: odd }), podGone(1, { ref: odd })]) {
    const message = {
      body: encodeDelta(delta),
      groupId: messageGroupId(delta.ref),
      deduplicationId: deduplicationId(delta),
    };
    assert.equal(messageFault(message), undefined);
  }
});

test('all deltas of a node have the same group, and a node of the same name in another cluster has another', () => {
  assert.equal(messageGroupId(nodeDelta(1).ref), messageGroupId(podDelta(2).ref));
  assert.notEqual(messageGroupId(ref), messageGroupId({ ...ref, cluster: clusterName('c2') }));
  assert.notEqual(messageGroupId(ref), messageGroupId({ ...ref, node: nodeName('n2') }));
});

test('a repeated delta has the same deduplication ID', () => {
  for (const make of [nodeDelta, podDelta, podGone]) {
    assert.equal(deduplicationId(make(1)), deduplicationId(make(1, { observedAt: 5 })));
  }
});

test('no other process can predict a deduplication ID', async () => {
  const loadedAgain = '#shared/aws/delta-message.ts?as-another-process';
  const another: { deduplicationId: typeof deduplicationId } = await import(loadedAgain);
  for (const delta of [nodeDelta(1), podDelta(1), podGone(1)]) {
    assert.notEqual(another.deduplicationId(delta), deduplicationId(delta));
    assert.equal(another.deduplicationId(delta), another.deduplicationId(delta));
  }
});

test('deltas of other objects, nodes or versions have other deduplication IDs', () => {
  const deltas: readonly Delta[] = [
    nodeDelta(1),
    nodeDelta(2),
    nodeDelta(1, { version: { epoch: 2, sequence: 1 } }),
    nodeDelta(1, { ref: { ...ref, node: nodeName('n2') } }),
    nodeDelta(1, { ref: { ...ref, cluster: clusterName('c2') } }),
    podDelta(1),
    podDelta(1, { pod: pod('u2') }),
    podGone(3, { uid: podUid('u3') }),
  ];
  assert.equal(new Set(deltas.map(deduplicationId)).size, deltas.length);
});
