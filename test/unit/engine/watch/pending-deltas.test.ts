import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClusterView, type Subject } from '#shared/engine/watch/cluster-view.ts';
import { PendingDeltas, subjectOf } from '#shared/engine/watch/pending-deltas.ts';
import type { DeltaQueue } from '#shared/engine/watch/ports.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { liveNode, livePod } from './live-objects.ts';

const NOW = 1_700_000_000_000;
const node = nodeName('n1');
const uid = podUid('u1');

/** Returns the pending deltas of a tainted node with the pod `u1`. */
function bench() {
  const view = new ClusterView(clusterName('c1'), 1);
  view.replaceNodes([liveNode('n1', 'a')], NOW);
  view.replacePods(node, [livePod('u1')], NOW);
  const pending = new PendingDeltas(view);
  const take = (queue: DeltaQueue) => [...pending.take(queue, node, NOW)];
  return { view, pending, take };
}

test('sends a pod as gone that is deleted while its delta fails', () => {
  const { view, pending, take } = bench();
  pending.mark({ node, uid }, false);
  const [first] = take('pod-deltas');
  assert.ok(first?.kind === 'pod');
  view.replacePods(node, [], NOW);
  pending.mark({ node, uid, gone: true }, false);
  pending.mark(subjectOf(first), false);
  assert.deepEqual(
    take('pod-deltas').map(({ kind }) => kind),
    ['pod-gone'],
  );
});

for (const [kind, queue, subject] of [
  ['node', 'node-deltas', { node }],
  ['pod', 'pod-deltas', { node, uid, gone: false }],
  ['pod-gone', 'pod-deltas', { node, uid, gone: true }],
] as const satisfies readonly (readonly [string, DeltaQueue, Subject])[])
  test(`sends a delta that failed (${kind}) again as it was`, () => {
    const { view, pending, take } = bench();
    if (kind === 'pod-gone') view.deletePod(livePod('u1'));
    assert.equal(pending.mark(subject, false), queue);
    const [failed] = take(queue);
    assert.ok(failed);
    assert.deepEqual(subjectOf(failed), subject);
    for (const _ of ['once', 'twice']) pending.mark(subjectOf(failed), false);
    assert.deepEqual([pending.count(queue), take(queue).map((delta) => delta.kind)], [1, [kind]]);
    assert.deepEqual([pending.count(queue), take(queue)], [0, []]);
  });

test('keeps the deltas of pods that were not taken yet, and drops those of an untainted node', () => {
  const { view, pending } = bench();
  view.replacePods(node, [livePod('u1'), livePod('u2'), livePod('u3')], NOW);
  for (const name of ['u1', 'u2', 'u3']) pending.mark({ node, uid: podUid(name) }, false);
  const taken = [1, 2].map(() => {
    const [delta] = pending.take('pod-deltas', node, NOW);
    return delta?.kind === 'pod' && delta.pod.uid;
  });
  assert.deepEqual(taken, ['u1', 'u2']);
  view.upsertNode(liveNode('n1'), NOW);
  assert.deepEqual([...pending.take('pod-deltas', node, NOW)], []);
});
