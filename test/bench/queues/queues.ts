import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { EmbeddedQueue } from '#functions/local/embedded-queue.ts';
import { QUEUES } from '#shared/queues/queue-set.ts';
import type { OutgoingMessage } from '#shared/queues/sender.ts';
import { logTo } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { awsClientConfig } from '#test/aws/endpoint.ts';
import { freePort } from '#test/aws/server-process.ts';
import { NotHereError, type Scenario, takingTurns } from '#test/bench/scenario.ts';

const RUNS = 5;
const MESSAGES = 20_000;
/** The peer speaks HTTP, and is slower. */
const PEER_MESSAGES = 2_000;
const SHORT_MESSAGES = 100;
const BATCH = 10;
const GROUPS = 100;
/** A node's delta with some thirty pods has about so many. */
const BODY = JSON.stringify({ pods: 'x'.repeat(4_000) });

const FAUXQS = 'fauxqs@2.4.1';

/** Sends so many messages and ends them; messages a second. */
type Passing = (messages: number) => Promise<number>;

/** The FIFO queue of the embedded service beside an SQS that runs in the same process. */
export const queues: Scenario = {
  about: `${GROUPS} groups of a FIFO queue: messages sent, received and deleted, ${BATCH} at a time`,
  async run(tell, { runs = RUNS, short }) {
    const [peer, note] = await fauxqs();
    const count = (usual: number) => (short ? SHORT_MESSAGES : usual);
    const by = await takingTurns<'ours' | 'peer', number | undefined>(short ? 1 : runs, {
      ours: () => embedded(count(MESSAGES)),
      peer: () => peer?.passing(count(PEER_MESSAGES)),
    });
    await peer?.close();
    const whole = (value: number | undefined) => (value === undefined ? [] : [Math.round(value)]);
    tell({
      ...{ what: 'messages sent, received and deleted', unit: 'messages/s', better: 'more' },
      ours: by.ours.flatMap(whole),
      peer: { name: `${FAUXQS} by HTTP`, values: by.peer.flatMap(whole) },
      ...(note === undefined ? {} : { note }),
    });
  },
};

function batch(from: number): readonly OutgoingMessage[] {
  return Array.from({ length: BATCH }, (_, index) => ({
    body: BODY,
    groupId: `node-${(from + index) % GROUPS}`,
    deduplicationId: `${from + index}`,
  }));
}

const embedded: Passing = async (messages) => {
  const queue = new EmbeddedQueue({
    spec: QUEUES.nodeDeltas,
    deadLetters: { add: () => undefined },
    clock: systemClock,
    log: logTo(() => undefined),
  });
  const beganAt = performance.now();
  for (let sent = 0; sent < messages; sent += BATCH) {
    await queue.send(batch(sent));
    for (let ended = 0; ended < BATCH; ) {
      const received = queue.receive(BATCH);
      for (const { receiptHandle } of received) queue.delete(receiptHandle);
      ended += received.length;
    }
  }
  return (messages * 1000) / (performance.now() - beganAt);
};

/** Installs the peer beside, at need; or says why there is none. */
async function fauxqs(): Promise<
  readonly [{ readonly passing: Passing; close(): Promise<void> } | undefined, string?]
> {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-fauxqs-'));
  process.once('exit', () => rmSync(dir, { recursive: true }));
  try {
    const { buildApp } = await installed(dir);
    const port = await freePort();
    const app = buildApp({ logger: false, host: 'localhost' });
    await app.listen({ port, host: '127.0.0.1' });
    const client = new SQSClient({
      ...awsClientConfig(`http://localhost:${port}`),
      useQueueUrlAsEndpoint: false,
    });
    let made = 0;
    const passing: Passing = async (messages) => {
      const { QueueUrl } = await client.send(
        new CreateQueueCommand({ QueueName: `bench-${made++}.fifo`, Attributes: { FifoQueue: 'true' } }),
      );
      const beganAt = performance.now();
      for (let sent = 0; sent < messages; sent += BATCH) await passBatch(client, QueueUrl, sent);
      return (messages * 1000) / (performance.now() - beganAt);
    };
    const close = async () => {
      client.destroy();
      await app.close();
    };
    return [{ passing, close }];
  } catch (error) {
    if (!(error instanceof NotHereError)) throw error;
    process.stderr.write(`  LEFT OUT: ${error.message}\n`);
    return [undefined, 'without its peer: it could not be installed'];
  }
}

interface Fauxqs {
  buildApp(options: object): {
    listen(options: object): Promise<unknown>;
    close(): Promise<void>;
  };
}

async function installed(dir: string): Promise<Fauxqs> {
  try {
    const flags = ['--prefix', dir, '--ignore-scripts', '--no-audit', '--no-fund', '--no-save'];
    execFileSync('npm', ['install', ...flags, FAUXQS], { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    throw new NotHereError(`${FAUXQS} could not be installed: ${(error as Error).message.split('\n')[0]}`);
  }
  return import(pathToFileURL(join(dir, 'node_modules/fauxqs/dist/app.js')).href);
}

async function passBatch(client: SQSClient, QueueUrl: string | undefined, from: number): Promise<void> {
  const Entries = batch(from).map(({ body, groupId, deduplicationId }, index) => ({
    Id: `${index}`,
    MessageBody: body,
    MessageGroupId: groupId,
    MessageDeduplicationId: deduplicationId,
  }));
  await client.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
  for (let ended = 0; ended < BATCH; ) {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: BATCH }),
    );
    if (Messages.length === 0) continue;
    const ends = Messages.map(({ ReceiptHandle }, index) => ({ Id: `${index}`, ReceiptHandle }));
    await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: ends }));
    ended += Messages.length;
  }
}
