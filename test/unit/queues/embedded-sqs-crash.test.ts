import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { type EmbeddedSqs, startEmbeddedSqs } from '#shared/queues/embedded-sqs.ts';
import { createQueue, QUEUES, RETENTION_SECONDS } from '#shared/queues/queue-set.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { consume, countsOf, receive, untilEmpty } from '#test/contracts/received.ts';

/** Messages that the doomed process must have sent before it is killed in the middle of sending. */
const ANSWERED = 30;

describe('embedded SQS in a directory', () => {
  let dir: string;
  let sqs: EmbeddedSqs;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'embedded-sqs-'));
  });
  afterEach(async () => {
    await sqs.close();
    await rm(dir, { recursive: true });
  });

  test('holds after a kill -9 all that was answered: order, flight, dead letters and delays', async () => {
    const answered = await fillAndKill(dir);
    sqs = await startEmbeddedSqs({ dir });
    const { client } = sqs;

    const deltas = await createQueue(client, QUEUES.nodeDeltas);
    const [first] = await receive(client, deltas.url, 1);
    assert.deepEqual([first?.Body, first?.Attributes?.ApproximateReceiveCount], ['in flight', '2']);
    assert.equal((await countsOf(client, deltas.url)).visible, 1, 'the message behind it');
    assert.deepEqual(await consume(client, deltas.dlqUrl, 1), ['poison']);

    const due = await createQueue(client, QUEUES.evictionsDue);
    const missing = new Set([
      'delayed',
      ...Array.from({ length: answered }, (_, index) => `answered ${index}`),
    ]);
    // Messages beyond those may be there, too: answered, but the process was killed before it could say so.
    while (missing.size > 0) {
      const [body = ''] = await consume(client, due.url, 1);
      missing.delete(body);
    }
  });

  test('forgets at start what is older than its queue keeps messages', async () => {
    sqs = await startEmbeddedSqs({ dir });
    const before = await createQueue(sqs.client, QUEUES.evictionsDue);
    await new SqsSender({ client: sqs.client, queueUrl: before.url }).send([
      { body: 'old' },
      { body: 'new' },
    ]);
    await sqs.close();
    const database = new DatabaseSync(join(dir, 'fauxqs.db'));
    const sentAt = Date.now() - (RETENTION_SECONDS + 1) * 1000;
    database.prepare(`UPDATE sqs_messages SET sent_timestamp = ? WHERE body = 'old'`).run(sentAt);
    database.close();

    sqs = await startEmbeddedSqs({ dir });
    const { url } = await createQueue(sqs.client, QUEUES.evictionsDue);
    assert.deepEqual(await consume(sqs.client, url, 1), ['new']);
    await untilEmpty(sqs.client, url);
  });
});

/** Runs a process that fills the queues in `dir`, kills it while it sends; returns how many sends it saw answered. */
async function fillAndKill(dir: string): Promise<number> {
  const doomed = fork(new URL('./doomed-process.ts', import.meta.url), [dir]);
  let answered = 0;
  const enough = new Promise<void>((resolve, reject) => {
    doomed.on('message', (sent: number) => {
      answered = sent + 1;
      if (answered >= ANSWERED) resolve();
    });
    doomed.once('exit', (code) => reject(new Error(`the doomed process ended by itself with code ${code}`)));
  });
  await enough;
  const exit = once(doomed, 'exit');
  doomed.kill('SIGKILL');
  await exit;
  return answered;
}
