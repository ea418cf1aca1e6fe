import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Registry } from 'prom-client';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { QueueError } from '#shared/state/sender.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { liveNode } from '../../engine/watch/live-objects.ts';
import { OrderedQueue } from './ordered-queue.ts';

const C1 = clusterName('c1');
const MINUTE_MS = 60_000;
/** The first pause after a failure, with a margin. */
const FIRST_PAUSE_MS = 110;

const away = () => {
  throw new QueueError('the queue is away');
};
const takeAll = () => [];
const refuseAll = (messages: readonly unknown[]) =>
  messages.map((_, index) => ({ index, reason: 'no', permanent: false }));

function bench(context: TestContext) {
  const time = driveTimers(context);
  const nodes = new OrderedQueue();
  const outbox = new DeltaSender({
    nodeDeltas: nodes,
    podDeltas: new OrderedQueue(),
    clock: { now: Date.now },
    log: recordingLog(),
    metrics: relayMetrics(new Registry()),
  });
  /** Opens a cluster of one node without pods. Returns a function that taints the node. */
  const holdLease = (cluster: ClusterName, name: string) => {
    const view = new ClusterView(cluster, 1);
    view.replaceNodes([liveNode(name)], Date.now());
    outbox.open(cluster, view, () => true);
    return (key: string) => {
      outbox.mark(cluster, view.upsertNode(liveNode(name, key), Date.now()));
      for (const node of view.followed())
        if (!view.isComplete(node)) outbox.mark(cluster, view.replacePods(node, [], Date.now()));
    };
  };
  return { time, nodes, outbox, holdLease };
}

describe('a failure after a success has the first pause again', () => {
  for (const [what, fails] of [
    ['refuses a delta for now', refuseAll],
    ['is out of reach', away],
  ] as const) {
    test(`for a queue that ${what}`, async (context) => {
      const { time, nodes, holdLease } = bench(context);
      const taint = holdLease(C1, 'n1');
      nodes.onSend = fails;
      taint('a');
      await time.pass(MINUTE_MS);
      nodes.onSend = takeAll;
      await time.pass(MINUTE_MS);
      assert.equal(nodes.taken.at(-1)?.taints[0]?.key, 'a');
      nodes.onSend = fails;
      taint('b');
      await time.settle();
      nodes.onSend = takeAll;
      await time.pass(FIRST_PAUSE_MS);
      assert.equal(nodes.taken.at(-1)?.taints[0]?.key, 'b');
    });
  }
});

test('sends without a pause after a queue was unreachable and no delta was left to send', async (context) => {
  const { time, nodes, outbox, holdLease } = bench(context);
  nodes.onSend = away;
  holdLease(C1, 'n1')('a');
  await time.pass(MINUTE_MS);
  outbox.dropCluster(C1);
  await time.pass(MINUTE_MS);
  nodes.onSend = takeAll;
  holdLease(clusterName('c2'), 'm1')('c');
  await time.settle();
  assert.equal(nodes.taken.at(-1)?.ref.node, 'm1');
});
