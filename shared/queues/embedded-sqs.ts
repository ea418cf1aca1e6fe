import { SQSClient } from '@aws-sdk/client-sqs';
import { buildApp } from 'fauxqs';
import { fillFifoReceives } from './embedded-fifo-batches.ts';
import { durableStores } from './embedded-sqs-stores.ts';

/** Nothing but this machine itself reaches the queues. */
const LOOPBACK = '127.0.0.1';

/** An SQS inside this process. */
export interface EmbeddedSqs {
  readonly client: SQSClient;
  /** Stops the server. Calls that are still under way fail. */
  close(): Promise<void>;
}

/**
 * Starts an SQS in this process, on a free port of the loopback interface, and returns a client of it. With
 * `dir`, queues, messages and dead letters are kept there and are back after a restart or a crash; messages that
 * were in flight are then visible at once. Other users of the machine can reach the port: SQS's signatures are
 * not checked. `dir` must be this process's alone. Rejects when it cannot be written.
 */
export async function startEmbeddedSqs({ dir }: { readonly dir?: string } = {}): Promise<EmbeddedSqs> {
  await fillFifoReceives();
  const durable = dir === undefined ? undefined : await durableStores(dir);
  const server = buildApp({ logger: false, host: 'localhost', ...(durable && { stores: durable.stores }) });
  const endpoint = await server.listen({ host: LOOPBACK, port: 0 });
  const client = new SQSClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'embedded', secretAccessKey: 'embedded' },
    // Queue URLs hold a host name that need not resolve, and after a restart the port of the process before.
    useQueueUrlAsEndpoint: false,
  });
  const close = async () => {
    client.destroy();
    await server.close();
    durable?.close();
  };
  return { client, close };
}
