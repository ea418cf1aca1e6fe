import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { getHeapStatistics } from 'node:v8';
import { ClusterView, type Subject } from '#shared/engine/watch/cluster-view.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { TaintedNode } from '#shared/state/store.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { at, found, taint, tolerating } from '#test/unit/eviction/builders.ts';
import { FreeOutbox } from '#test/world/free-outbox.ts';
import { SendingView } from '#test/world/sending-view.ts';
import { liveNode, livePod } from './live-objects.ts';

const N1 = nodeName('n1');
const A = { key: 'a', effect: 'NoExecute' };
const NOTHING = { nodes: 0, tainted: 0, pods: 0 };

/** Returns a view that has listed these nodes and pods. */
function listed(nodes: readonly LiveNode[] = [], pods: readonly LivePod[] = [], epoch = 1): SendingView {
  const view = new SendingView(clusterName('c1'), epoch);
  view.replaceNodes(nodes, at(0));
  view.replacePods(pods, at(0));
  return view;
}

const stored = (node: string, ...keys: readonly string[]): TaintedNode => ({
  node: nodeName(node),
  state: {
    taints: keys.map((key) => ({ key, effect: 'NoExecute', since: at(-100), known: 'added' })),
    version: { epoch: 1, sequence: 1 },
    observedAt: at(-100),
  },
});

/** Returns a view, and the deltas of its changes on request. */
function silent() {
  const view = new ClusterView(clusterName('c1'), 1);
  const outbox = new FreeOutbox(view);
  const now = at(99);
  return {
    view,
    mark: (subjects: readonly Subject[]) => outbox.mark(subjects),
    /** Returns all deltas that were not sent yet, also those of these subjects. */
    sent: (subjects: readonly Subject[] = []) => {
      outbox.mark(subjects);
      return linesOf([...outbox.send(now)]);
    },
  };
}

/** Returns deltas in short form: their objects and taints. */
function linesOf(deltas: readonly Delta[]): readonly string[] {
  return deltas.map((delta) => {
    const taints = `${delta.taints.map(({ key }) => key).join('+') || 'untainted'}`;
    const where = `${delta.ref.node}${delta.deletedAt === undefined ? '' : ' deleted'} ${taints}`;
    switch (delta.kind) {
      case 'node':
        return `${where}: ${delta.pods.map(({ uid }) => uid).join(' ') || 'no pods'}`;
      case 'pod':
        return `${where}: has ${delta.pod.uid}`;
      case 'pod-gone':
        return `${where}: lost ${delta.uid}`;
      default:
        return delta satisfies never;
    }
  });
}

function only(deltas: readonly Delta[]): Delta {
  const [delta] = deltas;
  assert.ok(delta && deltas.length === 1);
  return delta;
}

describe('the view sends nothing', () => {
  test('before the nodes are listed, for any content of the store', () => {
    const view = new ClusterView(clusterName('c1'), 1);
    assert.equal(view.listed, false);
    assert.deepEqual(view.resync([stored('n1', 'a')], at(0)), []);
    assert.deepEqual(view.followed(), []);
    view.replaceNodes([], at(0));
    assert.equal(view.listed, true);
    assert.deepEqual(view.resync([stored('n1', 'a')], at(0)), [{ node: N1 }]);
  });

  test('for a tainted node and its pods before the pods are listed', () => {
    const { view, mark, sent } = silent();
    mark(view.replaceNodes([liveNode('n1', 'a'), liveNode('n2')], at(0)));
    mark(view.upsertPod(livePod(), at(1)));
    mark(view.resync([], at(2)));
    assert.deepEqual([view.isComplete(N1), view.isComplete(nodeName('n2'))], [false, true]);
    assert.deepEqual(view.counts, { nodes: 2, tainted: 1, pods: 0 });
    assert.equal(view.awaitsPods, true);
    assert.deepEqual(sent(), []);
    mark(view.replacePods(N1, [livePod()], at(3)));
    assert.deepEqual(view.counts, { nodes: 2, tainted: 1, pods: 1 });
    assert.equal(view.awaitsPods, false);
    assert.deepEqual(sent(), ['n1 a: u1']);
  });

  test('for nodes without a NoExecute taint, for any changes on them', () => {
    const soft = { ...liveNode(), taints: [{ key: 'a', effect: 'NoSchedule' }] };
    const view = listed([liveNode()]);
    const deltas = [
      view.upsertPod(livePod(), at(1)),
      view.upsertPod(livePod('u1', { tolerations: [] }), at(2)),
      view.upsertNode(soft, at(3)),
      view.deletePod(livePod(), at(4)),
      view.upsertPod(livePod('u2'), at(5)),
      view.replacePods([livePod('u3')], at(6)),
      view.replaceNodes([liveNode()], at(7)),
      view.resync([], at(8), true),
      view.deleteNode(N1, at(9)),
      view.deletePod(livePod('u3'), at(10)),
    ];
    assert.deepEqual(deltas.flat(), []);
  });

  test('for pods that are unbound or terminating', () => {
    const view = listed([liveNode('n1', 'a')]);
    assert.deepEqual(view.upsertPod(livePod('u1', { node: undefined }), at(1)), []);
    assert.deepEqual(view.upsertPod(livePod('u2', { terminating: true }), at(1)), []);
    assert.deepEqual(linesOf(view.resync([], at(2), false)), ['n1 a: no pods']);
  });

  test('when a node or a pod changes in an irrelevant field', () => {
    const view = listed([liveNode('n1', 'a')], [livePod()]);
    assert.deepEqual(view.upsertNode({ ...liveNode('n1', 'a'), resourceVersion: '2' }, at(1)), []);
    const labelled = livePod('u1', { resourceVersion: '2', tolerations: [tolerating('a', 60)] });
    assert.deepEqual(view.upsertPod(labelled, at(1)), []);
  });
});

describe('a node', () => {
  test('is sent with all of its pods when it is tainted', () => {
    const view = listed(
      [liveNode('n1'), liveNode('n2')],
      [livePod('u1'), livePod('u2', { node: nodeName('n2') })],
    );
    const delta = only(view.upsertNode(liveNode('n1', 'a'), at(7)));
    assert.deepEqual(linesOf([delta]), ['n1 a: u1']);
    assert.deepEqual(delta.taints, [taint('a', 7)]);
    assert.equal(delta.observedAt, at(7));
  });

  test('is sent without pods when it is untainted', () => {
    const view = listed([liveNode('n1', 'a')], [livePod()]);
    assert.deepEqual(linesOf(view.upsertNode(liveNode('n1'), at(1))), ['n1 untainted: no pods']);
    assert.deepEqual(view.counts, { nodes: 1, tainted: 0, pods: 0 });
  });

  test('loses the deletions by other actors when it is untainted, because they are unrelated to later taints', () => {
    const view = new ClusterView(clusterName('c1'), 1);
    view.replaceNodes([liveNode('n1', 'a')], at(0));
    view.replacePods(N1, [livePod('u1')], at(0));
    view.deletePod(livePod('u1', { deleted: { at: at(1), by: 'other' } }));
    assert.equal(view.nodeDelta(N1, at(2), false).deleted?.length, 1);
    view.upsertNode(liveNode('n1'), at(2));
    view.upsertNode(liveNode('n1', 'b'), at(3));
    view.replacePods(N1, [], at(3));
    assert.equal(view.nodeDelta(N1, at(3), false).deleted, undefined);
  });

  test('is sent immediately when it is untainted, also before its pods are listed, and a late list is ignored', () => {
    const { view, mark, sent } = silent();
    mark(view.replaceNodes([liveNode('n1', 'a')], at(0)));
    assert.deepEqual(sent(view.upsertNode(liveNode('n1'), at(1))), ['n1 untainted: no pods']);
    mark(view.replacePods(N1, [livePod()], at(2)));
    assert.deepEqual([sent(), view.counts.pods], [[], 0]);
  });

  test('waits for a new list of its pods when it is tainted again', () => {
    const { view, mark, sent } = silent();
    mark(view.replaceNodes([liveNode('n1', 'a')], at(0)));
    mark(view.replacePods(N1, [livePod('u1')], at(0)));
    sent(view.upsertNode(liveNode('n1'), at(1)));
    assert.deepEqual(sent(view.upsertNode(liveNode('n1', 'a'), at(2))), []);
    assert.deepEqual(sent(view.replacePods(N1, [livePod('u2')], at(3))), ['n1 a: u2']);
  });

  test('keeps the first time of its taint, for other values and another order', () => {
    const view = listed([liveNode('n1', 'a')]);
    const changed = {
      ...liveNode('n1', 'b', 'a'),
      taints: [...liveNode('n1', 'b').taints, { key: 'a', value: 'v', effect: 'NoExecute' }],
    };
    assert.deepEqual(only(view.upsertNode(changed, at(9))).taints, [taint('b', 9), found('a', 0, 'v')]);
  });

  test('keeps the time from not-ready to unreachable and back, and loses it without either', () => {
    const view = listed([liveNode('n1', NODE_NOT_READY)]);
    assert.deepEqual(only(view.upsertNode(liveNode('n1', NODE_UNREACHABLE), at(5))).taints, [
      found(NODE_UNREACHABLE),
    ]);
    assert.deepEqual(only(view.upsertNode(liveNode('n1', NODE_NOT_READY), at(6))).taints, [
      found(NODE_NOT_READY),
    ]);
    view.upsertNode(liveNode('n1'), at(7));
    assert.deepEqual(only(view.upsertNode(liveNode('n1', NODE_NOT_READY), at(8))).taints, [
      taint(NODE_NOT_READY, 8),
    ]);
  });

  test('has the pods whose events arrived before its own', () => {
    const view = listed();
    assert.deepEqual(view.upsertPod(livePod(), at(1)), []);
    assert.deepEqual(linesOf(view.upsertNode(liveNode('n1', 'a'), at(2))), ['n1 a: u1']);
  });
});

describe('a pod on a tainted node', () => {
  const tainted = (...pods: readonly LivePod[]) => listed([liveNode('n1', 'a')], pods);

  test('is sent when it appears and when its tolerations change', () => {
    const view = tainted();
    assert.deepEqual(linesOf(view.upsertPod(livePod(), at(1))), ['n1 a: has u1']);
    const delta = only(view.upsertPod(livePod('u1', { tolerations: [] }), at(2)));
    assert.deepEqual(delta.kind === 'pod' && delta.pod.tolerations, []);
  });

  test('is sent when its labels, annotations, or owner change, because policy may exclude it by them', () => {
    const web = { kind: 'ReplicaSet', name: 'web-1' };
    const before = livePod('u1', { labels: { app: 'web' }, owner: web });
    const view = tainted(before);
    assert.deepEqual(view.upsertPod({ ...before, resourceVersion: '2' }, at(1)), []);
    const delta = only(view.upsertPod({ ...before, labels: { app: 'debug' } }, at(2)));
    assert.deepEqual(delta.kind === 'pod' && Object.keys(delta.pod).toSorted(), [
      ...['name', 'namespace', 'owner', 'podSince', 'tolerations', 'uid'],
    ]);
    assert.deepEqual(linesOf(view.upsertPod(livePod('u1', { labels: { app: 'debug' } }), at(3))), [
      'n1 a: has u1',
    ]);
    assert.deepEqual(linesOf(view.upsertPod(livePod('u1'), at(4))), ['n1 a: has u1']);
    // The same text as an annotation is another trait than as a label.
    for (const [second, traits] of [{ labels: { a: 'b' } }, { annotations: { a: 'b' } }, {}].entries())
      assert.deepEqual(linesOf(view.upsertPod(livePod('u1', traits), at(5 + second))), ['n1 a: has u1']);
  });

  test('is sent once as gone, when it terminates or is deleted', () => {
    for (const terminates of [true, false]) {
      const view = tainted(livePod());
      const gone = livePod('u1', { terminating: true });
      assert.deepEqual(linesOf(terminates ? view.upsertPod(gone, at(1)) : view.deletePod(livePod(), at(1))), [
        'n1 a: lost u1',
      ]);
      assert.deepEqual(view.deletePod(livePod(), at(2)), []);
    }
  });

  test('is removed without a delta after our eviction', () => {
    const view = tainted(livePod());
    assert.deepEqual(view.upsertPod(livePod('u1', { disrupted: true }), at(1)), []);
    assert.deepEqual(view.upsertPod(livePod('u1', { disrupted: true, terminating: true }), at(1)), []);
    assert.deepEqual(view.deletePod(livePod('u1', { disrupted: true }), at(2)), []);
    assert.deepEqual(linesOf(view.resync([], at(3), false)), ['n1 a: no pods']);
  });

  test('is sent with the actor of a foreign deletion, also in the next deltas of its node', () => {
    const deleted = { at: at(1), by: 'taint-manager' } as const;
    const view = tainted(livePod());
    const gone = only(view.upsertPod(livePod('u1', { disrupted: true, terminating: true, deleted }), at(1)));
    assert.deepEqual(gone.kind === 'pod-gone' && gone.deleted?.deleted, deleted);
    const uidsAt = (second: number) => {
      const delta = only(view.resync([], at(second), false));
      return delta.kind === 'node' && delta.deleted?.map(({ uid }) => uid);
    };
    assert.deepEqual([uidsAt(3), uidsAt(1 + 20 * 60), uidsAt(2 + 20 * 60)], [['u1'], ['u1'], undefined]);
  });

  test('is sent with the actor if it terminates before its node is listed', () => {
    const deleted = { at: at(0), by: 'taint-manager' } as const;
    const going = { terminating: true, disrupted: true };
    const view = tainted(livePod('u1', { ...going, deleted }), livePod('u2', going));
    const delta = only(view.resync([], at(1), false));
    assert.ok(delta.kind === 'node');
    assert.deepEqual(
      [delta.pods, delta.deleted?.map((pod) => [pod.uid, pod.deleted])],
      [[], [['u1', deleted]]],
    );
  });

  test('exists beside another pod of its name until its own end arrives', () => {
    const { view, mark, sent } = silent();
    mark(view.replaceNodes([liveNode('n1', 'a')], at(0)));
    sent(view.replacePods(N1, [livePod()], at(0)));
    assert.deepEqual(sent(view.upsertPod(livePod('u2', { name: 'pod-u1' }), at(1))), ['n1 a: has u2']);
    assert.deepEqual(sent(view.resync([], at(2))), ['n1 a: u1 u2']);
    assert.deepEqual(sent(view.deletePod(livePod())), ['n1 a: lost u1']);
  });

  test('differs from a pod of the same name in another namespace', () => {
    const view = tainted(livePod());
    const namesake = livePod('u2', { name: 'pod-u1', namespace: 'other' });
    assert.deepEqual(linesOf(view.upsertPod(namesake, at(1))), ['n1 a: has u2']);
  });
});

test('sends only the deciding tolerations of a pod, with their indexes', () => {
  const tolerations = [tolerating('b', 1), tolerating('a', 60), tolerating('a')];
  const view = listed([liveNode('n1')], [livePod('u1', { tolerations })]);
  const ofNode = only(view.upsertNode(liveNode('n1', 'a'), at(1)));
  assert.deepEqual(ofNode.kind === 'node' && ofNode.pods[0]?.tolerations, [
    { ...tolerating('a', 60), index: 1 },
  ]);
  const ofPod = only(view.upsertPod(livePod('u1', { tolerations: tolerations.slice(1) }), at(2)));
  assert.deepEqual(ofPod.kind === 'pod' && ofPod.pod.tolerations, [{ ...tolerating('a', 60), index: 0 }]);
});

describe('the time of a binding', () => {
  const podSince = (pod: LivePod, second: number) => {
    const delta = only(listed([liveNode('n1', 'a')]).upsertPod(pod, second));
    return delta.kind === 'pod' ? delta.pod.podSince : undefined;
  };

  for (const [what, second, expected] of [
    ['the end of the second that Kubernetes truncates to, so that no pod is evicted early', 20, at(10) + 999],
    ['not later than the observation', 10.3, at(10.3)],
    ['the time of Kubernetes when that is ahead of our clock', 8, at(10)],
  ] as const)
    test(`is ${what}`, () =>
      assert.equal(podSince(livePod('u1', { podSince: at(10) }), at(second)), expected));

  test('is the first observation where the time of Kubernetes is implausible', () => {
    const inYear2999 = livePod('u1', { podSince: Date.UTC(2999, 0) });
    assert.equal(podSince(inYear2999, at(20)), at(20));
    const view = listed([liveNode('n1', 'a')]);
    view.upsertPod(inYear2999, at(20));
    const later = only(view.upsertPod({ ...inYear2999, tolerations: [] }, at(30)));
    assert.equal(later.kind === 'pod' && later.pod.podSince, at(20));
  });

  test('stays as first observed', () => {
    const view = listed([liveNode('n1', 'a')]);
    view.upsertPod(livePod('u1', { podSince: at(10) }), at(10) + 300);
    const delta = only(view.upsertPod(livePod('u1', { podSince: at(10), tolerations: [] }), at(30)));
    assert.equal(delta.kind === 'pod' && delta.pod.podSince, at(10) + 300);
  });
});

describe('an observation of a relay', () => {
  test('has the later of its own time and the API server’s, and is never sent as earlier', () => {
    const view = listed([liveNode('n1')]);
    let aheadMs = 20_600;
    view.latest = (now) => now + aheadMs;
    view.upsertPod(livePod('u1', { podSince: at(11) }), at(10));
    view.upsertNode(liveNode('n1', 'a'), at(10));
    // More answers narrow the range of the skew.
    aheadMs = 20_100;
    const delta = only(view.resync([], at(10.1), false));
    assert.ok(delta.kind === 'node');
    assert.deepEqual(
      [delta.taints[0]?.seenAt, delta.observedAt, delta.pods[0]?.podSince],
      [at(30.6), at(30.6), at(11.999)],
    );
    view.deleteNode(N1, at(20));
    assert.equal(only(view.resync([], at(20), false)).deletedAt, at(40.1));
  });

  test('does not stay in the future after the clock was set back', () => {
    const year = 365 * 86_400;
    const view = listed([liveNode('n1')]);
    view.upsertNode(liveNode('n1', 'a'), at(year));
    const seenAt = (second: number) => only(view.resync([], at(second), false)).taints[0]?.seenAt;
    assert.deepEqual([seenAt(60), seenAt(600)], [at(60), at(60)]);
  });

  test('ignores a future time of a taint as a restart', () => {
    const view = listed([liveNode('n1')]);
    const set = (second: number) => ({ ...liveNode('n1', 'a'), taints: [{ ...A, timeAdded: at(second) }] });
    view.upsertNode(set(10), at(10));
    for (const second of [20, 30, 40]) view.upsertNode(set(second + 31), at(second));
    assert.equal(only(view.resync([], at(50), false)).taints[0]?.seenAt, at(10));
  });
});

describe('the known start of a taint', () => {
  const evidence = (deltas: readonly Delta[]) =>
    only(deltas).taints.map(({ key, known, seenAt }) => [key, known, seenAt]);

  test('stays while the taint exists, also through a list after a gap', () => {
    const view = listed([liveNode('n1')]);
    view.upsertNode(liveNode('n1', 'a'), at(5));
    view.replaceNodes([liveNode('n1', 'a')], at(50));
    assert.deepEqual(evidence(view.resync([], at(60), true)), [['a', 'added', at(5)]]);
  });

  test('is found on an unknown node, although the node may be new', () => {
    const view = listed();
    assert.deepEqual(evidence(view.upsertNode(liveNode('n2', 'a'), at(5))), [['a', 'preexisting', at(5)]]);
    view.replaceNodes([liveNode('n2', 'a'), liveNode('n3', 'b')], at(9));
    assert.deepEqual(
      view.resync([], at(9), true).map((delta) => delta.taints[0]?.known),
      ['preexisting', 'preexisting'],
    );
  });

  test('is added on an unknown node after the tainted nodes of the store were loaded', () => {
    const view = listed();
    view.resync([], at(1), false);
    assert.deepEqual(evidence(view.upsertNode(liveNode('n2', 'a'), at(5))), [['a', 'added', at(5)]]);
  });

  test('counts from when the taint was set again, if it has a time', () => {
    const setAt = (second: number, key = NODE_UNREACHABLE) => ({
      ...liveNode('n1'),
      taints: [{ key, effect: 'NoExecute', timeAdded: at(second) }],
    });
    const view = listed([liveNode('n1')]);
    const seenAt = (node: LiveNode, second: number) =>
      only(view.upsertNode(node, at(second))).taints[0]?.seenAt;
    assert.equal(seenAt(setAt(3), 4), at(4));
    assert.equal(seenAt(setAt(8), 8.3), at(8.3));
    assert.equal(seenAt(setAt(12, NODE_NOT_READY), 12), at(8.3), 'one countdown');
    assert.equal(seenAt(setAt(20, NODE_NOT_READY), 25), at(20.999), 'Kubernetes cuts moments to the second');
  });

  test('stays for not-ready and unreachable while either taint stays, although the other is set again', () => {
    const notReady = { key: NODE_NOT_READY, effect: 'NoExecute', timeAdded: at(3) };
    const unreachable = (second: number) => ({
      key: NODE_UNREACHABLE,
      effect: 'NoExecute',
      timeAdded: at(second),
    });
    const view = listed([liveNode('n1')]);
    const seenAt = (second: number, ...taints: LiveNode['taints']) =>
      only(view.upsertNode({ ...liveNode('n1'), taints }, at(second))).taints.map((taint) => taint.seenAt);
    assert.deepEqual(seenAt(4, notReady), [at(4)]);
    assert.deepEqual(seenAt(10, notReady, unreachable(10)), [at(4), at(4)]);
    assert.deepEqual(seenAt(20, notReady, unreachable(19)), [at(4), at(4)]);
    assert.deepEqual(seenAt(30, unreachable(19)), [at(4)]);
    assert.deepEqual(seenAt(40, unreachable(39)), [at(39.999)]);
  });

  test('includes the time of the taint itself', () => {
    const node = { ...liveNode('n1'), taints: [{ key: 'a', effect: 'NoExecute', timeAdded: at(3) }] };
    const [seen] = only(listed([liveNode('n1')]).upsertNode(node, at(5))).taints;
    assert.equal(seen?.timeAdded, at(3));
  });
});

describe('a deleted node', () => {
  for (const disrupted of [false, true])
    test(`keeps its taints for its remaining pods, and is removed with the last, evicted: ${disrupted}`, () => {
      const view = listed([liveNode('n1', 'a')], [livePod('u1'), livePod('u2')]);
      const deleted = only(view.deleteNode(N1, at(5)));
      assert.deepEqual(linesOf([deleted]), ['n1 deleted a: u1 u2']);
      assert.equal(deleted.deletedAt, at(5));
      assert.deepEqual(view.deleteNode(N1, at(6)), []);
      assert.deepEqual(linesOf(view.deletePod(livePod('u1'), at(7))), ['n1 deleted a: lost u1']);
      assert.deepEqual(linesOf(view.deletePod(livePod('u2', { disrupted }), at(8))), [
        'n1 deleted untainted: no pods',
      ]);
      assert.deepEqual(view.counts, NOTHING);
      assert.deepEqual(view.resync([], at(9), false), []);
    });

  test('is kept when a list has another of its pods and lacks the known pod', () => {
    const view = listed([liveNode('n1', 'a')], [livePod('u1')]);
    view.deleteNode(N1, at(5));
    view.replacePods([livePod('u2')], at(6));
    assert.deepEqual(linesOf(view.resync([], at(7), false)), ['n1 deleted a: u2']);
  });

  test('is sent once and removed without pods', () => {
    const view = listed([liveNode('n1', 'a')]);
    assert.deepEqual(linesOf(view.deleteNode(N1, at(5))), ['n1 deleted untainted: no pods']);
    assert.deepEqual(view.counts, NOTHING);
  });

  test('continues its countdowns when it returns tainted', () => {
    const view = listed([liveNode('n1', 'a')], [livePod()]);
    view.deleteNode(N1, at(5));
    const back = only(view.upsertNode(liveNode('n1', 'a'), at(9)));
    assert.deepEqual(linesOf([back]), ['n1 a: u1']);
    assert.deepEqual(back.taints, [found('a')]);
  });

  test('is sent when it returns untainted', () => {
    const view = listed([liveNode('n1', 'a')], [livePod()]);
    view.deleteNode(N1, at(5));
    assert.deepEqual(linesOf(view.upsertNode(liveNode('n1'), at(9))), ['n1 untainted: no pods']);
  });

  test('is removed if it was untainted before, so that a taint on its return is new', () => {
    const view = listed([liveNode('n1', 'a')], [livePod()]);
    view.resync([stored('n1', 'a')], at(3), false);
    view.upsertNode(liveNode('n1'), at(4));
    assert.deepEqual(view.deleteNode(N1, at(5)), []);
    assert.deepEqual(view.counts, NOTHING);
    assert.deepEqual(only(view.upsertNode(liveNode('n1', 'a'), at(7))).taints, [taint('a', 7)]);
  });

  test('stays untainted if it was untainted before, although the store still has the taint', () => {
    const view = listed([liveNode('n1', 'a')], [livePod()]);
    view.upsertNode(liveNode('n1'), at(4));
    view.deleteNode(N1, at(5));
    for (const second of [6, 7]) {
      const resync = view.resync([stored('n1', 'a')], at(second), false);
      assert.deepEqual(linesOf(resync), ['n1 untainted: no pods']);
    }
    assert.deepEqual(view.resync([], at(8), false), []);
    assert.deepEqual(linesOf(view.resync([stored('n1', 'a')], at(9), false)), ['n1 deleted a: u1']);
  });

  test('is sent with its pods once they are listed', () => {
    const { view, mark, sent } = silent();
    mark(view.replaceNodes([liveNode('n1', 'a')], at(0)));
    assert.deepEqual(sent(view.deleteNode(N1, at(1))), []);
    assert.deepEqual(sent(view.replacePods(N1, [livePod()], at(2))), ['n1 deleted a: u1']);
  });

  test('is sent and removed when the first list has no pods', () => {
    const { view, mark, sent } = silent();
    mark(view.replaceNodes([liveNode('n1', 'a')], at(0)));
    mark(view.deleteNode(N1, at(1)));
    assert.deepEqual(sent(view.replacePods(N1, [livePod('u1', { terminating: true })], at(2))), [
      'n1 deleted untainted: no pods',
    ]);
    assert.deepEqual(view.counts, NOTHING);
  });

  test('returns, or loses its last pod, without a delta if it was untainted before', () => {
    const view = listed([liveNode('n1')], [livePod()]);
    view.deleteNode(N1, at(5));
    assert.deepEqual(view.upsertNode(liveNode('n1'), at(6)), []);
    view.deleteNode(N1, at(7));
    assert.deepEqual(view.deletePod(livePod(), at(8)), []);
    assert.deepEqual(view.counts, NOTHING);
  });

  test('still affects a pod that is reported late', () => {
    const view = listed([liveNode('n1', 'a')], [livePod()]);
    view.deleteNode(N1, at(5));
    assert.deepEqual(linesOf(view.upsertPod(livePod('u2'), at(6))), ['n1 deleted a: has u2']);
  });
});

describe('a new list', () => {
  test('sends deleted, new and changed nodes', () => {
    const view = listed([liveNode('n1', 'a'), liveNode('n2', 'a'), liveNode('n3')], [livePod()]);
    const list = [liveNode('n2', 'a'), liveNode('n3', 'b'), liveNode('n4', 'c')];
    assert.deepEqual(linesOf(view.replaceNodes(list, at(1))), [
      'n1 deleted a: u1',
      'n3 b: no pods',
      'n4 c: no pods',
    ]);
  });

  test('sends all pods of a node, whatever pods were known', () => {
    const view = listed([liveNode('n1', 'a')], [livePod('u1'), livePod('u2'), livePod('u3')]);
    const list = [livePod('u2'), livePod('u3', { tolerations: [] }), livePod('u4')];
    assert.deepEqual(linesOf(view.replacePods(list, at(1))), ['n1 a: u2 u3 u4']);
  });

  test('sends nothing when the pods of a node are unchanged', () => {
    const view = listed([liveNode('n1', 'a')], [livePod('u1'), livePod('u2')]);
    const again = [
      livePod('u2', { resourceVersion: '9', tolerations: [tolerating('a', 60)] }),
      livePod('u1'),
    ];
    assert.deepEqual(view.replacePods(again, at(1)), []);
    const twins = listed([liveNode('n1', 'a')]);
    assert.deepEqual(twins.replacePods([], at(1)), []);
  });

  test('omits terminating pods, and pods of other nodes', () => {
    const list = [livePod('u1', { terminating: true }), livePod('u2', { node: nodeName('n2') })];
    const { view, mark, sent } = silent();
    mark(view.replaceNodes([liveNode('n1', 'a')], at(0)));
    assert.deepEqual(sent(view.replacePods(N1, list, at(1))), ['n1 a: no pods']);
  });

  test('keeps the times of bindings', () => {
    const view = listed([liveNode('n1', 'a')]);
    const pod = livePod('u1', { podSince: at(10) });
    view.upsertPod(pod, at(10) + 300);
    const delta = only(view.replacePods([pod, livePod('u2')], at(60)));
    assert.equal(delta.kind === 'node' && delta.pods[0]?.podSince, at(10) + 300);
  });
});

describe('a resync', () => {
  test('sends every tainted node again, with a newer version', () => {
    const view = listed([liveNode('n1', 'a'), liveNode('n2')], [livePod()]);
    const first = only(view.resync([], at(1), false));
    const second = only(view.resync([], at(2), true));
    assert.deepEqual(linesOf([second]), ['n1 a: u1']);
    assert.ok(second.version.sequence > first.version.sequence);
    assert.deepEqual(
      [first, second].map((delta) => delta.kind === 'node' && delta.wake),
      [false, true],
    );
  });

  for (const [what, view, expected] of [
    [
      'a node as untainted that only the store has as tainted',
      listed([liveNode('n1')], [livePod()]),
      'untainted',
    ],
    ['and removes a missing stored node without pods', listed(), 'deleted untainted'],
    ['a node once that both have as tainted', listed([liveNode('n1', 'a')]), 'a'],
  ] as const)
    test(`sends ${what}`, () => {
      assert.deepEqual(linesOf(view.resync([stored('n1', 'a')], at(1), false)), [`n1 ${expected}: no pods`]);
      assert.equal(view.counts.nodes, expected === 'deleted untainted' ? 0 : 1);
    });

  test('sends a missing stored node as deleted, with its stored taints as found', () => {
    const view = listed([], [livePod()]);
    const delta = only(view.resync([stored('n1', 'a')], at(1), false));
    assert.deepEqual(linesOf([delta]), ['n1 deleted a: u1']);
    assert.equal(delta.deletedAt, at(1));
    assert.equal(delta.taints[0]?.known, 'preexisting');
    assert.deepEqual(linesOf(view.upsertPod(livePod('u2'), at(2))), ['n1 deleted a: has u2']);
    assert.equal(delta.taints[0]?.seenAt, at(-100));
    const { node, state } = stored('n1', 'a');
    const again = listed([], [livePod()]).resync(
      [{ node, state: { ...state, deletedAt: at(-50) } }],
      at(1),
      false,
    );
    assert.equal(only(again).deletedAt, at(-50));
  });

  test('sends the stored taints of a returning node as found at its return, because the time between is unknown', () => {
    const view = listed([], [livePod()]);
    view.resync([stored('n1', 'a')], at(1), false);
    assert.deepEqual(only(view.upsertNode(liveNode('n1', 'a'), at(3))).taints, [found('a', 3)]);
    assert.deepEqual(only(view.upsertNode(liveNode('n1', 'a', 'b'), at(5))).taints, [
      found('a', 3),
      taint('b', 5),
    ]);
  });

  test('sends a missing stored node as untainted when its taint was last reported as removed', () => {
    const view = listed([], [livePod()]);
    const { node, state } = stored('n1', 'a');
    const doubtful = state.taints.map((each) => ({ ...each, known: 'preexisting', since: at(-90) }) as const);
    const delta = only(view.resync([{ node, state: { ...state, taints: doubtful } }], at(1), false));
    assert.deepEqual(linesOf([delta]), ['n1 untainted: no pods']);
    assert.deepEqual(only(view.upsertNode(liveNode('n1', 'a'), at(3))).taints, [taint('a', 3)]);
  });

  test('sends a stored node without taints that it saw deleted, and whose last pod it saw go', () => {
    const view = listed([liveNode('n1', 'a')], [livePod()]);
    view.deleteNode(N1, at(1));
    view.deletePod(livePod(), at(2));
    view.upsertPod(livePod('u2'), at(3));
    assert.deepEqual(linesOf(view.resync([stored('n1', 'a')], at(4), false)), [
      'n1 deleted untainted: no pods',
    ]);
  });

  test('sends a stored node as untainted that returned without its taints, and was deleted again', () => {
    const view = listed([liveNode('n1', 'a')], [livePod()]);
    view.deleteNode(N1, at(1));
    view.deletePod(livePod(), at(2));
    view.upsertNode(liveNode('n1'), at(3));
    view.deleteNode(N1, at(4));
    assert.deepEqual(linesOf(view.resync([stored('n1', 'a')], at(5), false)), ['n1 untainted: no pods']);
  });
});

test('ranks pods in the order of their first deltas', () => {
  const nodes = ['n1', 'n2'].map((name) => liveNode(name, 'a'));
  const { view } = silent();
  view.replaceNodes(nodes, at(0));
  for (const { name } of nodes) view.replacePods(name, [livePod(`u-${name}`, { node: name })], at(0));
  const ranks = ['n2', 'n1', 'n2'].map((name) => {
    const [pod] = view.nodeDelta(nodeName(name), at(1), true).pods;
    return pod?.rank;
  });
  assert.deepEqual(ranks, [0, 1, 0]);
});

test('every delta is newer than the previous, and deltas of a later epoch are newer than all before', () => {
  const view = listed([liveNode('n1', 'a')], [livePod('u1')], 7);
  const deltas = [
    view.resync([stored('n9', 'a')], at(1), true),
    view.upsertPod(livePod('u2', { name: 'pod-u1' }), at(2)),
    view.deleteNode(N1, at(3)),
    view.deletePod(livePod('u2'), at(4)),
  ].flat();
  assert.ok(deltas.every(({ version }) => version.epoch === 7));
  const sequences = deltas.map(({ version }) => version.sequence);
  assert.deepEqual(
    sequences,
    [...new Set(sequences)].sort((a, b) => a - b),
  );
});

test('a view does not grow with objects that are gone', () => {
  const view = listed([liveNode('n1', 'a')]);
  for (let index = 0; index < 100; index++) {
    const uid = podUid(`u${index}`);
    view.upsertPod(livePod(uid), at(index));
    view.upsertNode(liveNode(`n${index}`, 'a'), at(index));
    view.deleteNode(nodeName(`n${index}`), at(index));
    view.deletePod(livePod(uid), at(index));
  }
  assert.deepEqual(view.counts, NOTHING);
});

describe('pods beyond any limit of a cluster', () => {
  /**
   * A hundred pods with this key fill the limit. All pods share the string, so that the test needs its memory
   * only once.
   */
  const LARGE = 'x'.repeat(getHeapStatistics().heap_size_limit / 300);
  const TOO_MANY = { name: 'ApiError', message: /^The pods of its tainted nodes exceed \d+ MiB/ };
  const large = (index: number, fields: Partial<LivePod> = {}): LivePod =>
    livePod(`u${index}`, { tolerations: [{ key: LARGE, operator: 'Exists' }], ...fields });
  /** Returns how many of 150 are accepted, one by one. */
  function takenBy(take: (index: number) => unknown): number {
    for (let index = 0; index < 150; index++) {
      try {
        take(index);
      } catch (error) {
        assert.throws(() => {
          throw error;
        }, TOO_MANY);
        return index;
      }
    }
    return 150;
  }
  const few = (taken: number) => assert.ok(taken > 90 && taken < 110, `${taken} were taken`);

  test('are rejected in a list, and none is kept', () => {
    const view = listed([liveNode('n1', 'a')]);
    const pods = Array.from({ length: 110 }, (_, index) => large(index));
    assert.throws(() => view.replacePods(pods, at(1)), TOO_MANY);
    assert.deepEqual(view.counts, { nodes: 1, tainted: 1, pods: 0 });
  });

  test('are rejected in lists of many nodes', () => {
    const nodes = Array.from({ length: 150 }, (_, index) => liveNode(`n${index}`, 'a'));
    const view = new ClusterView(clusterName('c1'), 1);
    view.replaceNodes(nodes, at(0));
    few(
      takenBy((index) => {
        const node = nodeName(`n${index}`);
        view.replacePods(node, [large(index, { node })], at(1));
      }),
    );
  });

  test('are rejected one by one; known pods stay, and deletions free capacity', () => {
    const view = listed([liveNode('n1', 'a')]);
    const taken = takenBy((index) => view.upsertPod(large(index), at(1)));
    few(taken);
    assert.equal(view.counts.pods, taken);
    view.deletePod(large(0), at(2));
    view.upsertPod(large(taken), at(2));
    assert.throws(() => view.upsertPod(large(taken + 1), at(2)), TOO_MANY);
  });

  const leaving = {
    terminating: true,
    disrupted: true,
    leaving: { gracePeriodEndedAt: at(30), finalizers: [LARGE] },
  };
  for (const [how, take] of [
    [
      'are stuck terminating',
      (view: SendingView, index: number) => view.upsertPod(livePod(`u${index}`, leaving), at(1)),
    ],
    [
      'are deleted repeatedly by other actors',
      (view: SendingView, index: number) => {
        view.upsertPod(large(index), at(1));
        view.deletePod(large(index, { deleted: { at: at(1), by: 'other' } }), at(1));
      },
    ],
  ] as const)
    test(`are rejected when they ${how}`, () => {
      const view = listed([liveNode('n1', 'a')]);
      few(takenBy((index) => take(view, index)));
    });

  test('are accepted where the same few pods change repeatedly', () => {
    const view = listed([liveNode('n1', 'a')]);
    for (let index = 0; index < 400; index++) view.upsertPod(large(index % 40), at(index));
    assert.equal(view.counts.pods, 40);
  });

  test('are sent with their nodes when they come and go while the queue is unreachable', () => {
    const { view, mark, sent } = silent();
    mark(view.replaceNodes([liveNode('n1', 'a'), liveNode('n2', 'a')], at(0)));
    for (const name of ['n1', 'n2']) sent(view.replacePods(nodeName(name), [], at(0)));
    for (let index = 0; index <= 50_000; index++) {
      mark(view.upsertPod(livePod(`u${index}`), at(1)));
      if (index > 0) mark(view.deletePod(livePod(`u${index}`)));
    }
    assert.deepEqual(sent(), ['n1 a: u0']);
  });
});
