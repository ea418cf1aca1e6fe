import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { LiveNode } from '#shared/kubernetes/api.ts';
import { NODE_NOT_READY } from '#shared/taints/taint.ts';
import { at, rules } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { liveNode, livePod } from './live-objects.ts';
import { WatchedCluster, watchOf } from './watched-cluster.ts';

const N1 = nodeName('n1');
const twin = { key: NODE_NOT_READY, effect: 'NoSchedule', timeAdded: at(2) };
const real = { key: NODE_NOT_READY, effect: 'NoExecute', timeAdded: at(20) };
const ruled = (treatAsNoExecute: readonly string[]): Rules => ({
  ...rules,
  policy: { ...rules.policy, treatAsNoExecute },
});
const nodeWith = (...taints: LiveNode['taints']): LiveNode => ({ ...liveNode('n1'), taints });

describe('a view with virtual keys', () => {
  function viewOf(...taints: LiveNode['taints']): ClusterView {
    const view = new ClusterView(clusterName('c1'), 1);
    view.treatAsNoExecute = [NODE_NOT_READY];
    view.replaceNodes([nodeWith(...taints)], at(0));
    return view;
  }
  const taintsOf = (view: ClusterView) =>
    view.nodeDelta(N1, at(99), false).taints.map(({ effect, virtual, seenAt }) => [effect, virtual, seenAt]);

  test('follows nodes with a NoSchedule taint of such a key, and sends it as virtual', () => {
    const view = viewOf();
    assert.equal(view.follows(N1), false);
    assert.deepEqual(view.upsertNode(nodeWith(twin), at(2)), [{ node: N1 }]);
    assert.equal(view.follows(N1), true);
    assert.deepEqual(taintsOf(view), [['NoSchedule', true, at(2)]]);
    assert.equal(view.follows(nodeName('n2')), false);
  });

  test('continues the countdown when the NoExecute taint appears and when it is removed', () => {
    const view = viewOf();
    view.upsertNode(nodeWith(twin), at(2));
    view.upsertNode(nodeWith(twin, real), at(20));
    assert.deepEqual(taintsOf(view), [['NoExecute', undefined, at(2)]]);
    view.upsertNode(nodeWith(twin), at(40));
    assert.deepEqual(taintsOf(view), [['NoSchedule', true, at(2)]]);
  });

  test('sends the NoSchedule toleration of a pod', () => {
    const view = viewOf(twin);
    const tolerations = [{ key: 'x' }, { key: NODE_NOT_READY, operator: 'Exists', effect: 'NoSchedule' }];
    view.replacePods(N1, [livePod('u1', { tolerations })], at(3));
    const [pod] = view.nodeDelta(N1, at(4), false).pods;
    assert.deepEqual(pod?.tolerations, [{ ...tolerations[1], index: 1 }]);
  });
});

/** Follows one node, with a NoSchedule taint, under a policy without virtual keys. */
async function watching(context: TestContext) {
  const time = driveTimers(context, at(0));
  const cluster = new WatchedCluster(Date.now);
  cluster.nodes.lists = [{ items: [nodeWith(twin)], resourceVersion: '7' }];
  cluster.pods.lists = [{ items: [livePod()], resourceVersion: '7' }];
  const marked: string[] = [];
  const wokenAt: number[] = [];
  const view = new ClusterView(clusterName('c1'), 1);
  const watch = watchOf(cluster, view, {
    rules: ruled([]),
    mark: (subjects, wake) => {
      marked.push(...subjects.map(({ node }) => node));
      if (wake && subjects.length > 0) wokenAt.push((Date.now() - at(0)) / 1_000);
    },
  });
  context.after(() => watch.stop());
  watch.start();
  await time.pass(1_000);
  return { time, cluster, marked, wokenAt, view, watch };
}

test('lists the nodes again after a change of the virtual keys, and sends the affected nodes', async (context) => {
  const { time, cluster, marked, view, watch } = await watching(context);
  assert.deepEqual([cluster.nodes.listed.length, marked], [1, []]);

  watch.ruled(ruled([NODE_NOT_READY]));
  await time.pass(1_000);
  assert.equal(cluster.nodes.listed.length, 2);
  assert.ok(marked.includes('n1'));
  assert.equal(view.nodeDelta(N1, at(9), false).pods.length, 1);

  watch.ruled(ruled([NODE_NOT_READY]));
  await time.pass(1_000);
  assert.equal(cluster.nodes.listed.length, 2, 'the same keys are no change');

  marked.length = 0;
  watch.ruled(ruled([]));
  await time.pass(1_000);
  assert.ok(marked.includes('n1'));
  assert.equal(view.follows(N1), false);
});

test('wakes the affected nodes again when no decider uses the earlier virtual keys anymore', async (context) => {
  const { time, wokenAt, watch } = await watching(context);
  await time.pass(20_000);
  watch.ruled(ruled([NODE_NOT_READY]));
  await time.pass(20_000);
  assert.deepEqual(
    wokenAt.map((seconds) => Math.round(seconds)),
    [21, 26],
  );
});
