import { ApiError, UNKNOWN_API } from './http/api-error.ts';
import { fieldsOf, textOf } from './http/api-json.ts';
import type { Call } from './http/call.ts';
import type { Transport } from './http/transport.ts';
import type { KubernetesObject, Objects } from './objects.ts';

/** Objects on a page of a list: as many of etcd's largest objects (1.5 MiB) as a response may contain. */
const PAGE = 20;

export interface ObjectsPlace {
  /** The group with its version: `taintward.dev/v1`. */
  readonly group: string;
  /** The plural name, as in a Role. */
  readonly resource: string;
  readonly namespace: string;
}

export class RestObjects implements Objects {
  readonly #transport: Transport;
  readonly #resource: string;
  readonly #namespace: string;
  readonly #path: string;

  constructor(transport: Transport, { group, resource, namespace }: ObjectsPlace) {
    this.#transport = transport;
    this.#resource = resource;
    this.#namespace = namespace;
    const root = group.includes('/') ? `/apis/${group}` : `/api/${group}`;
    this.#path = `${root}/namespaces/${encodeURIComponent(namespace)}/${resource}`;
  }

  async get(name: string): Promise<unknown> {
    return orUndefined([404], this.#transport.read({ verb: 'get', ...this.#one(name) }));
  }

  async *list(labels: Readonly<Record<string, string>> = {}): AsyncGenerator<unknown, void, undefined> {
    const selector = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
    const query = {
      limit: String(PAGE),
      ...(selector.length === 0 ? {} : { labelSelector: selector.join(',') }),
    };
    let token = '';
    do {
      const call = {
        verb: 'list',
        resource: this.#resource,
        object: `in ${this.#namespace}`,
        path: this.#path,
        query: token === '' ? query : { ...query, continue: token },
      } as const;
      const { metadata, items } = await this.#transport.readItems(call, (item) => item);
      yield* items;
      token = textOf(fieldsOf(metadata)['continue']);
    } while (token !== '');
  }

  async create(object: KubernetesObject): Promise<unknown> {
    const call = {
      ...this.#one(object.metadata.name),
      verb: 'create',
      path: this.#path,
      body: object,
    } as const;
    return orUndefined([409], this.#transport.read(call));
  }

  async replace(object: KubernetesObject): Promise<unknown> {
    // A removed object is not found, or briefly conflicts with the UID that it had.
    const call = { ...this.#one(object.metadata.name), verb: 'update', body: object } as const;
    return orUndefined([404, 409], this.#transport.read(call));
  }

  async remove(name: string, resourceVersion: string): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { resourceVersion } };
    await orUndefined([404, 409], this.#transport.perform({ ...this.#one(name), verb: 'delete', body }));
  }

  #one(name: string): Pick<Call, 'resource' | 'object' | 'path'> {
    return {
      resource: this.#resource,
      object: `${this.#namespace}/${name}`,
      path: `${this.#path}/${encodeURIComponent(name)}`,
    };
  }
}

async function orUndefined<T>(statuses: readonly number[], answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    // A server that does not serve the kind, for example while it starts, proves nothing about the object.
    const isAnswer = error instanceof ApiError && !error.causes.includes(UNKNOWN_API);
    if (isAnswer && statuses.includes(error.status)) return undefined;
    throw error;
  }
}
