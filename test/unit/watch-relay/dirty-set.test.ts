import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClusterView } from '#functions/watch-relay/cluster-view.ts';
import { DirtySet } from '#functions/watch-relay/dirty-set.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { liveNode, livePod } from './live-objects.ts';

const NOW = 1_700_000_000_000;
const node = nodeName('n1');
const uid = podUid('u1');

test('a pod that goes while what was told of it fails to be sent is told of as gone', () => {
  const view = new ClusterView(clusterName('c1'), 1);
  view.replaceNodes([liveNode('n1', 'a')], NOW);
  view.replacePods(node, [livePod('u1')], NOW);
  const dirty = new DirtySet(view);
  dirty.mark([{ node, uid }]);
  const [first] = dirty.podMessages(NOW);
  assert.ok(first?.delta.kind === 'pod');
  dirty.sending(first.delta);
  view.replacePods(node, [], NOW);
  dirty.mark([{ node, uid, gone: true }]);
  dirty.failed(first.delta);
  dirty.answered(first.delta);
  const next = [...dirty.podMessages(NOW)];
  assert.deepEqual(
    next.map(({ delta }) => delta.kind),
    ['pod-gone'],
  );
});
