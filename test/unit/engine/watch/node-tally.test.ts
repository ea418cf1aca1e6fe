import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { LiveNode } from '#shared/kubernetes/api.ts';
import {
  type LiveTaint,
  NODE_NOT_READY,
  NODE_OUT_OF_SERVICE,
  NODE_UNREACHABLE,
} from '#shared/taints/taint.ts';
import { at } from '#test/unit/eviction/builders.ts';
import { liveNode } from './live-objects.ts';

const DOWN: LiveTaint = { key: NODE_UNREACHABLE, effect: 'NoSchedule' };

const node = (name: string, taints: readonly LiveTaint[] = [], fields: Partial<LiveNode> = {}): LiveNode => ({
  ...liveNode(name),
  taints,
  ...fields,
});
const inZone = (zone: string, name: string, taints: readonly LiveTaint[] = []) =>
  node(name, taints, { zone });

/** Returns a view of a cluster that was listed with these nodes at second 0. */
function listed(...nodes: readonly LiveNode[]): ClusterView {
  const view = new ClusterView(clusterName('c1'), 1);
  view.replaceNodes(nodes, at(0));
  view.resync([], at(0));
  return view;
}

const three = () => listed(node('n1'), node('n2'), node('n3'));
const downOf = ({ tally }: ClusterView) => {
  const { nodes, outOf } = tally.counts(0).cluster;
  return `${nodes} of ${outOf}`;
};
const tainted = ({ tally }: ClusterView, fromSecond = 0) => {
  const { nodes, outOf } = tally.counts(at(fromSecond)).customTaints;
  return `${nodes} of ${outOf}`;
};

describe('a node counts as down', () => {
  for (const key of [NODE_NOT_READY, NODE_UNREACHABLE])
    for (const effect of ['NoSchedule', 'NoExecute'])
      test(`by ${key}:${effect}, until the taint is removed`, () => {
        const view = three();
        view.upsertNode(node('n1', [{ key, effect }]), at(1));
        assert.equal(downOf(view), '1 of 3');
        view.upsertNode(node('n1', [{ key, effect }]), at(2));
        assert.equal(downOf(view), '1 of 3');
        view.upsertNode(node('n1'), at(3));
        assert.equal(downOf(view), '0 of 3');
      });

  test('no longer when it is deleted', () => {
    const view = listed(node('n1', [DOWN]), node('n2', [{ ...DOWN, effect: 'NoExecute' }]), node('n3'));
    assert.equal(downOf(view), '2 of 3');
    view.deleteNode(nodeName('n1'), at(1));
    view.deleteNode(nodeName('n2'), at(1));
    assert.equal(downOf(view), '0 of 1');
  });

  test('not by any other taint', () => {
    const view = three();
    view.upsertNode(node('n1', [{ key: NODE_OUT_OF_SERVICE, effect: 'NoExecute' }]), at(1));
    view.upsertNode(node('n2', [{ key: 'maintenance', effect: 'NoSchedule' }]), at(1));
    assert.equal(downOf(view), '0 of 3');
  });

  test('when a list finds it down, and not when it joins down, until it was up once', () => {
    const view = listed(node('n1', [DOWN]), node('n2'));
    view.upsertNode(node('n3', [DOWN]), at(1));
    view.upsertNode(node('n3', [DOWN, { key: 'x', effect: 'NoSchedule' }]), at(2));
    assert.equal(downOf(view), '1 of 2');
    view.upsertNode(node('n3'), at(3));
    assert.equal(downOf(view), '1 of 3');
    view.upsertNode(node('n3', [DOWN]), at(4));
    assert.equal(downOf(view), '2 of 3');
  });

  test('when it joined down, and a list shows taints that were written since: it may have been up unseen', () => {
    const joined = (stamp: string) => node('n2', [{ ...DOWN, effect: 'NoExecute' }], { taintsStamp: stamp });
    const view = listed(node('n1'));
    view.upsertNode(joined('a'), at(1));
    view.replaceNodes([node('n1'), joined('a')], at(2));
    view.upsertNode(joined('b'), at(3));
    assert.equal(downOf(view), '0 of 1');
    view.replaceNodes([node('n1'), joined('c')], at(4));
    assert.equal(downOf(view), '1 of 2');
  });

  test('in its zone, and in another zone after a move', () => {
    const view = listed(inZone('a', 'n1', [DOWN]), inZone('a', 'n2'), inZone('b', 'n3'), node('n4', [DOWN]));
    const zones = () => Object.fromEntries(view.tally.counts(0).zones);
    assert.deepEqual(zones(), { a: { nodes: 1, outOf: 2 } });
    view.upsertNode(inZone('b', 'n1', [DOWN]), at(1));
    assert.deepEqual(zones(), { b: { nodes: 1, outOf: 2 } });
  });
});

describe('a node counts as tainted by people', () => {
  const BY_HAND: LiveTaint = { key: 'maintenance', effect: 'NoExecute' };

  test('from when it gets such a taint, while it has the taint, within the requested period', () => {
    const view = three();
    view.upsertNode(node('n1', [BY_HAND]), at(10));
    view.upsertNode(node('n2', [BY_HAND]), at(20));
    view.upsertNode(node('n2', [BY_HAND, DOWN]), at(30));
    assert.equal(tainted(view, 10), '2 of 3');
    assert.equal(tainted(view, 20), '1 of 3');
    view.upsertNode(node('n2'), at(40));
    assert.equal(tainted(view), '0 of 3');
  });

  test('again when it gets another taint', () => {
    const view = three();
    view.upsertNode(node('n1', [BY_HAND]), at(10));
    view.upsertNode(node('n1', [BY_HAND, { key: 'more', effect: 'NoExecute' }]), at(20));
    assert.equal(tainted(view, 20), '1 of 3');
  });

  test('not by taints of the node controller, out-of-service, or another effect', () => {
    const view = three();
    view.upsertNode(node('n1', [{ ...DOWN, effect: 'NoExecute' }]), at(1));
    view.upsertNode(node('n2', [{ key: NODE_OUT_OF_SERVICE, effect: 'NoExecute' }]), at(1));
    view.upsertNode(node('n3', [{ key: 'maintenance', effect: 'NoSchedule' }]), at(1));
    assert.equal(tainted(view), '0 of 3');
  });

  test('not by a taint with which it joins', () => {
    const view = three();
    view.upsertNode(node('n4', [BY_HAND]), at(1));
    view.upsertNode(node('n4', [BY_HAND, { key: 'x', effect: 'NoSchedule' }]), at(2));
    assert.equal(tainted(view), '0 of 4');
  });

  test('from the last write of its taints, when a list finds it tainted', () => {
    const stamped = (second: number) => ({
      taintsStamp: `kubelet@${new Date(at(-999)).toISOString()},kubectl@${new Date(at(second)).toISOString()}`,
    });
    const view = listed(
      node('n1', [BY_HAND], stamped(-5)),
      node('n2', [BY_HAND], stamped(-500)),
      node('n3', [BY_HAND]),
    );
    assert.equal(tainted(view, -400), '1 of 3');
    assert.equal(tainted(view, -5), '1 of 3');
    assert.equal(tainted(view, -4), '0 of 3');
  });
});

describe('nodes that count now and were affected by a given time', () => {
  const since = (second: number) => [{ ...DOWN, timeAdded: at(second) }];

  test('include nodes that have been down since then, by zone or overall, by their first taint', () => {
    const [notReady] = since(-90).map((taint) => ({ ...taint, key: NODE_NOT_READY }));
    assert.ok(notReady);
    const view = listed(
      inZone('a', 'n1', [...since(-20), notReady]),
      inZone('a', 'n2', since(-30)),
      inZone('b', 'n3', since(-60)),
      node('n4'),
      node('n5', [DOWN]),
    );
    const affected = (zone: string | undefined, second: number) =>
      view.tally.affectedBy(
        { scope: zone === undefined ? 'cluster' : 'zone', ...(zone && { zone }) },
        at(second),
      );
    assert.deepEqual([affected(undefined, -60), affected(undefined, -25), affected(undefined, 0)], [2, 3, 4]);
    assert.deepEqual([affected('a', -60), affected('a', -30), affected('b', -61)], [1, 2, 0]);
    view.upsertNode(inZone('a', 'n1', since(5)), at(5));
    assert.equal(affected('a', -60), 1, 'it was down all the while');
    view.upsertNode(inZone('a', 'n1'), at(6));
    view.upsertNode(inZone('a', 'n1', since(7)), at(7));
    assert.equal(affected('a', 6), 1);
  });

  test('include nodes that people had tainted by then', () => {
    const view = three();
    view.upsertNode(node('n1', [{ key: 'maintenance', effect: 'NoExecute' }]), at(1));
    view.upsertNode(node('n2', [{ key: 'maintenance', effect: 'NoExecute' }]), at(3));
    assert.equal(view.tally.affectedBy({ scope: 'customTaints' }, at(2)), 1);
  });
});

test('incremental counts equal full counts', () => {
  const names = ['n1', 'n2', 'n3', 'n4', 'n5'];
  const seen = fc.record({
    name: fc.constantFrom(...names),
    zone: fc.constantFrom('a', 'b', undefined),
    down: fc.boolean(),
    gone: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(seen, { maxLength: 40 }), (events) => {
      const all = new Map(names.map((name) => [name, node(name)]));
      const view = listed(...all.values());
      for (const { name, zone, down, gone } of events) {
        if (gone) {
          all.delete(name);
          view.deleteNode(nodeName(name), at(1));
          continue;
        }
        // A node that joins is up at first.
        if (!all.has(name)) view.upsertNode(node(name), at(1));
        const live = node(name, down ? [DOWN] : [], zone === undefined ? {} : { zone });
        all.set(name, live);
        view.upsertNode(live, at(1));
      }
      assert.deepEqual(view.tally.counts(0), listed(...all.values()).tally.counts(0));
    }),
  );
});
