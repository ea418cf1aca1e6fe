import { defined } from '#shared/defined.ts';
import { type NodeName, nodeName } from '#shared/eviction/identity.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import type { ListOptions, Page, Resource, WatchEvent, WatchOptions } from './api.ts';
import { failure } from './http/api-error.ts';
import { fieldsOf, textOf } from './http/api-json.ts';
import type { Trim } from './http/bulk.ts';
import type { Call } from './http/call.ts';
import { KeptCount } from './http/json-structure.ts';
import { PAGE_TIMEOUT_MS, type Transport } from './http/transport.ts';

/** Upstream: `metav1.InitialEventsAnnotationKey`. */
const INITIAL_END = 'k8s.io/initial-events-end';
const NOT_OLDER_THAN = { resourceVersionMatch: 'NotOlderThan' };

interface ResourceReading<T> {
  /** Reads one object, or throws `ApiError`. */
  readonly project: (json: unknown) => T;
  /** Removes what `project` does not read. */
  readonly trim: Trim;
  /** Counts the values of an object. */
  readonly keeps: (object: T) => number;
}

/** All objects of one kind in a cluster, followed through the API server. */
export class RestResource<T> implements Resource<T> {
  readonly #transport: Transport;
  readonly #resource: string;
  readonly #path: string;
  readonly #reading: ResourceReading<T>;

  constructor(transport: Transport, resource: string, path: string, reading: ResourceReading<T>) {
    this.#transport = transport;
    this.#resource = resource;
    this.#path = path;
    this.#reading = reading;
  }

  async list(options: ListOptions): Promise<Page<T>> {
    const { limit, continue: token, onNode, notOlderThan } = options;
    const call: Call = {
      verb: 'list',
      resource: this.#resource,
      path: this.#path,
      // Without a `resourceVersion`, the first page is a consistent read; the token keeps its version.
      query: {
        ...(limit === undefined ? {} : { limit: String(limit) }),
        ...defined({ continue: token }),
        ...(onNode === undefined ? {} : { fieldSelector: boundTo(onNode) }),
        ...defined({ resourceVersion: notOlderThan }),
        // Some versions of the server reject a match with 0.
        ...(notOlderThan === undefined || notOlderThan === '0' ? {} : NOT_OLDER_THAN),
      },
      signal: options.signal,
    };
    const kept = new KeptCount();
    const project = (json: unknown): T => {
      const object = this.#reading.project(json);
      kept.add(this.#reading.keeps(object));
      return object;
    };
    const { metadata, items } = await this.#transport.readList(call, project, this.#reading.trim);
    const { resourceVersion, continue: next } = fieldsOf(metadata);
    return {
      items,
      resourceVersion: textOf(resourceVersion),
      ...(textOf(next) === '' ? {} : { continue: textOf(next) }),
    };
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const { resourceVersion, initial, onNode, follows, opened, timeoutSeconds } = options;
    const call: Call = {
      verb: 'watch',
      resource: this.#resource,
      path: this.#path,
      query: {
        watch: '1',
        allowWatchBookmarks: 'true',
        ...(initial ? { sendInitialEvents: 'true', ...NOT_OLDER_THAN } : {}),
        ...(onNode === undefined ? {} : { fieldSelector: boundTo(onNode) }),
        ...defined({ resourceVersion }),
        timeoutSeconds: String(timeoutSeconds),
      },
      signal: options.signal,
    };
    // The server ends the watch; the margin is for a server that no longer does.
    const timeoutMs = timeoutSeconds * 1000 + PAGE_TIMEOUT_MS;
    for await (const line of this.#transport.lines(call, timeoutMs, opened)) {
      const passed = follows && versionPassed(line, follows);
      if (passed !== undefined) yield { kind: 'passed', resourceVersion: passed };
      else yield this.#event(call, this.#transport.parseEvent(call, line, this.#reading.trim));
    }
  }

  #event(call: Call, json: unknown): WatchEvent<T> {
    const { type, object } = fieldsOf(json);
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
        return { kind: 'upsert', object: this.#reading.project(object) };
      case 'DELETED':
        return { kind: 'delete', object: this.#reading.project(object) };
      case 'BOOKMARK': {
        const { resourceVersion, annotations } = fieldsOf(fieldsOf(object)['metadata']);
        const isEnd = fieldsOf(annotations)[INITIAL_END] === 'true';
        return {
          kind: 'bookmark',
          resourceVersion: textOf(resourceVersion),
          ...(isEnd ? { initialEnd: true } : {}),
        };
      }
      case 'ERROR':
        throw this.#transport.watchError(call, object);
      default:
        throw failure(
          call,
          this.#transport.host,
          `the watch sent an event of unknown type "${escapeForDisplay(textOf(type), 50)}"`,
        );
    }
  }
}

const boundTo = (node: NodeName): string => `spec.nodeName=${node}`;

/** The API server's beginning of a pod event, in the order of its Go structs, without white space. */
const HEAD =
  /^\{"type":"(?:ADDED|MODIFIED|DELETED)","object":\{"kind":"Pod","apiVersion":"v1","metadata":\{"name":"[-a-z0-9.]+",(?:"generateName":"[-a-z0-9.]+",)?"namespace":"[-a-z0-9]+",(?:"selfLink":"[-a-z0-9./]*",)?"uid":"[-0-9a-zA-Z]+","resourceVersion":"([1-9][0-9]*)",/;

/** Longer than any head: two names of 253 characters, a namespace of 63, and a self link with both. */
const HEAD_BYTES = 1500;

const KEY = '"nodeName"';

const VALUE = /^:"([-a-z0-9.]+)"/;

/** Maximum length of a node's name, with its surroundings. */
const VALUE_BYTES = 260;

/**
 * The version of an event about a pod on an unfollowed node, unparsed; `undefined`: followed, or any doubt. Strings
 * escape quotation marks, so `"nodeName"` is a whole key or value: if it occurs once, followed by a name, the pod is
 * bound to that node, or to none.
 */
export function versionPassed(line: Buffer, follows: (node: NodeName) => boolean): string | undefined {
  const at = line.indexOf(KEY);
  if (at < 0 || line.indexOf(KEY, at + KEY.length) >= 0) return undefined;
  const [, name] = VALUE.exec(line.toString('latin1', at + KEY.length, at + KEY.length + VALUE_BYTES)) ?? [];
  if (name === undefined || follows(nodeName(name))) return undefined;
  return HEAD.exec(line.toString('latin1', 0, HEAD_BYTES))?.[1];
}
