import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { SchedulerClient } from '@aws-sdk/client-scheduler';
import { SQSClient } from '@aws-sdk/client-sqs';
import { onStopSignal } from '#shared/time/stopping.ts';
import { awsClientConfig } from '#test/aws/endpoint.ts';
import { install } from './install.ts';
import { MissingError } from './missing-error.ts';
import { type RunningLocalStack, runLocalStack } from './run.ts';
import { keepSending } from './schedules.ts';

/*
 * `npm run localstack [-- --port N]`: LocalStack on this host, without Docker and without a token, with real Lambda
 * functions. Prints the endpoint on standard output once it answers. At SIGTERM or SIGINT it leaves nothing behind
 * except the installed programs in its cache.
 */

const DEFAULT_PORT = '4566';

const note = (text: string): void => void process.stderr.write(`localstack: ${text}\n`);

const stopping = new AbortController();
onStopSignal(() => stopping.abort());

/** Throws unless a port of the loopback interface is free. */
async function refuseTaken(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new MissingError(`Port ${port} cannot be had: name another one by --port.`, { cause })),
    );
    server.listen(port, '127.0.0.1', () => server.close(() => resolve()));
  });
}

/** Resolves with the exit code. */
async function serve(running: RunningLocalStack): Promise<number> {
  const { url } = running;
  const config = awsClientConfig(url);
  const clients = {
    scheduler: new SchedulerClient(config),
    sqs: new SQSClient({ ...config, useQueueUrlAsEndpoint: false }),
  };
  const over = new AbortController();
  // The last call is not awaited, because LocalStack has ended then.
  void keepSending(clients, { signal: over.signal, note });
  process.stdout.write(`${url}\n`);
  const stopped = new Promise<'stopped'>((resolve) =>
    stopping.signal.aborted
      ? resolve('stopped')
      : stopping.signal.addEventListener('abort', () => resolve('stopped')),
  );
  const outcome = await Promise.race([running.ended.then(() => 'ended' as const), stopped]);
  over.abort();
  if (outcome === 'ended') note(`LocalStack ended by itself. The end of its log:\n${running.log()}`);
  await running.close();
  return outcome === 'ended' ? 1 : 0;
}

try {
  const { values } = parseArgs({ options: { port: { type: 'string', default: DEFAULT_PORT } } });
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new MissingError(`--port must be a number from 1 to 65535, and not ${values.port}.`);
  await refuseTaken(port);
  const installed = await install({ env: process.env, note, signal: stopping.signal });
  const running = await runLocalStack({ installed, port, env: process.env, signal: stopping.signal });
  process.exit(await serve(running));
} catch (error) {
  if (stopping.signal.aborted) process.exit(0);
  note(error instanceof MissingError ? error.message : String(error));
  process.exit(1);
}
