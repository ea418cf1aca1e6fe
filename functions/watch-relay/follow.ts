import type { Resource, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';

/** Objects per page: what client-go's reflectors ask for. */
const PAGE_SIZE = 500;
/** The server ends each watch after a random time between these, as client-go does, to spread the load. */
const MIN_WATCH_SECONDS = 300;
const MAX_WATCH_SECONDS = 600;
/** The API server sends a bookmark every minute; this long without a word means a dead connection. */
const STALL_MS = 150_000;
/** A watch that ends sooner and without a word has failed, whatever the server says: client-go's rule. */
const SHORTEST_WATCH_MS = 1_000;
const BACKOFF: Backoff = { firstMs: 250, longestMs: 10_000 };
/** From the second failure in a row, changes may have been missed that nobody retries: list anew. */
const RESUMED_FAILURES = 1;

export type Change<T> = Exclude<WatchEvent<T>, { kind: 'bookmark' | 'passed' }>;

/** What is done with what is heard. Called in order, one at a time. */
export interface FollowSink<T> {
  /** The API server answered, if only that nothing has changed. */
  heard(): void;
  /** A complete list. */
  replace(objects: readonly T[]): void;
  change(change: Change<T>): void;
  failed(error: unknown): void;
}

/**
 * Follows one kind of object until `signal` aborts: lists, watches from the list's version, resumes where a
 * watch ended, and lists anew when that version is too old (410) or the server was out of reach. Never rejects.
 */
export async function follow<T extends { readonly resourceVersion: string }>(
  resource: Resource<T>,
  sink: FollowSink<T>,
  { signal, log, name }: { readonly signal: AbortSignal; readonly log: Log; readonly name: string },
): Promise<void> {
  let version: string | undefined;
  let failures = 0;
  while (!signal.aborted) {
    try {
      if (version === undefined) {
        const listed = await listAll(resource, signal);
        sink.heard();
        sink.replace(listed.objects);
        version = listed.version;
        log.debug('relay.listed', { resource: name, objects: listed.objects.length });
      }
      for await (const event of watch(resource, version, signal)) {
        sink.heard();
        if ('object' in event) sink.change(event);
        // Not before: what the sink could not take is heard again.
        version = 'object' in event ? event.object.resourceVersion : event.resourceVersion;
        failures = 0;
      }
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const expired = error instanceof ApiError && error.status === 410;
      if (expired || failures > RESUMED_FAILURES) version = undefined;
      if (!expired) sink.failed(error);
      await pause(backoffMs(failures, BACKOFF), signal);
    }
  }
}

async function listAll<T>(resource: Resource<T>, signal: AbortSignal) {
  const objects: T[] = [];
  let next: string | undefined;
  for (;;) {
    const page = await resource.list({
      limit: PAGE_SIZE,
      signal,
      ...(next === undefined ? {} : { continue: next }),
    });
    // One by one: as arguments of one call, a page of a server that ignores the limit would not fit on the stack.
    for (const item of page.items) objects.push(item);
    next = page.continue;
    if (next === undefined) return { objects, version: page.resourceVersion };
  }
}

/** A watch that throws when the server falls silent, or hangs up at once. */
async function* watch<T>(resource: Resource<T>, resourceVersion: string, signal: AbortSignal) {
  const stalled = new AbortController();
  const expectAWord = () => setTimeout(() => stalled.abort(), STALL_MS);
  let stall = expectAWord();
  const timeoutSeconds = Math.round(
    MIN_WATCH_SECONDS + Math.random() * (MAX_WATCH_SECONDS - MIN_WATCH_SECONDS),
  );
  const startedAt = Date.now();
  let heard = false;
  try {
    const either = AbortSignal.any([signal, stalled.signal]);
    for await (const event of resource.watch({ resourceVersion, timeoutSeconds, signal: either })) {
      clearTimeout(stall);
      stall = expectAWord();
      heard = true;
      yield event;
    }
  } finally {
    clearTimeout(stall);
  }
  if (stalled.signal.aborted) throw new ApiError(`the watch was silent for ${STALL_MS / 1000} s`, 0);
  if (!heard && Date.now() - startedAt < SHORTEST_WATCH_MS) {
    throw new ApiError('the server ended the watch at once', 0);
  }
}
