import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Context } from 'aws-lambda';
import { createHandler, forwardToAgent } from '#functions/evict/handler.ts';
import type { AgentOf } from '#shared/access/agent-of.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { QueueError } from '#shared/state/sender.ts';
import { StoreError } from '#shared/state/store.ts';
import { recordingSender } from '#test/unit/aws/recording-sender.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta, ref } from '#test/unit/eviction/builders.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { benchAfter, type EvictBench } from '../engine/evict/evict-bench.ts';

const DUE = sqsRecord(encodeDue({ ...ref, at: at(60) }), { groupId: ref.cluster });

async function handled(bench: EvictBench, agentOf: AgentOf, queue = recordingSender()) {
  const sendOn = forwardToAgent({ ofAgent: () => queue }, { agentOf, log: bench.log });
  const response = await createHandler({ ...bench, sendOn })(sqsEvent(DUE), {} as Context);
  return { queue, failed: response?.batchItemFailures.length };
}

const onePod = () => benchAfter([nodeDelta(1)], [livePod()]);

describe('a due message of a cluster with an agent', () => {
  test('is forwarded unchanged to the agent, without reading or evicting', async () => {
    const bench = await onePod();
    const { queue, failed } = await handled(bench, async () => 'edge-1');
    assert.equal(failed, 0);
    assert.deepEqual(queue.calls, [[{ body: DUE.body, groupId: ref.cluster }]]);
    assert.deepEqual(bench.deleted, []);
    assert.deepEqual(
      bench.log.lines.filter(({ event }) => event === 'message.forwarded').map(({ fields }) => fields),
      [{ ...ref, agent: 'edge-1' }],
    );
  });

  test("is retried while the agent's queue rejects it or the registration can't be read", async () => {
    const away = () => {
      throw new QueueError('the queue is away');
    };
    const full = () => [{ index: 0, reason: 'full', permanent: false }];
    for (const answer of [away, full]) {
      const bench = await onePod();
      const { failed } = await handled(bench, async () => 'edge-1', recordingSender(answer));
      assert.equal(failed, 1);
      assert.deepEqual(bench.deleted, []);
    }
    const bench = await onePod();
    const { failed } = await handled(bench, () => Promise.reject(new StoreError('the table is away')));
    assert.equal(failed, 1);
    assert.deepEqual(bench.deleted, []);
  });

  test('is handled here if the cluster has no agent', async () => {
    const bench = await onePod();
    const { queue, failed } = await handled(bench, async () => undefined);
    assert.equal(failed, 0);
    assert.deepEqual(queue.calls, []);
    assert.deepEqual(bench.deleted, ['u1']);
  });
});
