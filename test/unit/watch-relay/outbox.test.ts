import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Registry } from 'prom-client';
import { Outbox } from '#functions/watch-relay/outbox.ts';
import { relayMetrics } from '#functions/watch-relay/relay-metrics.ts';
import { parseDelta } from '#shared/deltas/message.ts';
import { deduplicationId, messageGroupId } from '#shared/deltas/message-ids.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { type OutgoingMessage, QueueError } from '#shared/queues/sender.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { nodeDelta, pod, podDelta, podGone, ref } from '#test/unit/eviction/builders.ts';
import { type DrivenTimers, driveTimers } from '#test/world/driven-timers.ts';
import { OrderedQueue } from './ordered-queue.ts';

interface Bench {
  readonly outbox: Outbox;
  readonly nodes: OrderedQueue;
  readonly pods: OrderedQueue;
  readonly log: ReturnType<typeof recordingLog>;
  readonly registry: Registry;
  readonly time: DrivenTimers;
}

function bench(context: TestContext): Bench {
  const time = driveTimers(context);
  const registry = new Registry();
  const nodes = new OrderedQueue();
  const pods = new OrderedQueue();
  const log = recordingLog();
  const outbox = new Outbox({ nodeDeltas: nodes, podDeltas: pods, log, metrics: relayMetrics(registry) });
  return { outbox, nodes, pods, log, registry, time };
}

const unreachable = () => {
  throw new QueueError('the queue is away');
};
const refuseAll = (permanent: boolean) => (messages: readonly OutgoingMessage[]) =>
  messages.map((_, index) => ({ index, reason: 'no', permanent }));
const onNode = (name: string) => ({ ref: { ...ref, node: nodeName(name) } });
const aPod = (uid: string, sequence: number) => podDelta(sequence, { pod: pod(uid) });

test('deltas go to the queue of their kind, with the ids that keep their order', async (context) => {
  const { outbox, nodes, pods } = bench(context);
  const node = nodeDelta(1);
  outbox.add([node, aPod('u1', 2), podGone(3, { uid: podUid('u2') })]);
  await outbox.drained();
  assert.deepEqual(nodes.told, ['n1@1']);
  assert.deepEqual(pods.told, ['u1@2', 'u2@3']);
  const [message] = nodes.calls.flat();
  assert.equal(message?.groupId, messageGroupId(node.ref));
  assert.equal(message?.deduplicationId, deduplicationId(node));
});

test('what is added in one go travels together, in order', async (context) => {
  const { outbox, pods } = bench(context);
  for (const sequence of [1, 2, 3]) outbox.add([aPod(`u${sequence}`, sequence)]);
  await outbox.drained();
  assert.equal(pods.calls.length, 1);
  assert.deepEqual(pods.told, ['u1@1', 'u2@2', 'u3@3']);
});

test('many deltas travel in pieces', async (context) => {
  const { outbox, nodes } = bench(context);
  outbox.add(Array.from({ length: 250 }, (_, index) => nodeDelta(index, onNode(`n${index}`))));
  await outbox.drained();
  assert.deepEqual(
    nodes.calls.map(({ length }) => length),
    [100, 100, 50],
  );
});

describe('what waits', () => {
  test('is the newest delta per node and pod', async (context) => {
    const { outbox, nodes, pods } = bench(context);
    outbox.add([
      nodeDelta(1),
      nodeDelta(2),
      aPod('u1', 3),
      aPod('u2', 4),
      podGone(5),
      nodeDelta(6, onNode('n2')),
    ]);
    await outbox.drained();
    assert.deepEqual(nodes.told, ['n1@2', 'n2@6']);
    assert.deepEqual(pods.told, ['u1@5', 'u2@4']);
  });

  test('about a node’s pods is dropped for a newer delta of the whole node', async (context) => {
    const { outbox, nodes, pods } = bench(context);
    outbox.add([
      aPod('u1', 1),
      podDelta(2, { ...onNode('n2'), pod: pod('u2') }),
      nodeDelta(3),
      aPod('u3', 4),
    ]);
    await outbox.drained();
    assert.deepEqual(nodes.told, ['n1@3']);
    assert.deepEqual(pods.told, ['u2@2', 'u3@4']);
  });

  test('does not grow with the time that a queue is away, and is the newest when it is back', async (context) => {
    const { outbox, nodes, registry, time } = bench(context);
    nodes.onSend = unreachable;
    for (let sequence = 1; sequence <= 200; sequence++) {
      outbox.add([nodeDelta(sequence), nodeDelta(sequence, onNode('n2'))]);
      await time.pass(50);
    }
    assert.ok(nodes.calls.every(({ length }) => length <= 2));
    const pending = await registry.getSingleMetricAsString('taintward_relay_deltas_pending');
    assert.match(pending, /queue="node-deltas"} 2$/m);
    nodes.onSend = () => [];
    await time.pass(10_000);
    assert.deepEqual(nodes.told, ['n1@200', 'n2@200']);
    const after = await registry.getSingleMetricAsString('taintward_relay_deltas_pending');
    assert.match(after, /queue="node-deltas"} 0$/m);
  });
});

describe('a queue that cannot be reached', () => {
  test('is asked again after a growing while, ten seconds at most', async (context) => {
    const { outbox, nodes, log, time } = bench(context);
    nodes.onSend = unreachable;
    outbox.add([nodeDelta(1)]);
    await time.pass(60_000);
    const inFirstMinute = nodes.calls.length;
    assert.ok(inFirstMinute > 8 && inFirstMinute < 25, `${inFirstMinute} calls`);
    await time.pass(60_000);
    const inSecondMinute = nodes.calls.length - inFirstMinute;
    assert.ok(inSecondMinute >= 6 && inSecondMinute <= 12, `${inSecondMinute} calls`);
    assert.equal(log.lines[0]?.event, 'relay.queue-unreachable');
  });

  test('does not hold the other queue up', async (context) => {
    const { outbox, nodes, pods, time } = bench(context);
    nodes.onSend = unreachable;
    outbox.add([nodeDelta(1), aPod('u1', 2)]);
    await time.pass(1000);
    assert.deepEqual(pods.told, ['u1@2']);
  });

  test('does not get what became old while it was asked', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = () => {
      outbox.add([nodeDelta(2)]);
      nodes.onSend = () => [];
      throw new QueueError('the queue is away');
    };
    outbox.add([nodeDelta(1)]);
    await time.pass(1000);
    assert.deepEqual(nodes.told, ['n1@2']);
  });
});

describe('a delta that the queue does not take', () => {
  test('for now is sent again', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = () => {
      nodes.onSend = () => [];
      return [{ index: 1, reason: 'throttled', permanent: false }];
    };
    outbox.add([nodeDelta(1), nodeDelta(2, onNode('n2'))]);
    await time.pass(1000);
    assert.deepEqual(nodes.told, ['n1@1', 'n2@2']);
  });

  test('ever is dropped with a word, and counted', async (context) => {
    const { outbox, nodes, log, registry } = bench(context);
    nodes.onSend = refuseAll(true);
    outbox.add([nodeDelta(1)]);
    await outbox.drained();
    assert.equal(nodes.calls.length, 1);
    const [line] = log.lines;
    assert.equal(line?.event, 'relay.delta-refused');
    assert.equal(line?.fields['node'], 'n1');
    assert.match(await registry.getSingleMetricAsString('taintward_relay_deltas_refused_total'), /} 1$/m);
  });

  test('again and again does not slow the others down', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = (messages) =>
      messages.flatMap(({ body }, index) =>
        parseDelta(body).ref.node === 'n0' ? [{ index, reason: 'stuck', permanent: false }] : [],
      );
    outbox.add(Array.from({ length: 500 }, (_, index) => nodeDelta(index, onNode(`n${index}`))));
    await time.pass(50);
    assert.equal(nodes.taken.length, 499);
    const calls = nodes.calls.length;
    await time.pass(60_000);
    assert.ok(nodes.calls.length - calls < 25, 'but alone it is not asked for in a hot loop');
  });
});

test('nothing is left lying, however the end of one sending and the next delta meet', async (context) => {
  const { outbox, nodes } = bench(context);
  for (let turns = 0; turns < 12; turns++) {
    nodes.onSend = async () => {
      nodes.onSend = () => [];
      void later(turns).then(() => outbox.add([nodeDelta(1000 + turns)]));
      return [];
    };
    outbox.add([nodeDelta(turns)]);
    await new Promise(setImmediate);
    assert.equal(nodes.told.at(-1), `n1@${1000 + turns}`);
  }
});

/** After so many turns of the microtask queue. */
async function later(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await undefined;
}

test('what waits of a cluster whose lease was lost is forgotten, that of others is not', async (context) => {
  const { outbox, nodes, pods, time } = bench(context);
  nodes.onSend = unreachable;
  pods.onSend = unreachable;
  const elsewhere = { ref: { ...ref, cluster: clusterName('c2') } };
  outbox.add([nodeDelta(1), aPod('u1', 2)]);
  outbox.add([nodeDelta(3, elsewhere), podDelta(4, { ...elsewhere, pod: pod('u2') })]);
  await time.pass(500);
  outbox.dropCluster(clusterName('c1'));
  nodes.onSend = () => [];
  pods.onSend = () => [];
  await time.pass(10_000);
  assert.deepEqual(nodes.told, ['n1@3']);
  assert.deepEqual(pods.told, ['u2@4']);
});

describe('once stopped', () => {
  test('it gives up at once what an unreachable queue did not take', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = unreachable;
    outbox.add([nodeDelta(1)]);
    await time.pass(5000);
    const calls = nodes.calls.length;
    outbox.stop();
    await outbox.drained();
    await time.pass(60_000);
    assert.equal(nodes.calls.length, calls);
  });

  test('it does not ask again when the last answer is a failure', async (context) => {
    const { outbox, nodes, time } = bench(context);
    nodes.onSend = () => {
      outbox.stop();
      throw new QueueError('the queue is away');
    };
    outbox.add([nodeDelta(1)]);
    await time.pass(1000);
    assert.equal(nodes.calls.length, 1);
    await outbox.drained();
  });

  test('it takes nothing any more', async (context) => {
    const { outbox, nodes, time } = bench(context);
    outbox.stop();
    outbox.add([nodeDelta(1)]);
    await time.pass(1000);
    assert.deepEqual(nodes.calls, []);
  });
});
