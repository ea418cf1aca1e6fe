import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { PendingDeltas, subjectOf } from '#shared/engine/watch/pending-deltas.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { liveNode, livePod } from './live-objects.ts';

const NOW = 1_700_000_000_000;
const node = nodeName('n1');
const uid = podUid('u1');

test('sends a pod as gone that is deleted while its delta fails', () => {
  const view = new ClusterView(clusterName('c1'), 1);
  view.replaceNodes([liveNode('n1', 'a')], NOW);
  view.replacePods(node, [livePod('u1')], NOW);
  const pending = new PendingDeltas(view);
  pending.mark({ node, uid });
  const [first] = pending.take('pod-deltas', node, NOW);
  assert.ok(first?.kind === 'pod');
  view.replacePods(node, [], NOW);
  pending.mark({ node, uid, gone: true });
  pending.mark(subjectOf(first));
  const next = [...pending.take('pod-deltas', node, NOW)];
  assert.deepEqual(
    next.map(({ kind }) => kind),
    ['pod-gone'],
  );
});
