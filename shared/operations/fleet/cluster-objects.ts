import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import type { Verb } from '#shared/kubernetes/http/call.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { Transport } from '#shared/kubernetes/http/transport.ts';

type Query = Readonly<Record<string, string>>;
/** An operation of a JSON patch (RFC 6902). */
export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'test';
  readonly path: string;
  readonly value: unknown;
}

const PAGE_SIZE = 500;

/** Reads and writes a cluster's objects in the API server's JSON. Every method rejects with `ApiError`. */
export class ClusterObjects {
  readonly connection: Connection;
  readonly #transport: Transport;

  constructor(connection: Connection) {
    this.connection = connection;
    this.#transport = new Transport(connection);
  }

  get host(): string {
    return this.#transport.host;
  }

  /** Milliseconds by which the API server's clock is ahead of the local clock. 0: not known. */
  get skewMs(): number {
    return this.#transport.skewMs ?? 0;
  }

  /** Reads an object. `undefined`: the object, or its kind, doesn't exist. */
  async get(path: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    try {
      return fieldsOf(await this.#call('get', path));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Reads a response that isn't JSON. */
  text(path: string): Promise<string> {
    return this.#transport.readText({ verb: 'get', resource: path, path, answer: 'list' });
  }

  async *list(path: string, query: Query = {}): AsyncGenerator<Readonly<Record<string, unknown>>> {
    let next = '';
    do {
      const page = { ...query, limit: String(PAGE_SIZE), ...(next ? { continue: next } : {}) };
      const call = { verb: 'list', resource: path, path, query: page } as const;
      const { metadata, items } = await this.#transport.readItems(call, fieldsOf);
      yield* items;
      next = textOf(fieldsOf(metadata)['continue']);
    } while (next !== '');
  }

  /** The fields of `object` are owned by `manager`. Upstream: server-side apply. */
  async apply(path: string, object: object, manager: string): Promise<void> {
    await this.#call('patch', path, {
      query: { fieldManager: manager, force: 'true' },
      body: object,
      contentType: 'application/apply-patch+yaml',
    });
  }

  /** Creates an object by a dry run. */
  async tryCreate(path: string, body: object): Promise<unknown> {
    return this.#call('create', path, { query: { dryRun: 'All' }, body });
  }

  async create(path: string, body: object): Promise<unknown> {
    return this.#call('create', path, { body });
  }

  /** The changed fields are owned by `fieldManager`. */
  async patch(path: string, body: readonly PatchOperation[], fieldManager: string): Promise<void> {
    await this.#call('patch', path, {
      query: { fieldManager },
      body,
      contentType: 'application/json-patch+json',
    });
  }

  /** Deletes an object. False: it didn't exist. */
  async remove(path: string): Promise<boolean> {
    try {
      await this.#call('delete', path);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  }

  close(): void {
    this.#transport.close();
  }

  #call(
    verb: Verb,
    path: string,
    more: { readonly query?: Query; readonly body?: object; readonly contentType?: string } = {},
  ): Promise<unknown> {
    return this.#transport.read({ verb, resource: path, path, ...more });
  }
}
