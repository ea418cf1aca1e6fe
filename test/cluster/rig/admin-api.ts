import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { Transport } from '#shared/kubernetes/http/transport.ts';

type Query = Readonly<Record<string, string>>;

/** The suite's own calls, with the permissions of the user in `KUBECONFIG`. All methods reject with `ApiError`. */
export class AdminApi {
  readonly #transport: Transport;

  constructor(connection: Connection) {
    this.#transport = new Transport(connection);
  }

  read(path: string, query: Query = {}): Promise<unknown> {
    return this.#transport.read({ verb: 'get', resource: path, path, query });
  }

  create(path: string, body: object): Promise<unknown> {
    return this.#transport.read({ verb: 'create', resource: path, path, body });
  }

  replace(path: string, body: object): Promise<unknown> {
    return this.#transport.read({ verb: 'update', resource: path, path, body });
  }

  /** Sends a JSON merge patch, which replaces lists. */
  patch(path: string, body: object): Promise<unknown> {
    const contentType = 'application/merge-patch+json';
    return this.#transport.read({ verb: 'patch', resource: path, path, body, contentType });
  }

  /** Sends a strategic merge patch, which merges conditions by their type. */
  patchStatus(path: string, status: object): Promise<unknown> {
    const contentType = 'application/strategic-merge-patch+json';
    return this.#transport.read({
      verb: 'patch',
      resource: path,
      path: `${path}/status`,
      body: { status },
      contentType,
    });
  }

  /**
   * Deletes an object, or the objects of a collection that the query selects. An object that does not exist is no
   * error.
   */
  async remove(path: string, options: object = {}, query: Query = {}): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
    try {
      await this.#transport.perform({ verb: 'delete', resource: path, path, query, body });
    } catch (error) {
      if (!(error instanceof ApiError && [404, 409].includes(error.status))) throw error;
    }
  }

  /**
   * Deletes a collection of any size. Tens of thousands of objects take longer than the timeout of one call, so the
   * deletion is repeated.
   */
  async removeAll(path: string, options: object = {}, query: Query = {}): Promise<void> {
    for (let calls = 1; ; calls++) {
      try {
        return await this.remove(path, options, query);
      } catch (error) {
        const unanswered = error instanceof ApiError && error.status === 0;
        if (!unanswered || calls === MAX_REMOVALS) throw error;
      }
    }
  }

  /** Yields the events of a watch, one JSON object each, until the server or `signal` ends it. */
  async *watch(path: string, query: Query, signal: AbortSignal): AsyncGenerator<unknown, void, undefined> {
    const call = { verb: 'watch', resource: path, path, query: { ...query, watch: '1' }, signal } as const;
    for await (const line of this.#transport.lines(call, WATCH_TIMEOUT_MS)) {
      yield this.#transport.parse(call, line);
    }
  }

  close(): void {
    this.#transport.close();
  }
}

/** The calls, of up to ten seconds each, that the removal of a collection can take. */
const MAX_REMOVALS = 30;

/** Longer than any test file runs. */
const WATCH_TIMEOUT_MS = 30 * 60_000;
