import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Context } from 'aws-lambda';
import { rejectOtherClusters } from '#functions/agent/own-cluster.ts';
import { createHandler } from '#functions/evict/handler.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { recordingSender } from '#test/unit/aws/recording-sender.ts';
import { benchAfter } from '#test/unit/engine/evict/evict-bench.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta, ref } from '#test/unit/eviction/builders.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';

test("evicts in the agent's own cluster and sends messages of other clusters to the dead-letter queue with the reason", async () => {
  const bench = await benchAfter([nodeDelta(1)], [livePod()]);
  const deadLetters = recordingSender();
  const handler = createHandler({
    ...bench,
    deadLetters,
    sendOn: rejectOtherClusters(ref.cluster, 'edge-1'),
  });
  const due = (cluster: typeof ref.cluster, messageId: string) =>
    sqsRecord(encodeDue({ ...ref, cluster, at: at(60) }), { messageId, groupId: cluster });
  const others = due(clusterName('other'), 'm2');
  const response = await handler(sqsEvent(due(ref.cluster, 'm1'), others), {} as Context);
  assert.deepEqual(response?.batchItemFailures, []);
  assert.deepEqual(bench.deleted, ['u1']);
  const [letter, ...more] = deadLetters.calls.flat();
  assert.equal(letter?.body, others.body);
  assert.equal(
    letter?.attributes?.['reason'],
    `due message rejected: it names cluster other, but agent edge-1 manages only cluster ${ref.cluster}. Register other with the agent that runs there`,
  );
  assert.deepEqual(more, []);
});
