import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ReceiveMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { Context } from 'aws-lambda';
import { Registry } from 'prom-client';
import { dueMetrics } from '#functions/agent/due-metrics.ts';
import { DueSource } from '#functions/agent/due-source.ts';
import { createHandler } from '#functions/evict/handler.ts';
import { processBatch } from '#shared/aws/consume.ts';
import { dueConsumption } from '#shared/aws/due-consumption.ts';
import { encodeCanceled, encodeCountdowns, encodeDue, encodeRetry } from '#shared/aws/due-message.ts';
import { applyDeltas } from '#shared/engine/decide/apply-deltas.ts';
import { countdownOf } from '#shared/engine/news.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { after, at, nodeDelta, pod, podGone, ref } from '#test/unit/eviction/builders.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { scriptedWorld } from '../deltas/scripted-world.ts';
import { EvictBench, heldUntil, serverError } from '../engine/evict/evict-bench.ts';

/** What one processing adds, in the order of its row: most inputs add something only when they are new. */
type Added = readonly number[];
const NOTHING = [0, 0, 0, 0];

describe('a delta adds commits, timers, messages to evict, and log lines:', () => {
  const first = nodeDelta(1);
  const untainted = nodeDelta(20, { taints: [] });
  const pair = nodeDelta(1, { pods: [pod('u1'), pod('u2')] });
  const deltaOf = (epoch: number) => nodeDelta(0, { version: { epoch, sequence: 1 } });
  const rows: Readonly<Record<string, readonly [readonly Delta[], readonly [Delta, Added][]]>> = {
    'redelivered, only its timer': [
      [],
      [
        [first, [1, 1, 1, 2]],
        [first, [0, 1, 0, 0]],
        [first, [0, 1, 0, 0]],
      ],
    ],
    'of a resync, only the version': [
      [first],
      [
        [nodeDelta(20), [1, 0, 0, 0]],
        [nodeDelta(30), [1, 0, 0, 0]],
      ],
    ],
    'after each failover, only the version': [
      [first],
      [
        [deltaOf(2), [1, 0, 0, 0]],
        [deltaOf(3), [1, 0, 0, 0]],
      ],
    ],
    'of a removed taint, redelivered, only its announcement': [
      [first],
      [
        [untainted, [1, 0, 1, 2]],
        [untainted, [0, 0, 1, 0]],
        [untainted, [0, 0, 1, 0]],
      ],
    ],
    'of a deleted pod, redelivered, only its announcement': [
      [first],
      [
        [podGone(20), [1, 0, 1, 1]],
        [podGone(20), [0, 0, 1, 0]],
        [podGone(30), NOTHING],
      ],
    ],
    'of two pods with one deadline, one timer': [
      [],
      [
        [pair, [1, 1, 1, 3]],
        [pair, [0, 1, 0, 0]],
      ],
    ],
    'that is older, nothing': [[nodeDelta(20)], [[first, NOTHING]]],
  };
  for (const [title, [before, deltas]] of Object.entries(rows))
    test(title, async () => {
      const world = scriptedWorld();
      for (const delta of before) await applyDeltas([delta], world);
      const { store, armed, dueQueue, log } = world;
      const counts = () => [store.commits, armed.length, dueQueue.sent.length, log.lines.length];
      for (const [delta, added] of deltas) {
        const earlier = counts();
        await applyDeltas([delta], world);
        assert.deepEqual(
          counts().map((count, index) => count - (earlier[index] ?? 0)),
          added,
        );
      }
    });
});

type Host = (
  bench: EvictBench,
  deliveries: readonly (readonly [body: string, receives: number])[],
) => unknown;

const evict: Host = async (bench, deliveries) => {
  const handler = createHandler(bench);
  for (const [body, receives] of deliveries)
    await handler(sqsEvent(sqsRecord(body, { receives, groupId: ref.cluster })), {} as Context);
};

/** The agent, whose queue delivers the next message when the previous one is handled. */
const agent: Host = async (bench, deliveries) => {
  const consumer = { ...bench, ...dueConsumption(bench) };
  const ended = Promise.withResolvers<void>();
  const coming = [...deliveries];
  let handled: Promise<unknown> = Promise.resolve();
  const receive = async () => {
    await handled;
    const [body, receives] = coming.shift() ?? [];
    if (body === undefined) ended.resolve(due.stop(0));
    const Attributes = { ApproximateReceiveCount: `${receives}`, MessageGroupId: ref.cluster };
    return body === undefined ? {} : { Messages: [{ Body: body, Attributes }] };
  };
  const send = async (command: unknown) => (command instanceof ReceiveMessageCommand ? receive() : {});
  const due: DueSource = new DueSource({
    ...bench,
    client: { send } as unknown as SQSClient,
    queueUrl: 'https://sqs/1/due',
    handle: (messages) => {
      const processed = processBatch(messages, consumer);
      handled = processed;
      return processed;
    },
    reached: () => undefined,
    metrics: dueMetrics(new Registry()),
  });
  await ended.promise;
};

describe('a message to evict, delivered three times, makes deletes, writes, timers, Events, and log lines:', () => {
  const { scheduled } = after(nodeDelta(1));
  const pods = [...scheduled.values()];
  const due = encodeDue({ ...ref, at: at(60) });
  const failing = (bench: EvictBench) => bench.fails('delete', serverError(500, 30));
  const held = (bench: EvictBench) => {
    bench.ruling = heldUntil(90);
  };
  const rows: Readonly<Record<string, readonly [readonly string[], Added, ((bench: EvictBench) => void)?]>> =
    {
      'one of each for a due pod': [[due], [1, 1, 0, 1, 1]],
      'one attempt, and its timer again, for a pod whose delete fails': [[due], [1, 1, 3, 0, 1], failing],
      'one hold, and its timer again, for a pod that is held': [[due], [0, 1, 3, 1, 1], held],
      'one Event for a cancellation': [
        encodeCanceled({ ...ref, version: { epoch: 1, sequence: 7 }, pods }),
        [0, 0, 0, 1, 0],
      ],
      'one Event for a countdown': [
        encodeCountdowns({ ...ref, pods: pods.map((record) => ({ ...countdownOf(record), moved: false })) }),
        [0, 0, 0, 1, 0],
      ],
      'one eviction for a retry by an operator': [
        [encodeRetry({ ...ref, pods: pods.map(({ uid }) => uid) })],
        [1, 1, 0, 1, 1],
      ],
    };
  const cases = Object.entries(rows).flatMap(([title, row]) =>
    Object.entries({ evict, agent }).map(([name, host]) => [`${title}, in ${name}`, host, row] as const),
  );
  for (const [title, host, [bodies, made, given]] of cases)
    test(title, async () => {
      const bench = new EvictBench();
      await bench.stores(ref, after(nodeDelta(1)));
      bench.cluster.putNode(liveNode('n1', 'a'));
      bench.cluster.putPod(livePod());
      given?.(bench);
      let [deletes, ends] = [0, 0];
      const { beforeRequest } = bench.cluster;
      bench.cluster.beforeRequest = (verb) => {
        if (verb === 'delete') deletes += 1;
        beforeRequest(verb);
      };
      const end = bench.store.end.bind(bench.store);
      bench.store.end = (...args) => {
        ends += 1;
        return end(...args);
      };
      const { commits } = bench.store;
      await host(
        bench,
        [1, 2, 3].flatMap((receives) => bodies.map((body) => [body, receives] as const)),
      );
      const { armed, cluster, log, store } = bench;
      assert.deepEqual(
        [deletes, store.commits - commits + ends, armed.length, cluster.events.length, log.lines.length],
        made,
      );
    });
});
