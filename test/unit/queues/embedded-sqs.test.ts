import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import { startEmbeddedSqs } from '#shared/queues/embedded-sqs.ts';
import { queueContract } from '#test/contracts/queue-contract.ts';

describe('the embedded SQS', { concurrency: true }, () => {
  queueContract('in memory', () => startEmbeddedSqs());

  queueContract('in a directory', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'embedded-sqs-'));
    const { client, close } = await startEmbeddedSqs({ dir });
    return {
      client,
      close: async () => {
        await close();
        await rm(dir, { recursive: true });
      },
    };
  });
});
