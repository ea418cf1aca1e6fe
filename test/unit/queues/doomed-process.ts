import { randomUUID } from 'node:crypto';
import { startEmbeddedSqs } from '#shared/queues/embedded-sqs.ts';
import { createQueues, DELTA_MAX_RECEIVES } from '#shared/queues/queue-set.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { SqsVisibility } from '#shared/queues/sqs-visibility.ts';
import { receive } from '#test/contracts/received.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

/*
 * Fills the queues in the directory given as argument until it is killed: a dead
 * letter, a message in flight, one behind it in its group, one delayed, then more and more, each told to its parent.
 */

const [, , dir = ''] = process.argv;
const { client } = await startEmbeddedSqs({ dir });
const { nodeDeltas, evictionsDue } = await createQueues(client);
const deltas = new SqsSender({ client, queueUrl: nodeDeltas.url });
const due = new SqsSender({ client, queueUrl: evictionsDue.url });
const visibility = new SqsVisibility({ client, queueUrl: nodeDeltas.url, log: recordingLog() });
const message = (body: string) => ({ body, groupId: 'group', deduplicationId: randomUUID() });

await deltas.send([message('poison'), message('in flight'), message('behind')]);
for (let receives = 0; receives < DELTA_MAX_RECEIVES; receives++) {
  const [poison] = await receive(client, nodeDeltas.url, 1);
  await visibility.retryIn([{ receiptHandle: poison?.ReceiptHandle ?? '', seconds: 0 }]);
}
await receive(client, nodeDeltas.url, 1);
await due.send([{ body: 'delayed', delaySeconds: 1 }]);
for (let sent = 0; ; sent++) {
  await due.send([{ body: `answered ${sent}` }]);
  process.send?.(sent);
}
