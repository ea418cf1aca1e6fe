import type { Change, LiveNode, Resource } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { isNewer, listPages, versionOf } from './list-pages.ts';
import { NodeList, NodeRoom } from './memory-limits.ts';
import { isExpired, retryMs, WatchTimeoutError, watchWithTimeout } from './watch-with-timeout.ts';

/**
 * Page size for servers without streamed lists. 5,000 nodes in pages of 50 take no more memory than streamed; in pages
 * of 500, three times as much.
 */
const PAGE_SIZE = 50;
/** After this many streamed lists that ended early, the list is requested in pages. */
const BROKEN_STREAMS = 2;

/** Kind of a request to the API server. */
export type Request = 'list' | 'watch';

/** Handler of a cluster's nodes. Called in order, one call at a time. */
export interface NodeSink {
  /** Takes a complete list. */
  replace(nodes: readonly LiveNode[]): void;
  change(change: Change<LiveNode>): void;
  /** The server answered or sent an event. */
  heard(): void;
  /**
   * A list or watch failed and is retried. A version that is too old is no failure, unless the next one is too old
   * again.
   */
  failed(error: unknown, request: Request): void;
  /** A list is complete, or a watch is established. */
  answered(request: Request): void;
  /** The server's history was replaced (its etcd was restored): earlier versions no longer count. */
  rewound(): void;
}

export interface FollowDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Follows the nodes of a cluster until `signal` aborts: a streamed list, or pages where the server has none, and then a
 * watch. The watch is resumed after it ends or breaks, until its version is too old (410). Never rejects.
 */
export async function followNodes(
  nodes: Resource<LiveNode>,
  sink: NodeSink,
  { clock, signal }: FollowDeps,
): Promise<void> {
  let version: string | undefined;
  let failures = 0;
  let brokenStreams = 0;
  /** The last watch ended because its version was too old, and the next watch has not delivered an event yet. */
  let expired = false;
  const room = new NodeRoom();
  while (!signal.aborted) {
    let initial: NodeList | undefined;
    try {
      if (version === undefined && brokenStreams >= BROKEN_STREAMS) {
        version = await listByPages(nodes, { sink, room, signal });
        sink.answered('list');
        // Another server may answer next time.
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
        // Update the version only now: an event that the sink rejected must be delivered again.
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

/** Thrown when an event is older than an earlier event. */
class RewoundError extends ApiError {
  constructor() {
    super('the server went back to an older version: its etcd was restored', 0);
  }
}

/** Reports whether the server rejects streamed lists: servers before 1.32 don't have them, or not for every user. */
const refusesStreams = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 400 || error.status === 422);

/**
 * Reports whether a watch was silent because it waits for a version that the server has lost. The server answers such a
 * watch with silence, not with 410.
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
    // The next watch shows whether the server was restored.
    return false;
  }
}

/** Passes all nodes to `sink` and resolves with the list's version. Rejects when the list must be started again. */
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
