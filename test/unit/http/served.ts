import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { type ListenerOptions, openListener } from '#shared/http/listener.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { settled, until } from '#test/world/turns.ts';

/** A client that sends the given bytes and keeps the received text. */
export interface Client {
  readonly socket: Socket;
  readonly text: () => string;
  readonly isClosed: () => boolean;
  /** Resolves when the received text matches. */
  readonly received: (pattern: RegExp) => Promise<void>;
}

export async function clientOf(port: number, text = ''): Promise<Client> {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  let isClosed = false;
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  socket.on('close', () => {
    isClosed = true;
  });
  await once(socket, 'connect').catch(() => undefined);
  if (socket.destroyed) await until(() => isClosed);
  if (text !== '') socket.write(text);
  return {
    socket,
    text: () => received,
    isClosed: () => isClosed,
    received: (pattern) => until(() => pattern.test(received)),
  };
}

/** A listener whose seconds pass by `pass`. It answers with the path unless `serve` is given. */
export async function served(context: TestContext, options: Partial<ListenerOptions> = {}) {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const log = recordingLog();
  const requests: string[] = [];
  const listener = await openListener({
    name: 'test',
    at: { host: '127.0.0.1', port: 0 },
    log,
    serve: (_, response, { url }) => {
      requests.push(url.pathname);
      response.end(`${url.pathname}\n`);
    },
    ...options,
  });
  const clients: Client[] = [];
  context.after(async () => {
    for (const { socket } of clients) socket.destroy();
    await listener.close();
  });
  const client = async (text = ''): Promise<Client> => {
    const opened = await clientOf(listener.port, text);
    clients.push(opened);
    return opened;
  };
  const pass = async (times: number) => {
    for (let time = 0; time < times; time++) {
      await settled();
      context.mock.timers.tick(1_000);
    }
    await settled();
  };
  return { listener, log, requests, client, pass };
}

export const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`;
