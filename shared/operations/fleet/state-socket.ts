import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { relative } from 'node:path';
import { json } from 'node:stream/consumers';
import { findOwn } from '#shared/files/owner-only.ts';
import { type Listener, type ListenerLog, openListener, type Serve } from '#shared/http/listener.ts';

/** The socket in the state directory, on which the process answers users who may read that directory. */
export const SOCKET_FILE = 'service.sock';

/** Maximum length of a socket's path in bytes. The limit of macOS is the lowest. */
const MAX_PATH = 103;
/** Timeout of a request. A responsive process answers immediately. */
const ANSWER_MS = 2_000;
/** Permits access only to the owner. */
const UMASK = 0o177;

/**
 * Serves HTTP on a socket with the directory's permissions, in place of a killed process's. `undefined`: the path is
 * too long. If something else is there, rejects with `ForeignFileError` and keeps it.
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
  // The socket's file is created synchronously, before the umask is restored.
  const listener = openListener({ name: 'socket', at: { path: short }, log, serve });
  process.umask(umask);
  return listener;
}

/**
 * `undefined`: no process listens at `path`. Rejects if the request is rejected, or with `ForeignFileError` if the
 * socket is another user's, whose answers cannot be trusted.
 */
export async function askSocket(
  path: string,
  question: string,
  method: 'GET' | 'POST' = 'GET',
): Promise<unknown> {
  const socketPath = reachable(path);
  if (socketPath === undefined || findOwn(path, 'socket') === undefined) return undefined;
  const request = httpRequest({ socketPath, method, path: question, agent: false, timeout: ANSWER_MS });
  request.once('timeout', () => request.destroy());
  request.end();
  try {
    const [response] = await once(request, 'response');
    if (response.statusCode === 200) return await json(response);
    response.resume();
    throw new Error(`${path} answers ${response.statusCode} to ${question}`);
  } catch (error) {
    if (NOBODY.includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

const NOBODY = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTSOCK'];

const reachable = (path: string): string | undefined =>
  [path, relative(process.cwd(), path)].find((each) => Buffer.byteLength(each) <= MAX_PATH);
