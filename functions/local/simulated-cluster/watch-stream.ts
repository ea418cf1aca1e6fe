import type { ServerResponse } from 'node:http';
import { stringifyJson } from './objects/json.ts';
import type { StatusError } from './objects/status.ts';

/** How often a quiet watch tells its version, as the real server does. */
const BOOKMARK_INTERVAL_MS = 60_000;
/** What a client may leave unread before its watch is cut: it will resume, or list anew. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

interface WatchStreamOptions {
  /** After this the server ends the watch. */
  readonly timeoutMs: number;
  /** The object of a bookmark as of now; absent: the client wants none. */
  readonly bookmark?: () => object;
}

/** The answer to a watch: one JSON event a line, until its time is up or somebody closes it. */
export class WatchStream {
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
