import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { relative } from 'node:path';
import { json } from 'node:stream/consumers';
import { findOwn } from '#shared/files/owner-only.ts';
import { type Listener, type ListenerLog, openListener, type Serve } from '#shared/http/listener.ts';

/** In the state directory: where its process answers whoever may read that directory. */
export const SOCKET_FILE = 'service.sock';

/** What the system takes as a socket's path, in bytes; that of macOS is the shorter one. */
const MAX_PATH = 103;
/** A process that is alive answers at once. */
const ANSWER_MS = 2_000;
/** For nobody but its owner. */
const UMASK = 0o177;

/**
 * Answers HTTP on a socket at `path`, with the rights of the files beside it. What a killed process left there goes. `undefined`:
 * the path is too long for a socket. Rejects with `ForeignFileError` when something else stands there, which stays.
 */
export async function listenOnSocket(
  path: string,
  serve: Serve,
  log: ListenerLog,
): Promise<Listener | undefined> {
  const short = reachable(path);
  if (short === undefined) return undefined;
  if (findOwn(path, 'socket')) rmSync(path, { force: true });
  const umask = process.umask(UMASK);
  try {
    // The file is made before this returns.
    return openListener({ name: 'socket', at: { path: short }, log, serve });
  } finally {
    process.umask(umask);
  }
}

/**
 * The JSON that is answered on the socket at `path`; `undefined`: nobody answers there. Rejects when it is refused, and with `ForeignFileError`
 * when it is not a socket of this user: whoever listens there would be believed.
 */
export async function askSocket(
  path: string,
  question: string,
  method: 'GET' | 'POST' = 'GET',
): Promise<unknown> {
  const socketPath = reachable(path);
  if (socketPath === undefined || findOwn(path, 'socket') === undefined) return undefined;
  const asked = httpRequest({ socketPath, method, path: question, agent: false, timeout: ANSWER_MS });
  asked.once('timeout', () => asked.destroy());
  asked.end();
  try {
    const [response] = await once(asked, 'response');
    if (response.statusCode === 200) return await json(response);
    response.resume();
    throw new Error(`${path} answers ${response.statusCode} to ${question}`);
  } catch (error) {
    if (NOBODY.includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

const NOBODY = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTSOCK'];

/** A path by which the system finds it, from here if need be. */
const reachable = (path: string): string | undefined =>
  [path, relative(process.cwd(), path)].find((each) => Buffer.byteLength(each) <= MAX_PATH);
