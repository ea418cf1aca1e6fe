import type { ServerResponse } from 'node:http';
import { stringifyJson } from '../objects/json.ts';
import { API_VERSIONS, type ApiObject, KINDS } from '../objects/kinds.ts';
import { StatusError } from '../objects/status.ts';
import type { ObjectStore } from '../objects/store.ts';
import { representation, represented } from './representation.ts';
import { flagIn, numberIn, type ObjectCall, selectorIn } from './request.ts';

/** What the real server gives a watch that names no time, at least (`--min-request-timeout`). */
const WATCH_TIMEOUT_SECONDS = 1800;
/** A day: more than any client asks for, and what a timer can hold. */
const MAX_WATCH_TIMEOUT_SECONDS = 86_400;
/** How often a quiet watch tells its version, as the real server does. */
const BOOKMARK_INTERVAL_MS = 60_000;
/** What a client may leave unread before its watch is cut: it will resume, or list anew. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/**
 * Answers a watch: without a version (or 0), or when the client asks for initial events, what is there comes
 * first; then what changes. Throws `StatusError` for a request that is wrong; a version that is forgotten is
 * told inside the stream, as the real server does.
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
  const tell = (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ApiObject): void => {
    stream.send(type, represented(object, resource, as, store.now(), isFirst));
    isFirst = false;
  };

  const showsPresent = wantsInitial || given === 0;
  try {
    if (showsPresent) {
      for (const object of store.list(resource, { namespace, selects }).items) tell('ADDED', object);
    }
    if (wantsInitial) stream.send('BOOKMARK', bookmark({ 'k8s.io/initial-events-end': 'true' }));
    const version = showsPresent ? store.version : given;
    unsubscribe = store.watch(resource, { namespace, selects, version }, ({ type, object }) =>
      tell(type, object),
    );
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    stream.fail(error);
  }
}

type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

interface WatchStreamOptions {
  /** After this the server ends the watch. */
  readonly timeoutMs: number;
  /** The object of a bookmark as of now; absent: the client wants none. */
  readonly bookmark?: () => object;
}

/** The answer to a watch: one JSON event a line, until its time is up or somebody closes it. */
class WatchStream {
  readonly #response: ServerResponse;
  readonly #bookmark: (() => object) | undefined;
  readonly #bookmarks: NodeJS.Timeout | undefined;
  readonly #timeout: NodeJS.Timeout;

  /** Sends the head at once. `onClose` is called once, when the answer has ended, whoever ended it. */
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
