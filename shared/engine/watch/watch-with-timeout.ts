import type { Resource, WatchEvent, WatchOptions } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { Age } from '#shared/time/age.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';

/** The server ends each watch after a random time between these: renewals spread, and each is four audit events. */
const MIN_WATCH_SECONDS = 900;
const MAX_WATCH_SECONDS = 1_800;
/** The API server sends a bookmark every minute; a silence of this length means a dead connection. */
const SILENCE_MS = 150_000;
/** A watch that ends sooner and without an event has failed, whatever the server reports: the rule of client-go. */
const SHORTEST_WATCH_MS = 1_000;
const BACKOFF: Backoff = { firstMs: 250, longestMs: 10_000 };
/** Maximum delay. A server that requests a longer one is asked again after this. */
const MAX_RETRY_AFTER_MS = 600_000;

/** The server was silent for so long that the watch is dead, or its history is not the one that we know. */
export class WatchTimeoutError extends ApiError {
  constructor() {
    super(`the watch was silent for ${durationText(SILENCE_MS)}`, 0);
  }
}

/**
 * Watches; throws when the server is silent (`WatchTimeoutError`) or ends the watch immediately (`ApiError`). `stands`
 * is called after an open second: a quiet cluster sends nothing for a minute.
 */
export async function* watchWithTimeout<T>(
  resource: Resource<T>,
  options: Omit<WatchOptions, 'timeoutSeconds' | 'opened'>,
  { clock, stands }: { readonly clock: Clock; readonly stands: () => void },
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const silent = new AbortController();
  const resetTimeout = () => setTimeout(() => silent.abort(), SILENCE_MS);
  let silence = resetTimeout();
  const timeoutSeconds = Math.round(
    MIN_WATCH_SECONDS + Math.random() * (MAX_WATCH_SECONDS - MIN_WATCH_SECONDS),
  );
  const age = new Age(clock);
  let received = false;
  let timer: NodeJS.Timeout | undefined;
  const opened = () => {
    timer = setTimeout(stands, SHORTEST_WATCH_MS);
  };
  try {
    const signal = AbortSignal.any([options.signal, silent.signal]);
    for await (const event of resource.watch({ ...options, timeoutSeconds, signal, opened })) {
      clearTimeout(silence);
      silence = resetTimeout();
      received = true;
      yield event;
    }
  } finally {
    clearTimeout(silence);
    clearTimeout(timer);
  }
  if (silent.signal.aborted) throw new WatchTimeoutError();
  if (!received && !options.signal.aborted && age.atLeastMs < SHORTEST_WATCH_MS) {
    throw new ApiError('the server ended the watch at once', 0);
  }
}

/** Delay after this many consecutive failures: at least the server's `Retry-After`, up to a maximum. */
export function retryMs(error: unknown, failures: number, backoff = BACKOFF): number {
  const { retryAfterSeconds = 0 } = error instanceof ApiError ? error : {};
  return Math.max(backoffMs(failures, backoff), Math.min(retryAfterSeconds * 1000, MAX_RETRY_AFTER_MS));
}

/** Reports whether the version is too old to continue from (410): only a new list shows the missed changes. */
export const isExpired = (error: unknown): boolean => error instanceof ApiError && error.status === 410;

/** Reports whether the version may be useless: too old, or lost by the server, which then stays silent. */
export const isLost = (error: unknown): boolean => isExpired(error) || error instanceof WatchTimeoutError;
