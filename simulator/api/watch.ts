import type { ServerResponse } from 'node:http';
import { stringifyJson } from '../objects/json.ts';
import { API_VERSIONS, type ApiObject, KINDS } from '../objects/kinds.ts';
import { StatusError } from '../objects/status.ts';
import type { ObjectStore } from '../objects/store.ts';
import { representation, represented } from './representation.ts';
import { flagIn, numberIn, type ObjectCall, selectorIn } from './request.ts';

/** The shortest timeout that the real server gives a watch without `timeoutSeconds` (`--min-request-timeout`). */
const WATCH_TIMEOUT_SECONDS = 1800;
/** A day: more than any client asks for, and within the range of a timer. */
const MAX_WATCH_TIMEOUT_SECONDS = 86_400;
/** The interval of bookmarks on a watch, as on the real server. */
const BOOKMARK_INTERVAL_MS = 60_000;
/** The unread bytes at which the server cuts a watch; the client then resumes, or lists again. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/**
 * Answers a watch. Existing objects are sent first if the request has no version (or 0), or asks for initial events; then changes
 * are sent. Throws `StatusError` for an invalid request. A version that is no longer remembered is reported inside the stream, as
 * on the real server.
 */
export function answerWatch(store: ObjectStore, { request, response, query, path }: ObjectCall): void {
  const { resource, namespace } = path;
  const as = representation(request.headers.accept, query.get('includeObject'));
  const selects = selectorIn(query, resource);
  const given = numberIn(query, 'resourceVersion') ?? 0;
  const wantsInitial = flagIn(query, 'sendInitialEvents');
  const seconds = numberIn(query, 'timeoutSeconds') || WATCH_TIMEOUT_SECONDS;
  const bookmark = (annotations?: object) => ({
    kind: KINDS[resource],
    apiVersion: API_VERSIONS[resource],
    metadata: {
      resourceVersion: String(store.version),
      ...(annotations === undefined ? {} : { annotations }),
    },
  });

  let unsubscribe = () => {};
  const stream = new WatchStream(
    response,
    {
      timeoutMs: Math.min(seconds, MAX_WATCH_TIMEOUT_SECONDS) * 1000,
      ...(flagIn(query, 'allowWatchBookmarks') ? { bookmark: () => bookmark() } : {}),
    },
    () => unsubscribe(),
  );
  let isFirst = true;
  const send = (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ApiObject): void => {
    stream.send(type, represented(object, resource, as, store.now(), isFirst));
    isFirst = false;
  };

  const showsPresent = wantsInitial || given === 0;
  try {
    if (showsPresent) {
      for (const object of store.list(resource, { namespace, selects }).items) send('ADDED', object);
    }
    if (wantsInitial) stream.send('BOOKMARK', bookmark({ 'k8s.io/initial-events-end': 'true' }));
    const version = showsPresent ? store.version : given;
    unsubscribe = store.watch(resource, { namespace, selects, version }, ({ type, object }) =>
      send(type, object),
    );
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    stream.fail(error);
  }
}

type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

interface WatchStreamOptions {
  /** The time after which the server ends the watch. */
  readonly timeoutMs: number;
  /** Returns the object of a bookmark for the current version; absent: the client wants no bookmarks. */
  readonly bookmark?: () => object;
}

/** The answer to a watch: one JSON event per line, until the timeout, or until either side closes it. */
class WatchStream {
  readonly #response: ServerResponse;
  readonly #bookmark: (() => object) | undefined;
  readonly #bookmarks: NodeJS.Timeout | undefined;
  readonly #timeout: NodeJS.Timeout;

  /** Sends the response head immediately. Calls `onClose` once, when the answer has ended for any reason. */
  constructor(response: ServerResponse, { timeoutMs, bookmark }: WatchStreamOptions, onClose: () => void) {
    this.#response = response;
    this.#bookmark = bookmark;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    this.#timeout = setTimeout(() => this.end(), timeoutMs);
    if (bookmark !== undefined) {
      this.#bookmarks = setInterval(() => this.send('BOOKMARK', bookmark()), BOOKMARK_INTERVAL_MS);
    }
    response.once('close', () => {
      this.#stopTimers();
      onClose();
    });
  }

  send(type: WatchEventType, object: object): void {
    if (this.#response.writableEnded) return;
    if (this.#response.writableLength > MAX_UNREAD_BYTES) {
      this.#response.destroy();
      return;
    }
    this.#response.write(`${stringifyJson({ type, object })}\n`);
  }

  /** Ends the answer, with a last bookmark, so that the client resumes from where it was. */
  end(): void {
    if (this.#response.writableEnded) return;
    if (this.#bookmark !== undefined) this.send('BOOKMARK', this.#bookmark());
    this.#stopTimers();
    this.#response.end();
  }

  /** Ends the answer with an error, after which the client starts over. */
  fail(error: StatusError): void {
    this.send('ERROR', error.body());
    this.#stopTimers();
    this.#response.end();
  }

  #stopTimers(): void {
    clearTimeout(this.#timeout);
    clearInterval(this.#bookmarks);
  }
}
