import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Registry } from 'prom-client';
import { deduplicationId, messageGroupId, parseDelta } from '#shared/aws/delta-message.ts';
import { Emf } from '#shared/aws/emf.ts';
import { MAX_BATCH_BYTES } from '#shared/aws/limits.ts';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { ClusterView, type Subject } from '#shared/engine/watch/cluster-view.ts';
import type { Outbox } from '#shared/engine/watch/ports.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { onlyPod } from '#shared/eviction/facts.ts';
import { clusterName, type NodeName, nodeName, type PodUid, podUid } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import { type OutgoingMessage, QueueError, type SendFailure } from '#shared/state/sender.ts';
import { REFUSED_DELTAS, UNSENT_DELTAS } from '#shared/telemetry/metrics.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { liveNode, livePod } from '../../engine/watch/live-objects.ts';
import { OrderedQueue } from './ordered-queue.ts';

function bench(context: TestContext) {
  const time = driveTimers(context);
  const clock = { now: Date.now };
  const registry = new Registry();
  const nodes = new OrderedQueue();
  const pods = new OrderedQueue();
  const log = recordingLog();
  const written: string[] = [];
  const emf = new Emf({ namespace: 'taintward', clock, write: (line) => written.push(line) });
  const metrics = relayMetrics(registry, emf);
  const outbox = new DeltaSender({ nodeDeltas: nodes, podDeltas: pods, clock, log, metrics });
  const pending = (queue: string) =>
    registry
      .getSingleMetricAsString('taintward_relay_deltas_pending')
      .then((text) => Number(new RegExp(`queue="${queue}"} (\\d+)$`, 'm').exec(text)?.[1]));
  return { outbox, nodes, pods, log, registry, written, time, pending };
}

/** Opens a cluster with the untainted nodes `n1` to `n3`. Lists the pods of a node as soon as it is tainted. */
function holdLease(
  outbox: Outbox,
  cluster = 'c1',
  {
    epoch = 1,
    canSend = (): boolean => true,
    onSent = (..._report: readonly unknown[]): void => undefined,
  } = {},
) {
  const name = clusterName(cluster);
  const view = new ClusterView(name, epoch);
  view.replaceNodes(
    ['n1', 'n2', 'n3'].map((node) => liveNode(node)),
    Date.now(),
  );
  outbox.open(name, view, canSend, onSent);
  const live = new Map<PodUid, LivePod>();
  const list = (node: NodeName) =>
    view.replacePods(
      node,
      [...live.values()].filter((pod) => pod.node === node),
      Date.now(),
    );
  const change = (what: (view: ClusterView, now: EpochMs) => readonly Subject[], wake = false) => {
    outbox.mark(name, what(view, Date.now()), wake);
    for (const node of view.followed()) if (!view.isComplete(node)) outbox.mark(name, list(node));
  };
  return {
    name,
    change,
    /** Sets exactly the taints of these keys on a node. */
    taint: (node: string, ...keys: readonly string[]) =>
      change((view, now) => view.upsertNode(liveNode(node, ...keys), now)),
    nodes: (...nodes: readonly LiveNode[]) =>
      change((view, now) => nodes.flatMap((node) => view.upsertNode(node, now))),
    pods: (...pods: readonly LivePod[]) => {
      for (const pod of pods) live.set(pod.uid, pod);
      change((view, now) => pods.flatMap((pod) => view.upsertPod(pod, now)));
    },
    goes: (pod: LivePod) => {
      live.delete(pod.uid);
      change((view) => view.deletePod(pod));
    },
  };
}

const unreachable = () => {
  throw new QueueError('the queue is away');
};
const takeAll = () => [];
const refuseAll = (permanent: boolean) => (messages: readonly OutgoingMessage[]) =>
  messages.map((_, index) => ({ index, reason: 'no', permanent }));
const tainted = (count: number, key = 'a') =>
  Array.from({ length: count }, (_, index) => liveNode(`m${index}`, key));

test('sends deltas to the queue of their kind, with the IDs that keep their order', async (context) => {
  const { outbox, nodes, pods } = bench(context);
  const cluster = holdLease(outbox);
  cluster.taint('n1', 'a');
  await outbox.drained();
  cluster.pods(livePod('u1'), livePod('u2'));
  await outbox.drained();
  cluster.goes(livePod('u1'));
  await outbox.drained();
  assert.deepEqual(nodes.accepted, ['n1@1']);
  assert.deepEqual(pods.accepted, ['u1@2', 'u2@3', 'u1@4']);
  assert.deepEqual(
    pods.taken.map(({ kind }) => kind),
    ['pod', 'pod', 'pod-gone'],
  );
  const [message] = nodes.calls.flat();
  const [delta] = nodes.taken;
  assert.equal(message?.groupId, delta && messageGroupId(delta.ref));
  assert.equal(message?.deduplicationId, delta && deduplicationId(delta));
});

test('counts failed calls of a queue, also for CloudWatch', async (context) => {
  const { outbox, nodes, registry, written, time } = bench(context);
  nodes.onSend = unreachable;
  holdLease(outbox).taint('n1', 'a');
  await time.pass(150);
  nodes.onSend = takeAll;
  await time.pass(1000);
  await outbox.drained();
  assert.match(await registry.getSingleMetricAsString(UNSENT_DELTAS), /queue="node-deltas"} 2$/m);
  assert.deepEqual(
    written.map((line) => JSON.parse(line)[UNSENT_DELTAS]),
    [[1], [1]],
  );
});

test('reports each result of a call to its cluster, in the log, and in metrics', async (context) => {
  const { outbox, nodes, log, registry, time } = bench(context);
  const reports: unknown[] = [];
  const cluster = holdLease(outbox, 'c1', { onSent: (...report) => reports.push(report) });
  const error = new QueueError('the queue is away');
  const results = [
    () => Promise.reject(error),
    () => [{ index: 0, reason: 'no', permanent: false }],
    () => [{ index: 0, reason: 'never', permanent: true }],
  ];
  nodes.onSend = () => (results.shift() ?? takeAll)();
  cluster.nodes(liveNode('m1', 'a'), liveNode('m2', 'a'));
  await time.pass(10_000);
  cluster.taint('n3', 'a');
  await time.pass(1_000);
  const queue = 'node-deltas';
  assert.deepEqual(reports, [
    [queue, error],
    [queue, error],
    [queue, 'no'],
    [queue, 'never'],
    [queue, undefined],
  ]);
  assert.deepEqual(
    log.lines.flatMap(({ level, fields }) => (level === 'warn' ? [fields] : [])),
    [{ queue, waiting: 2, error }],
  );
  const values = (await registry.metrics()).split('\n');
  for (const [metric, value] of [
    ['delta_send_failures', 3],
    ['deltas_rejected', 1],
    ['deltas_sent', 2],
  ] as const)
    assert.ok(values.includes(`taintward_relay_${metric}_total{queue="${queue}"} ${value}`), metric);
});

test('logs each delta that a queue accepted with its ID', async (context) => {
  const { outbox, log } = bench(context);
  const cluster = holdLease(outbox, 'c1', { epoch: 7 });
  cluster.taint('n1', 'a');
  await outbox.drained();
  cluster.pods(livePod('u1'));
  await outbox.drained();
  const common = { cluster: 'c1', node: 'n1' };
  assert.deepEqual(
    log.lines.map(({ event, fields }) => ({ event, fields })),
    [
      { event: 'relay.delta-sent', fields: { ...common, queue: 'node-deltas', delta: '7-1' } },
      { event: 'relay.delta-sent', fields: { ...common, queue: 'pod-deltas', delta: '7-2', uid: 'u1' } },
    ],
  );
});

describe('a call of a queue', () => {
  test('carries the deltas that were marked together, in order', async (context) => {
    const { outbox, nodes } = bench(context);
    const cluster = holdLease(outbox);
    for (const node of ['n1', 'n2', 'n3']) cluster.taint(node, 'a');
    await outbox.drained();
    assert.equal(nodes.calls.length, 1);
    assert.deepEqual(nodes.accepted, ['n1@1', 'n2@2', 'n3@3']);
  });

  test('carries at most ten deltas', async (context) => {
    const { outbox, nodes } = bench(context);
    holdLease(outbox).nodes(...tainted(25));
    await outbox.drained();
    assert.deepEqual(
      nodes.calls.map(({ length }) => length),
      [10, 10, 5],
    );
  });

  test('carries at most the bytes that SQS accepts', async (context) => {
    const { outbox, nodes } = bench(context);
    const cluster = holdLease(outbox);
    const large = tainted(8);
    cluster.pods(
      ...large.flatMap(({ name: node }) =>
        Array.from({ length: 3 }, (_, index) => {
          const uid = `${node}-${index}`;
          return livePod(uid, { node, namespace: 'x'.repeat(100_000) });
        }),
      ),
    );
    cluster.nodes(...large);
    await outbox.drained();
    assert.deepEqual(
      nodes.taken.map(({ ref }) => ref.node),
      large.map(({ name }) => name),
    );
    for (const call of nodes.calls) {
      assert.ok(call.reduce((sum, { body }) => sum + body.length, 0) <= MAX_BATCH_BYTES);
    }
    assert.equal(nodes.calls.length, 3);
  });

  test('carries deltas of each cluster in turn, although one cluster has many', async (context) => {
    const { outbox, nodes } = bench(context);
    const [loud, quiet] = [holdLease(outbox, 'loud'), holdLease(outbox, 'quiet')];
    loud.nodes(...tainted(100));
    quiet.nodes(...tainted(7));
    await outbox.drained();
    const clusters = nodes.taken.map(({ ref }) => ref.cluster);
    const taking = Array.from({ length: 14 }, (_, index) => (index % 2 ? 'quiet' : 'loud'));
    assert.deepEqual(clusters.slice(0, 14), taking);
    assert.equal(nodes.calls.length, 11);
  });
});

describe('calls of a queue', () => {
  /** Lets the test answer the calls, from the first call on. */
  function unanswered(queue: OrderedQueue) {
    const answers: ((failures: readonly SendFailure[]) => void)[] = [];
    queue.onSend = () => {
      const { promise, resolve } = Promise.withResolvers<readonly SendFailure[]>();
      answers.push(resolve);
      return promise;
    };
    return { answerNext: () => answers.shift()?.([]) };
  }

  test('run concurrently, with capacity reserved for other clusters', async (context) => {
    const { outbox, nodes, time } = bench(context);
    const loud = holdLease(outbox, 'loud');
    const others = ['c1', 'c2', 'c3', 'c4'].map((name) => holdLease(outbox, name));
    unanswered(nodes);
    loud.nodes(...tainted(5000));
    await time.settle();
    const calls = nodes.calls.length;
    assert.equal(calls, 12, 'three quarters of the 16 calls');
    for (const other of others) {
      other.taint('n1', 'a');
      await time.settle();
    }
    assert.deepEqual(
      nodes.calls.slice(calls).map((call) => call.map(({ body }) => parseDelta(body).ref.cluster)),
      [['c1'], ['c2'], ['c3'], ['c4']],
    );
    holdLease(outbox, 'c5').nodes(...tainted(5000));
    await time.settle();
    assert.equal(nodes.calls.length, 16);
  });

  test('are awaited by a relay that stops', async (context) => {
    const { outbox, nodes, time } = bench(context);
    const { answerNext } = unanswered(nodes);
    holdLease(outbox).taint('n1', 'a');
    await time.settle();
    const drained = outbox.drained().then(() => 'drained');
    assert.equal(await Promise.race([drained, time.settle()]), undefined);
    answerNext();
    assert.equal(await drained, 'drained');
  });

  test('never carry a node twice at the same time: later changes follow with the latest state', async (context) => {
    const { outbox, nodes, time } = bench(context);
    const cluster = holdLease(outbox);
    const { answerNext } = unanswered(nodes);
    cluster.taint('n1', 'a');
    await time.settle();
    for (const key of ['b', 'c']) {
      cluster.taint('n1', key);
      cluster.taint('n2', key);
      await time.settle();
    }
    assert.deepEqual(
      nodes.calls.map((call) => call.map(({ body }) => parseDelta(body).ref.node)),
      [['n1'], ['n2']],
    );
    for (let call = 0; call < 4; call++) {
      answerNext();
      await time.settle();
    }
    assert.deepEqual(
      nodes.taken.map(({ ref, taints }) => `${ref.node} ${taints[0]?.key}`),
      ['n1 a', 'n2 b', 'n1 c', 'n2 c'],
    );
  });

  test('never carry pods of a node twice at the same time, except for pods within a call', async (context) => {
    const { outbox, nodes, pods, time } = bench(context);
    const cluster = holdLease(outbox);
    cluster.nodes(liveNode('n1', 'a'), liveNode('n2', 'a'));
    await outbox.drained();
    const { answerNext } = unanswered(pods);
    cluster.pods(...Array.from({ length: 12 }, (_, index) => livePod(`u${index}`)));
    cluster.pods(livePod('v1', { node: nodeName('n2') }));
    await time.settle();
    cluster.goes(livePod('u1'));
    cluster.taint('n2', 'b');
    await time.settle();
    assert.deepEqual(
      pods.calls.map((call) => call.length),
      [10, 1],
    );
    assert.equal(nodes.taken.at(-1)?.ref.node, 'n2', 'the other queue does not wait for that');
    answerNext();
    await time.settle();
    assert.deepEqual(
      pods.calls[2]?.map(({ body }) => parseDelta(body)).map((delta) => [delta.kind, onlyPod(delta)]),
      [
        ['pod', 'u10'],
        ['pod', 'u11'],
        ['pod-gone', 'u1'],
      ],
    );
  });

  test('carry all pods of a node, without another change', async (context) => {
    const { outbox, pods } = bench(context);
    const cluster = holdLease(outbox);
    cluster.taint('n1', 'a');
    await outbox.drained();
    cluster.pods(...Array.from({ length: 25 }, (_, index) => livePod(`u${index}`)));
    await outbox.drained();
    assert.deepEqual(
      pods.calls.map(({ length }) => length),
      [10, 10, 5],
    );
  });

  test('do not block the event loop for incoming changes', async (context) => {
    const { outbox, nodes } = bench(context);
    const [loud, quiet] = [holdLease(outbox, 'loud'), holdLease(outbox, 'quiet')];
    nodes.onSend = () => {
      context.mock.timers.tick(2);
      return [];
    };
    loud.nodes(...tainted(1000));
    setImmediate(() => quiet.taint('n1', 'a'));
    await outbox.drained();
    const before = nodes.taken.findIndex(({ ref }) => ref.cluster === 'quiet');
    assert.ok(before >= 0 && before <= 50, `${before} deltas came before`);
  });
});

describe('a pending delta', () => {
  test('has the state at the time of sending, not at the time of the change', async (context) => {
    const { outbox, nodes, time } = bench(context);
    const cluster = holdLease(outbox);
    nodes.onSend = unreachable;
    cluster.taint('n1', 'a');
    await time.pass(5000);
    cluster.taint('n1', 'b');
    cluster.pods(livePod('u1'));
    nodes.onSend = takeAll;
    await time.pass(10_000);
    const [delta] = nodes.taken;
    assert.equal(nodes.taken.length, 1);
    assert.ok(delta?.kind === 'node' && delta.observedAt > 5000);
    assert.deepEqual([delta.taints.map(({ key }) => key), delta.pods.map(({ uid }) => uid)], [['b'], ['u1']]);
  });

  test('is sent once, for any number of changes', async (context) => {
    const { outbox, nodes, pods } = bench(context);
    const cluster = holdLease(outbox);
    cluster.taint('n1', 'a');
    cluster.taint('n1', 'a', 'b');
    cluster.taint('n2', 'a');
    await outbox.drained();
    cluster.pods(livePod('u1'), livePod('u2'), livePod('u1', { tolerations: [] }));
    cluster.goes(livePod('u1'));
    await outbox.drained();
    assert.deepEqual(nodes.accepted, ['n1@1', 'n2@2']);
    assert.deepEqual(pods.accepted, ['u1@3', 'u2@4']);
    assert.equal(pods.taken[0]?.kind, 'pod-gone');
  });

  test('is replaced by a pending delta of its node if it is of a pod, before and after the node is marked', async (context) => {
    const { outbox, nodes, pods } = bench(context);
    const cluster = holdLease(outbox);
    cluster.nodes(liveNode('n1', 'a'), liveNode('n2', 'a'));
    await outbox.drained();
    cluster.pods(livePod('u1'), livePod('u2', { node: nodeName('n2') }));
    cluster.taint('n1', 'b');
    cluster.pods(livePod('u3'));
    await outbox.drained();
    const delta = nodes.taken.at(-1);
    assert.deepEqual(delta?.kind === 'node' && delta.pods.map(({ uid }) => uid), ['u1', 'u3']);
    assert.deepEqual(pods.accepted, ['u2@4']);
  });

  test('reports a taint as appeared when it flapped unsent', async (context) => {
    const { outbox, nodes, time } = bench(context);
    const cluster = holdLease(outbox);
    cluster.taint('n1', 'a');
    await outbox.drained();
    nodes.onSend = unreachable;
    await time.pass(2000);
    cluster.taint('n1');
    await time.pass(1000);
    cluster.taint('n1', 'a');
    nodes.onSend = takeAll;
    await time.pass(10_000);
    assert.equal(nodes.taken.length, 2);
    const [seen] = nodes.taken[1]?.taints ?? [];
    assert.deepEqual([seen?.known, seen?.seenAt], ['added', 3000]);
  });

  test('has no wake unless it is marked with one', async (context) => {
    const { outbox, nodes } = bench(context);
    const { name, taint } = holdLease(outbox);
    taint('n1', 'a');
    outbox.mark(name, [{ node: nodeName('n1') }]);
    await outbox.drained();
    assert.deepEqual(
      nodes.taken.map((delta) => delta.kind === 'node' && delta.wake),
      [false],
    );
  });

  test('keeps its wake until it is sent, with any later changes', async (context) => {
    const { outbox, nodes, time } = bench(context);
    const cluster = holdLease(outbox);
    nodes.onSend = unreachable;
    cluster.taint('n1', 'a');
    cluster.change((view, now) => view.resync([], now), true);
    await time.pass(1000);
    cluster.taint('n1', 'b');
    nodes.onSend = takeAll;
    await time.pass(10_000);
    cluster.taint('n1', 'c');
    await outbox.drained();
    assert.deepEqual(
      nodes.taken.map((delta) => delta.kind === 'node' && delta.wake),
      [true, false],
    );
  });

  test('does not grow while a queue is unreachable', async (context) => {
    const { outbox, nodes, pending, time } = bench(context);
    const cluster = holdLease(outbox);
    nodes.onSend = unreachable;
    for (let turn = 1; turn <= 200; turn++) {
      cluster.nodes(liveNode('n1', `a${turn}`), liveNode('n2', `a${turn}`));
      await time.pass(50);
    }
    assert.ok(nodes.calls.every(({ length }) => length <= 2));
    assert.equal(await pending('node-deltas'), 2);
    nodes.onSend = takeAll;
    await time.pass(10_000);
    assert.deepEqual(
      nodes.taken.map(({ taints }) => taints[0]?.key),
      ['a200', 'a200'],
    );
    assert.equal(await pending('node-deltas'), 0);
  });
});

describe('a node whose pods are not listed yet', () => {
  const unlisted = (context: TestContext) => {
    const { outbox, ...rest } = bench(context);
    const view = new ClusterView(clusterName('c1'), 1);
    outbox.open(clusterName('c1'), view, () => true);
    const mark = (subjects: readonly Subject[], wake = false) =>
      outbox.mark(clusterName('c1'), subjects, wake);
    mark(
      view.replaceNodes(
        ['n1', 'n2'].map((name) => liveNode(name, 'a')),
        0,
      ),
    );
    return { ...rest, outbox, view, mark };
  };

  test('is not sent, and delays no other node', async (context) => {
    const { outbox, view, nodes, pods, pending, mark } = unlisted(context);
    mark(view.replacePods(nodeName('n2'), [], 1));
    mark(view.upsertPod(livePod(), 2));
    await outbox.drained();
    assert.deepEqual(nodes.accepted, ['n2@1']);
    assert.equal(await pending('node-deltas'), 1);
    mark(view.replacePods(nodeName('n1'), [livePod()], 3));
    await outbox.drained();
    const delta = nodes.taken[1];
    assert.deepEqual(delta?.kind === 'node' && delta.pods.map(({ uid }) => uid), ['u1']);
    assert.deepEqual(pods.calls, []);
  });

  test('is sent with its wake once its pods are listed', async (context) => {
    const { outbox, view, nodes, mark } = unlisted(context);
    mark(view.resync([], 1), true);
    await outbox.drained();
    assert.deepEqual(nodes.calls, []);
    mark(view.replacePods(nodeName('n1'), [], 2));
    await outbox.drained();
    assert.deepEqual(
      nodes.taken.map((delta) => delta.kind === 'node' && delta.wake),
      [true],
    );
  });

  test('is sent immediately when it is untainted', async (context) => {
    const { outbox, view, nodes, mark } = unlisted(context);
    mark(view.upsertNode(liveNode('n1'), 1));
    await outbox.drained();
    assert.deepEqual(nodes.accepted, ['n1@1']);
    assert.deepEqual(nodes.taken[0]?.taints, []);
  });
});

test('sends nothing for a pod that is unknown and whose deletion was not seen', async (context) => {
  const { outbox, nodes, pods, pending } = bench(context);
  const cluster = holdLease(outbox);
  cluster.taint('n1', 'a');
  await outbox.drained();
  cluster.change(() => [{ node: nodeName('n1'), uid: podUid('u9') }]);
  await outbox.drained();
  assert.deepEqual([nodes.taken.length, pods.calls.length, await pending('pod-deltas')], [1, 0, 0]);
});

describe('a node that is too large for a message', () => {
  /** Three pods. Two of them fit into a message. */
  const pods = ['u1', 'u2', 'u3'].map((uid) => livePod(uid, { namespace: 'x'.repeat(400_000) }));

  test('has the other pods sent one by one, once the queue accepted the node', async (context) => {
    const { outbox, nodes, pods: podQueue, time } = bench(context);
    const cluster = holdLease(outbox);
    cluster.pods(...pods);
    nodes.onSend = unreachable;
    cluster.taint('n1', 'a');
    await time.pass(1000);
    assert.deepEqual(podQueue.calls, []);
    nodes.onSend = takeAll;
    await time.pass(10_000);
    const [delta] = nodes.taken;
    assert.ok(delta?.kind === 'node');
    assert.deepEqual([delta.pods.map(({ uid }) => uid), delta.others], [['u1', 'u2'], ['u3']]);
    const [follows] = podQueue.taken;
    assert.ok(follows?.kind === 'pod' && podQueue.taken.length === 1);
    assert.equal(follows.pod.uid, 'u3');
    assert.ok(follows.version.sequence > delta.version.sequence);
  });

  test('has a pod-gone delta sent for another pod that was deleted meanwhile', async (context) => {
    const { outbox, nodes, pods: podQueue } = bench(context);
    const cluster = holdLease(outbox);
    cluster.pods(...pods);
    nodes.onSend = () => {
      for (const pod of pods.slice(2)) cluster.goes(pod);
      return [];
    };
    cluster.taint('n1', 'a');
    await outbox.drained();
    assert.deepEqual(
      podQueue.taken.map((delta) => delta.kind === 'pod-gone' && delta.uid),
      ['u3'],
    );
  });

  test('has no pod sent when it is untainted, which cancels all evictions', async (context) => {
    const { outbox, nodes, pods: podQueue } = bench(context);
    const cluster = holdLease(outbox);
    cluster.pods(...pods);
    cluster.taint('n1', 'a');
    await outbox.drained();
    cluster.taint('n1');
    await outbox.drained();
    const delta = nodes.taken[1];
    assert.ok(delta?.kind === 'node' && nodes.taken.length === 2);
    assert.deepEqual([delta.taints, delta.pods, delta.others], [[], [], undefined]);
    assert.equal(podQueue.taken.length, 1);
  });
});

describe('an unreachable queue', () => {
  test('is called again after growing pauses of at most ten seconds', async (context) => {
    const { outbox, nodes, log, time } = bench(context);
    nodes.onSend = unreachable;
    holdLease(outbox).taint('n1', 'a');
    await time.pass(60_000);
    const inFirstMinute = nodes.calls.length;
    assert.ok(inFirstMinute > 8 && inFirstMinute < 25, `${inFirstMinute} calls`);
    await time.pass(60_000);
    const inSecondMinute = nodes.calls.length - inFirstMinute;
    assert.ok(inSecondMinute >= 6 && inSecondMinute <= 12, `${inSecondMinute} calls`);
    assert.equal(log.lines[0]?.event, 'relay.queue-unreachable');
  });

  test('is called by one call at a time until it answers, after any number of concurrent failures', async (context) => {
    const { outbox, nodes, time } = bench(context);
    let [underWay, most] = [0, 0];
    const fail = async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      await pause(20);
      underWay -= 1;
      return unreachable();
    };
    nodes.onSend = fail;
    holdLease(outbox).nodes(...tainted(500));
    await time.pass(50);
    const together = most;
    most = 0;
    await time.pass(2000);
    assert.ok(together > 1);
    assert.equal(most, 1);
    const calls = nodes.calls.length - together;
    assert.ok(calls >= 3, `those that failed together count as one failure; ${calls} calls since`);
    nodes.onSend = takeAll;
    await time.pass(10_000);
    assert.equal(nodes.taken.length, 500);
  });

  test('does not delay the other queue', async (context) => {
    const { outbox, nodes, pods, time } = bench(context);
    const cluster = holdLease(outbox);
    cluster.taint('n1', 'a');
    await outbox.drained();
    nodes.onSend = unreachable;
    cluster.taint('n2', 'a');
    cluster.pods(livePod('u1'));
    await time.pass(1000);
    assert.deepEqual(pods.taken.length, 1);
  });

  test('does not receive a state that became outdated during a failed call', async (context) => {
    const { outbox, nodes, time } = bench(context);
    const cluster = holdLease(outbox);
    nodes.onSend = () => {
      cluster.taint('n1', 'b');
      nodes.onSend = takeAll;
      throw new QueueError('the queue is away');
    };
    cluster.taint('n1', 'a');
    await time.pass(1000);
    assert.deepEqual(
      nodes.taken.map(({ taints }) => taints[0]?.key),
      ['b'],
    );
  });
});

describe('a delta that the queue rejects', () => {
  test('temporarily is created again', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = () => {
      nodes.onSend = takeAll;
      return [{ index: 1, reason: 'throttled', permanent: false }];
    };
    holdLease(outbox).nodes(liveNode('n1', 'a'), liveNode('n2', 'a'));
    await time.pass(1000);
    assert.deepEqual(nodes.accepted, ['n1@1', 'n2@3']);
  });

  test('permanently is dropped, logged, and counted, also for CloudWatch', async (context) => {
    const { outbox, nodes, log, registry, written } = bench(context);
    nodes.onSend = refuseAll(true);
    holdLease(outbox).taint('n1', 'a');
    await outbox.drained();
    assert.equal(nodes.calls.length, 1);
    const [line] = log.lines;
    assert.equal(line?.event, 'relay.delta-rejected');
    assert.equal(line?.fields['node'], 'n1');
    assert.match(await registry.getSingleMetricAsString(REFUSED_DELTAS), /} 1$/m);
    assert.deepEqual(
      written.map((line) => JSON.parse(line)[REFUSED_DELTAS]),
      [[1]],
    );
  });

  test('repeatedly does not delay the others', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = (messages) =>
      messages.flatMap(({ body }, index) =>
        parseDelta(body).ref.node === 'm0' ? [{ index, reason: 'stuck', permanent: false }] : [],
      );
    holdLease(outbox).nodes(...tainted(500));
    await time.pass(50);
    assert.equal(nodes.taken.length, 499);
    const calls = nodes.calls.length;
    await time.pass(60_000);
    assert.ok(nodes.calls.length - calls < 25, 'but alone it is not asked for in a hot loop');
  });
});

test('a temporarily rejected node delays no other node, also of its cluster', async (context) => {
  const { outbox, nodes, time } = bench(context);
  const cluster = holdLease(outbox);
  nodes.onSend = (messages) =>
    messages.flatMap(({ body }, index) =>
      parseDelta(body).ref.node === 'n1' ? [{ index, reason: 'stuck', permanent: false }] : [],
    );
  cluster.taint('n1', 'a');
  await time.pass(60_000);
  cluster.taint('n2', 'a');
  await time.settle();
  assert.equal(nodes.taken[0]?.ref.node, 'n2');
});

test('leaves no change unsent, for any overlap of a finished call and the next change', async (context) => {
  const { outbox, nodes } = bench(context);
  const cluster = holdLease(outbox);
  for (let turns = 0; turns < 12; turns++) {
    nodes.onSend = async () => {
      nodes.onSend = takeAll;
      void later(turns).then(() => cluster.taint('n1', `late${turns}`));
      return [];
    };
    cluster.taint('n1', `early${turns}`);
    await new Promise(setImmediate);
    assert.equal(nodes.taken.at(-1)?.taints[0]?.key, `late${turns}`);
  }
});

/** Waits for this many turns of the microtask queue. */
async function later(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await undefined;
}

describe('a dropped cluster', () => {
  test('loses all of its pending deltas, and other clusters do not', async (context) => {
    const { outbox, nodes, pods, time, pending } = bench(context);
    const [given, kept] = [holdLease(outbox), holdLease(outbox, 'c2')];
    for (const cluster of [given, kept]) cluster.taint('n1', 'a');
    await outbox.drained();
    nodes.onSend = unreachable;
    pods.onSend = unreachable;
    for (const cluster of [given, kept]) {
      cluster.taint('n2', 'a');
      cluster.pods(livePod('u1'));
    }
    await time.pass(500);
    outbox.dropCluster(given.name);
    nodes.onSend = takeAll;
    pods.onSend = takeAll;
    given.taint('n3', 'a');
    await time.pass(10_000);
    assert.deepEqual(
      [...nodes.taken.slice(2), ...pods.taken].map(({ ref }) => ref.cluster),
      ['c2', 'c2'],
    );
    assert.equal(await pending('node-deltas'), 0);
  });

  test('is not sent again when a call in flight fails', async (context) => {
    const { outbox, nodes, time } = bench(context);
    const given = holdLease(outbox);
    nodes.onSend = () => {
      nodes.onSend = takeAll;
      outbox.dropCluster(given.name);
      throw new QueueError('the queue is away');
    };
    given.taint('n1', 'a');
    await time.pass(10_000);
    assert.equal(nodes.calls.length, 1);
  });

  test('is sent only by its new view when its lease is acquired again', async (context) => {
    const { outbox, nodes, time } = bench(context);
    const former = holdLease(outbox);
    nodes.onSend = unreachable;
    former.taint('n1', 'a');
    await time.pass(500);
    outbox.dropCluster(former.name);
    holdLease(outbox, 'c1', { epoch: 2 }).taint('n2', 'b');
    nodes.onSend = takeAll;
    await time.pass(10_000);
    assert.deepEqual(
      nodes.taken.map(({ ref, version }) => [ref.node, version.epoch]),
      [['n2', 2]],
    );
  });
});

describe('a cluster whose lease does not allow sending', () => {
  test('is not sent until its lease allows it, and other clusters are sent', async (context) => {
    const { outbox, nodes, time } = bench(context);
    let mine = false;
    holdLease(outbox, 'c1', { canSend: () => mine }).taint('n1', 'a');
    holdLease(outbox, 'c2').taint('n1', 'a');
    await outbox.drained();
    await time.pass(60_000);
    assert.deepEqual(
      nodes.taken.map(({ ref }) => ref.cluster),
      ['c2'],
    );
    mine = true;
    outbox.send();
    await outbox.drained();
    assert.equal(nodes.taken[1]?.ref.cluster, 'c1');
  });

  test('is checked before each call of a queue', async (context) => {
    const { outbox, nodes } = bench(context);
    holdLease(outbox, 'c1', { canSend: () => nodes.calls.length < 2 }).nodes(...tainted(50));
    await outbox.drained();
    assert.equal(nodes.taken.length, 20);
  });
});

describe('a stopped sender', () => {
  test('drops the deltas of an unreachable queue immediately', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = unreachable;
    holdLease(outbox).taint('n1', 'a');
    await time.pass(5000);
    const calls = nodes.calls.length;
    outbox.stop();
    await outbox.drained();
    await time.pass(60_000);
    assert.equal(nodes.calls.length, calls);
  });

  test('drops a delta that waits because the queue rejected it', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = refuseAll(false);
    holdLease(outbox).taint('n1', 'a');
    await time.settle();
    const drained = outbox.drained().then(() => 'drained');
    outbox.stop();
    assert.equal(await Promise.race([drained, time.settle()]), 'drained');
  });

  test('does not retry after a final failure', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = () => {
      outbox.stop();
      throw new QueueError('the queue is away');
    };
    holdLease(outbox).taint('n1', 'a');
    await time.pass(1000);
    assert.equal(nodes.calls.length, 1);
    await outbox.drained();
  });

  test('accepts no more changes', async (context) => {
    const { outbox, nodes, time } = bench(context);
    outbox.stop();
    holdLease(outbox).taint('n1', 'a');
    await time.pass(1000);
    assert.deepEqual(nodes.calls, []);
  });
});
