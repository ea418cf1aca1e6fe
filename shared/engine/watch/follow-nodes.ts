import type { Change, LiveNode, Resource } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { listPages } from './list-pages.ts';
import { NodeList, NodeRoom } from './node-room.ts';
import { isNewer, versionOf } from './resource-version.ts';
import { isExpired, retryMs, WatchTimeoutError, watchWithTimeout } from './watch-with-timeout.ts';

/** Where the server streams no lists. 5,000 nodes by 50 take no more memory than streamed; by 500 three times as much. */
const PAGE_SIZE = 50;
/** A streamed list that ended early so often is asked for by pages. */
const BROKEN_STREAMS = 2;

/** What a server was asked for. */
export type Request = 'list' | 'watch';

/** What is done with what is heard. Called in order, one at a time. */
export interface NodeSink {
  /** A complete list. */
  replace(nodes: readonly LiveNode[]): void;
  change(change: Change<LiveNode>): void;
  /** The server gave a sign of life. */
  heard(): void;
  /** A list or watch failed; it is tried again. A version that is too old fails nothing, unless that comes again. */
  failed(error: unknown, request: Request): void;
  /** A list is complete, or a watch stands. */
  answered(request: Request): void;
  /** The server's history is another one than before (its etcd was restored): no version counts any more. */
  rewound(): void;
}

export interface FollowDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Follows the nodes of a cluster until `signal` aborts: a streamed list, or pages where the server has none, and a watch
 * that is resumed wherever it ends or breaks, until its version is too old (410). Never rejects.
 */
export async function followNodes(
  nodes: Resource<LiveNode>,
  sink: NodeSink,
  { clock, signal }: FollowDeps,
): Promise<void> {
  let version: string | undefined;
  let failures = 0;
  let brokenStreams = 0;
  /** The last watch ended because its version was too old, and nothing was heard of the one after it. */
  let expired = false;
  const room = new NodeRoom();
  while (!signal.aborted) {
    let initial: NodeList | undefined;
    try {
      if (version === undefined && brokenStreams >= BROKEN_STREAMS) {
        version = await listByPages(nodes, { sink, room, signal });
        sink.answered('list');
        // Next time the server may be another one.
        brokenStreams = 0;
        failures = 0;
      }
      initial = version === undefined ? new NodeList() : undefined;
      const from = version === undefined ? { initial: true } : { resourceVersion: version };
      const stands = () => {
        sink.heard();
        if (!initial) sink.answered('watch');
      };
      for await (const event of watchWithTimeout(nodes, { ...from, signal }, { clock, stands })) {
        sink.heard();
        if (initial) {
          if (event.kind === 'upsert') initial.push(event.object);
          if (event.kind !== 'bookmark' || !event.initialEnd) continue;
          room.replace(initial.nodes);
          sink.replace(initial.nodes);
          initial = undefined;
          brokenStreams = 0;
          sink.answered(expired ? 'list' : 'watch');
        } else if (version !== undefined && isNewer(version, versionOf(event))) {
          throw new RewoundError();
        } else if ('object' in event) {
          if (event.kind === 'upsert') room.keep(event.object);
          else room.forget(event.object.name);
          sink.change(event);
        }
        // Not before: what the sink could not take is heard again.
        if (version !== undefined) {
          expired = false;
          sink.answered('watch');
        }
        version = versionOf(event);
        failures = 0;
      }
      if (initial && !signal.aborted) throw new ApiError('the streamed list of nodes ended early', 0);
    } catch (error) {
      if (signal.aborted) return;
      if (initial && refusesStreams(error)) {
        brokenStreams = BROKEN_STREAMS;
        continue;
      }
      if (initial && !(error instanceof ApiError && error.status !== 0)) brokenStreams += 1;
      failures += 1;
      if (!isExpired(error) || expired) sink.failed(error, version === undefined ? 'list' : 'watch');
      expired = isExpired(error);
      if (expired) version = undefined;
      const rewound = error instanceof RewoundError || (await wasRewound(error, version, nodes, signal));
      if (rewound) {
        version = undefined;
        sink.rewound();
      }
      await pause(retryMs(error, failures), signal);
    }
  }
}

/** An event is older than what was heard before. */
class RewoundError extends ApiError {
  constructor() {
    super('the server went back to an older version: its etcd was restored', 0);
  }
}

/** Servers before 1.32 do not have streamed lists, or not for everybody. */
const refusesStreams = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 400 || error.status === 422);

/**
 * Whether a watch was silent because it waits for a version that the server has lost: to watch from such a one is
 * answered with silence, not with 410.
 */
async function wasRewound(
  error: unknown,
  version: string | undefined,
  nodes: Resource<LiveNode>,
  signal: AbortSignal,
): Promise<boolean> {
  if (!(error instanceof WatchTimeoutError) || version === undefined) return false;
  try {
    return isNewer(version, (await nodes.list({ limit: 1, signal })).resourceVersion);
  } catch {
    // The next watch tells.
    return false;
  }
}

/** Tells all nodes to `sink` and resolves with the list's version. Rejects when the list has to be begun anew. */
async function listByPages(
  nodes: Resource<LiveNode>,
  { sink, room, signal }: { readonly sink: NodeSink; readonly room: NodeRoom; readonly signal: AbortSignal },
): Promise<string> {
  const listed = new NodeList();
  let version = '';
  const failed = (error: unknown) => sink.failed(error, 'list');
  for await (const page of listPages(nodes, { limit: PAGE_SIZE, signal, failed })) {
    sink.heard();
    for (const node of page.items) listed.push(node);
    version = page.resourceVersion;
  }
  room.replace(listed.nodes);
  sink.replace(listed.nodes);
  return version;
}
