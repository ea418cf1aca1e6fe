import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { at } from '#test/unit/eviction/builders.ts';
import { liveNode, livePod } from './live-objects.ts';

const N1 = nodeName('n1');

/** Returns a pod that was evicted at second 0 with a grace period of 30 seconds. */
const leaving = (uid = 'u1', fields: Partial<LivePod> = {}): LivePod =>
  livePod(uid, {
    terminating: true,
    disrupted: true,
    leaving: { gracePeriodEndedAt: at(30), finalizers: [] },
    ...fields,
  });

/** Returns a view of the node `n1` with this taint and these pods. */
function viewOf(key: string, ...pods: readonly LivePod[]): ClusterView {
  const view = new ClusterView(clusterName('c1'), 1);
  view.replaceNodes([liveNode('n1', key)], at(0));
  view.replacePods(N1, pods, at(0));
  return view;
}

const stuckAt = (view: ClusterView, second: number) => view.stuck(at(second)).map(({ uid }) => uid);

describe('an evicted pod', () => {
  test('is stuck from a minute after its grace period until it is gone', () => {
    const view = viewOf('a', livePod());
    view.upsertPod(leaving(), at(1));
    assert.deepEqual([stuckAt(view, 90), stuckAt(view, 91)], [[], ['u1']]);
    view.deletePod(leaving());
    assert.deepEqual(stuckAt(view, 91), []);
  });

  test('is watched until it is gone, also when its node loses its taints', () => {
    const view = viewOf('a', livePod('u1'), livePod('u2'));
    view.upsertPod(leaving('u1'), at(1));
    view.upsertNode(liveNode('n1'), at(2));
    assert.deepEqual([view.follows(N1), view.watches(N1), view.watched()], [false, true, [N1]]);
    assert.deepEqual(view.replacePods(N1, [leaving('u1'), livePod('u2')], at(3)), []);
    assert.deepEqual(stuckAt(view, 91), ['u1']);
    view.deletePod(leaving('u1'));
    assert.deepEqual([view.watches(N1), view.watched()], [false, []]);
  });

  test('is reported after those whose grace period ended before, until the last is gone', () => {
    const endedAt = (second: number) => ({ leaving: { gracePeriodEndedAt: at(second), finalizers: [] } });
    const view = viewOf('a', leaving('u1'), leaving('u2', endedAt(10)), leaving('u3', endedAt(20)));
    view.upsertNode(liveNode('n1'), at(2));
    view.leaving.expect([N1]);
    assert.deepEqual(stuckAt(view, 91), ['u2', 'u3', 'u1']);
    view.deletePod(leaving('u2'));
    view.deletePod(leaving('u1'));
    assert.deepEqual([stuckAt(view, 91), view.watched()], [['u3'], [N1]]);
  });

  test('is gone when a list lacks it', () => {
    const view = viewOf('a', leaving());
    view.replacePods(N1, [], at(2));
    assert.deepEqual(stuckAt(view, 91), []);
  });

  test('is not taken from a list of another node', () => {
    const view = viewOf('a', leaving('u1'), leaving('u2', { node: nodeName('n2') }));
    assert.deepEqual([stuckAt(view, 91), view.watched()], [['u1'], [N1]]);
  });

  test('is reported with its finalizers and the state of its node', () => {
    const finalizers = ['example.com/backup'];
    const pod = leaving('u1', { leaving: { gracePeriodEndedAt: at(30), finalizers } });
    const states = (view: ClusterView) => view.stuck(at(91)).map(({ nodeState }) => nodeState);
    const view = viewOf(NODE_UNREACHABLE, pod);
    assert.deepEqual(view.stuck(at(91)), [
      {
        node: N1,
        uid: 'u1',
        namespace: 'default',
        name: 'pod-u1',
        gracePeriodEndedAt: at(30),
        finalizers,
        nodeState: 'unreachable',
      },
    ]);
    assert.deepEqual(states(viewOf('a', pod)), ['there']);
    view.deleteNode(N1, at(40));
    assert.deepEqual(states(view), ['gone']);
  });

  test('is checked on its node when an earlier relay reported it', () => {
    const view = new ClusterView(clusterName('c1'), 1);
    view.replaceNodes([liveNode('n1')], at(0));
    view.leaving.expect([N1]);
    assert.deepEqual(view.watched(), [N1]);
    view.replacePods(N1, [leaving()], at(1));
    assert.deepEqual(stuckAt(view, 91), ['u1']);
    view.replacePods(N1, [livePod()], at(2));
    assert.deepEqual(view.watched(), []);
  });
});

test('reports each removed pod once, with or without a grace period, also if only a list lacks it', () => {
  const view = viewOf('a', leaving('u1'), leaving('u2'), livePod('u3'), livePod('u4'), livePod('u5'));
  view.deletePod(leaving('u1'));
  view.deletePod(livePod('u3', { disrupted: true }));
  view.deletePod(livePod('u4', { evicted: true }));
  view.deletePod(livePod('u5'));
  view.replacePods(N1, [leaving('u2')], at(1));
  assert.deepEqual(view.leaving.takeGone(), ['u1', 'u3', 'u4']);
  view.replacePods(N1, [], at(2));
  assert.deepEqual(view.leaving.takeGone(), ['u2']);
  view.deletePod(livePod('u6'));
  assert.deepEqual(view.leaving.takeGone(), []);
});

test('does not follow a pod with another deletion, or one that is only marked, when its node loses its taints', () => {
  const view = viewOf('a', leaving('u1', { disrupted: false }), livePod('u2', { disrupted: true }));
  view.upsertNode(liveNode('n1'), at(1));
  assert.deepEqual([view.watches(N1), stuckAt(view, 91)], [false, []]);
});
