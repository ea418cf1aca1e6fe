import { EmbeddedTimers } from '#functions/local/embedded-timers.ts';
import { startEmbeddedSqs } from '#shared/queues/embedded-sqs.ts';
import { createQueue, QUEUES } from '#shared/queues/queue-set.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { systemClock } from '#shared/time/clock.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { timersContract } from '#test/contracts/timers-contract.ts';

timersContract('EmbeddedTimers', async () => {
  const { client, close } = await startEmbeddedSqs();
  const { url } = await createQueue(client, QUEUES.evictionsDue);
  const dueQueue = new SqsSender({ client, queueUrl: url });
  const timers = new EmbeddedTimers({ dueQueue, clock: systemClock, log: recordingLog() });
  return {
    timers,
    client,
    dueQueueUrl: url,
    close: async () => {
      await timers.stop();
      await close();
    },
  };
});
