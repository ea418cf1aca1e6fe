import type { ListOptions, Page, Resource, WatchEvent, WatchOptions } from './api.ts';
import { failure, watchError } from './api-error.ts';
import { fieldsOf, itemsOf, textOf } from './api-json.ts';
import type { Call } from './call.ts';
import { PAGE_TIMEOUT_MS, type Transport } from './transport.ts';

/** All objects of one kind in a cluster, followed through the API server. */
export class RestResource<T> implements Resource<T> {
  readonly #transport: Transport;
  readonly #resource: string;
  readonly #path: string;
  readonly #project: (json: unknown) => T;

  /** `path`: the collection's; `project`: reads one object, or throws `ApiError`. */
  constructor(transport: Transport, resource: string, path: string, project: (json: unknown) => T) {
    this.#transport = transport;
    this.#resource = resource;
    this.#path = path;
    this.#project = project;
  }

  async list(options: ListOptions): Promise<Page<T>> {
    // Without a resourceVersion the first page is a consistent read; the token carries its version on.
    const json = await this.#transport.readPage({
      verb: 'list',
      resource: this.#resource,
      path: this.#path,
      query: {
        limit: String(options.limit),
        ...(options.continue === undefined ? {} : { continue: options.continue }),
      },
      signal: options.signal,
    });
    const { metadata, items } = fieldsOf(json);
    const { resourceVersion, continue: token } = fieldsOf(metadata);
    return {
      items: itemsOf(items).map(this.#project),
      resourceVersion: textOf(resourceVersion),
      ...(textOf(token) === '' ? {} : { continue: textOf(token) }),
    };
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const call: Call = {
      verb: 'watch',
      resource: this.#resource,
      path: this.#path,
      query: {
        watch: '1',
        allowWatchBookmarks: 'true',
        resourceVersion: options.resourceVersion,
        timeoutSeconds: String(options.timeoutSeconds),
      },
      signal: options.signal,
    };
    // The server ends the watch; the margin is for one that no longer does.
    const timeoutMs = options.timeoutSeconds * 1000 + PAGE_TIMEOUT_MS;
    for await (const line of this.#transport.lines(call, timeoutMs)) {
      yield this.#event(call, this.#transport.parse(call, line));
    }
  }

  #event(call: Call, json: unknown): WatchEvent<T> {
    const { type, object } = fieldsOf(json);
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
        return { kind: 'upsert', object: this.#project(object) };
      case 'DELETED':
        return { kind: 'delete', object: this.#project(object) };
      case 'BOOKMARK': {
        const { metadata } = fieldsOf(object);
        return { kind: 'bookmark', resourceVersion: textOf(fieldsOf(metadata)['resourceVersion']) };
      }
      case 'ERROR':
        throw watchError(call, this.#transport.host, object);
      default:
        throw failure(call, this.#transport.host, `the watch sent an event of unknown type ${String(type)}`);
    }
  }
}
