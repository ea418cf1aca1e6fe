import { setTimeout as delay } from 'node:timers/promises';
import type { NodeName } from '#shared/eviction/identity.ts';
import type {
  ListOptions,
  LiveNode,
  LivePod,
  Page,
  Resource,
  WatchEvent,
  WatchOptions,
} from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { pause } from '#shared/time/pause.ts';

type Kind = 'nodes' | 'pods';
type Live = LiveNode | LivePod;

/** One write: the objects under its key before and after it. Without both it is of another kind. */
interface Write {
  readonly version: number;
  readonly kind?: Kind;
  readonly key: string;
  readonly before?: Live | undefined;
  readonly after?: Live | undefined;
}

/** The frequencies of faults, from 0 to 1 of all cases, and delays. */
export interface Weather {
  /** A request is rejected or times out. */
  readonly refused: number;
  /** A watch ends regularly after its next event, loses an event and breaks, or loses an event and falls silent. */
  readonly cut: number;
  readonly broken: number;
  readonly silent: number;
  /** The maximum transit time of a request, of its response, and of an event. */
  readonly wayMs: number;
  /** The maximum lag of a server's cache. */
  readonly lagMs: number;
}

export const CALM: Weather = { refused: 0, cut: 0, broken: 0, silent: 0, wayMs: 20, lagMs: 20 };

/** A request for pods that reached a server. */
export interface PodRequest {
  readonly verb: 'list' | 'watch';
  readonly onNode: NodeName | undefined;
}

const BOOKMARK_MS = 60_000;
/** The time that a server waits for its cache to reach a requested version. */
const FRESH_WITHIN_MS = 3_000;
const TIMEOUT_MS = 30_000;

interface Random {
  next(): number;
  chance(probability: number): boolean;
}

/**
 * The API servers of one cluster, with one etcd and one version for all kinds. Each server has a cache of its own that
 * lags, from which it answers all watches and those lists that do not request the newest version. Its history begins
 * where its cache was filled (410 before that). The etcd can be restored to an older state, from which versions count
 * on.
 */
export class FakeApiServers {
  readonly skews = [];
  readonly #random: Random;
  readonly #writes: Write[] = [];
  #first: ReadonlyMap<string, Live> = new Map();
  #firstVersion: number;
  #version: number;
  readonly #live = new Map<string, Live>();
  readonly #servers: Server[];
  /** Pages that were not requested yet, by their tokens. */
  readonly #rests = new Map<string, { readonly version: number; readonly items: readonly Live[] }>();
  readonly #closing = new AbortController();
  weather: Weather = CALM;
  readonly podRequests: PodRequest[] = [];
  #podLists = 0;
  /** The maximum number of concurrent lists of a node's pods. */
  mostPodLists = 0;
  /** The watches of pods that servers serve, by node; undefined: of all nodes. */
  readonly podWatches = new Map<object, NodeName | undefined>();
  readonly nodes: Resource<LiveNode>;
  readonly pods: Resource<LivePod>;

  /** `streaming`: the number of the `servers` that stream lists. */
  constructor(
    random: Random,
    {
      servers,
      streaming,
      version,
    }: { readonly servers: number; readonly streaming: number; readonly version: number },
  ) {
    this.#random = random;
    this.#version = version;
    this.#firstVersion = version;
    this.#servers = Array.from(
      { length: servers },
      (_, index) => new Server(this.#cacheNow(), index < streaming),
    );
    this.nodes = this.#resource<LiveNode>('nodes');
    this.pods = this.#resource<LivePod>('pods');
    for (const server of this.#servers) void this.#bookmarking(server);
  }

  close(): void {
    this.#closing.abort();
  }

  get version(): number {
    return this.#version;
  }

  get liveNodes(): readonly LiveNode[] {
    return this.#all('nodes', this.#live) as LiveNode[];
  }

  get livePods(): readonly LivePod[] {
    return this.#all('pods', this.#live) as LivePod[];
  }

  putNode(node: Omit<LiveNode, 'resourceVersion'>): void {
    this.#write('nodes', node.name, node as LiveNode);
  }

  removeNode(name: NodeName): void {
    this.#write('nodes', name, undefined);
  }

  putPod(pod: Omit<LivePod, 'resourceVersion'>): void {
    this.#write('pods', pod.name, pod as LivePod);
  }

  removePod(name: string): void {
    this.#write('pods', name, undefined);
  }

  /** Writes an object of another kind, for example a lease. */
  writeOther(): void {
    this.#append({ key: '' });
  }

  /** Restarts one server with an empty history and a fresh cache; its connections break. */
  restart(index: number): void {
    const server = this.#servers[index];
    if (!server) return;
    server.restart(this.#cacheNow());
  }

  /** Expires the tokens of pages, and the history of all servers. */
  compact(): void {
    this.#rests.clear();
    for (const server of this.#servers) server.forget();
  }

  /** Restores the etcd to the state of `versionsAgo` versions ago, but not before the first; all servers restart. */
  restore(versionsAgo: number): void {
    const version = Math.max(this.#firstVersion, this.#version - versionsAgo);
    this.#version = version;
    while ((this.#writes.at(-1)?.version ?? 0) > version) this.#writes.pop();
    this.#live.clear();
    for (const [key, object] of this.#first) this.#live.set(key, object);
    for (const write of this.#writes) apply(write, this.#live);
    this.#rests.clear();
    for (const server of this.#servers) server.restart(this.#cacheNow());
  }

  #cacheNow(): Cache {
    return { version: this.#version, live: new Map(this.#live) };
  }

  #write(kind: Kind, name: string, object: Live | undefined): void {
    const key = `${kind}/${name}`;
    const before = this.#live.get(key);
    if (!before && !object) return;
    const after = object && { ...object, resourceVersion: String(this.#version + 1) };
    this.#append({ kind, key, before, after });
  }

  #append(write: Omit<Write, 'version'>): void {
    this.#version += 1;
    const written = { ...write, version: this.#version };
    this.#writes.push(written);
    apply(written, this.#live);
    for (const server of this.#servers) void this.#reach(server, written);
  }

  /** Adds a write to a server's cache, after all earlier writes. */
  async #reach(server: Server, write: Write): Promise<void> {
    const { incarnation } = server;
    await delay(this.#random.next() * this.weather.lagMs);
    if (server.incarnation === incarnation) server.take(this.#writes, write.version);
  }

  async #bookmarking(server: Server): Promise<void> {
    while (!this.#closing.signal.aborted) {
      await pause(BOOKMARK_MS, this.#closing.signal);
      server.bookmark();
    }
  }

  #resource<T extends Live>(kind: Kind): Resource<T> {
    return {
      list: (options) => this.#counted(kind, options) as Promise<Page<T>>,
      watch: (options) => this.#watch(kind, options) as AsyncGenerator<WatchEvent<T>>,
    };
  }

  async #counted(kind: Kind, options: ListOptions): Promise<Page<Live>> {
    const counts = kind === 'pods' && options.onNode !== undefined;
    if (counts) this.mostPodLists = Math.max(this.mostPodLists, ++this.#podLists);
    try {
      return await this.#list(kind, options);
    } finally {
      if (counts) this.#podLists -= 1;
    }
  }

  async #list(kind: Kind, options: ListOptions): Promise<Page<Live>> {
    const server = await this.#arrive(kind, 'list', options);
    const { incarnation } = server;
    const { onNode, notOlderThan, limit = Number.POSITIVE_INFINITY, continue: token, signal } = options;
    let page: Page<Live>;
    if (token !== undefined) {
      const rest = this.#rests.get(token);
      if (!rest) throw expired();
      page = this.#page(rest.items, rest.version, limit);
    } else if (notOlderThan === undefined) {
      page = this.#page(this.#all(kind, this.#live, onNode), this.#version, limit);
    } else {
      await server.fresh(Number(notOlderThan), signal);
      // Lists from the cache are not paged.
      page = { items: this.#all(kind, server.live, onNode), resourceVersion: String(server.version) };
    }
    await this.#way(signal);
    if (server.incarnation !== incarnation) throw reset();
    return page;
  }

  #page(items: readonly Live[], version: number, limit: number): Page<Live> {
    const rest = items.slice(limit);
    const token = `${version}/${rest.length}/${this.#rests.size}`;
    if (rest.length > 0) this.#rests.set(token, { version, items: rest });
    return {
      items: items.slice(0, limit),
      resourceVersion: String(version),
      ...(rest.length > 0 ? { continue: token } : {}),
    };
  }

  async *#watch(kind: Kind, options: WatchOptions): AsyncGenerator<WatchEvent<Live>> {
    const { initial, onNode, resourceVersion, signal, timeoutSeconds } = options;
    const ending = new AbortController();
    const end = setTimeout(() => ending.abort(), timeoutSeconds * 1000);
    const over = AbortSignal.any([signal, ending.signal]);
    const me = {};
    try {
      const server = await this.#arrive(kind, 'watch', options);
      const { incarnation } = server;
      if (initial && !server.streams) throw new ApiError('sendInitialEvents is forbidden', 422, 'Invalid');
      if (kind === 'pods') this.podWatches.set(me, onNode);
      options.opened?.();
      let seen = Number(resourceVersion);
      if (initial) {
        await server.fresh(this.#version, signal);
        const items = this.#all(kind, server.live, onNode);
        seen = server.version;
        for (const object of items) {
          if (this.#random.chance(this.weather.cut / 10)) return;
          if (this.#random.chance(this.weather.broken / 10)) throw reset();
          if (this.#random.chance(0.1)) await this.#way(over);
          if (over.aborted) return;
          yield { kind: 'upsert', object };
        }
        yield { kind: 'bookmark', resourceVersion: String(seen), initialEnd: true };
      }
      const sent = { version: seen, bookmarks: server.bookmarks };
      while (!over.aborted) {
        if (seen < server.begins) throw expired();
        for (const write of server.since(seen)) {
          seen = write.version;
          const event = write.kind === kind ? this.#event(write, options) : undefined;
          if (!event) continue;
          sent.version = seen;
          yield event;
          if (over.aborted) return;
        }
        if (server.owesBookmark(sent)) {
          sent.version = seen;
          yield { kind: 'bookmark', resourceVersion: String(seen) };
        }
        sent.bookmarks = server.bookmarks;
        await server.news(seen, sent, over);
        if (server.incarnation !== incarnation) {
          if (!this.#random.chance(this.weather.silent)) throw reset();
          await aborted(over);
          return;
        }
        if (this.#random.chance(this.weather.cut)) return;
        if (this.#random.chance(this.weather.broken)) throw reset();
        if (this.#random.chance(this.weather.silent)) {
          await aborted(signal);
          return;
        }
        await this.#way(over);
      }
    } catch (error) {
      if (!over.aborted) throw error;
    } finally {
      clearTimeout(end);
      this.podWatches.delete(me);
    }
  }

  /** Returns the event of a watch with this selector. */
  #event({ before, after, version }: Write, { onNode, follows }: WatchOptions): WatchEvent<Live> | undefined {
    const matches = (object: Live | undefined) =>
      object && (onNode === undefined || nodeOf(object) === onNode);
    if (!matches(before) && !matches(after)) return undefined;
    // An object that leaves a selection is reported in its state within the selection.
    const object = matches(after) ? after : before;
    if (!object) return undefined;
    const node = nodeOf(object);
    // Some lines cannot be skipped unread.
    if (follows && node !== undefined && !follows(node) && !this.#random.chance(0.1)) {
      return { kind: 'passed', resourceVersion: String(version) };
    }
    return object === after
      ? { kind: 'upsert', object }
      : { kind: 'delete', object: { ...object, resourceVersion: String(version) } };
  }

  /** Resolves with the server that receives the request. */
  async #arrive(
    kind: Kind,
    verb: 'list' | 'watch',
    { onNode, signal }: Pick<ListOptions, 'onNode' | 'signal'>,
  ): Promise<Server> {
    if (kind === 'pods') this.podRequests.push({ verb, onNode });
    await this.#way(signal);
    if (this.#random.chance(this.weather.refused)) {
      const refusal = this.#random.next();
      if (refusal < 0.3) throw new ApiError('too many requests', 429, 'TooManyRequests', 1);
      if (refusal < 0.5) throw new ApiError('internal error', 500, 'InternalError');
      if (refusal < 0.8) throw new ApiError('unavailable', 503, 'ServiceUnavailable');
      await pause(TIMEOUT_MS, signal);
      throw new ApiError('the call timed out', 0);
    }
    const server = this.#servers[Math.floor(this.#random.next() * this.#servers.length)];
    if (!server) throw new Error('there is no server');
    return server;
  }

  async #way(signal: AbortSignal): Promise<void> {
    await pause(this.#random.next() * this.weather.wayMs, signal);
    if (signal.aborted) throw new ApiError('the call was aborted', 0);
  }

  #all(kind: Kind, live: ReadonlyMap<string, Live>, onNode?: NodeName): Live[] {
    const found: Live[] = [];
    for (const [key, object] of live) {
      if (key.startsWith(kind) && (onNode === undefined || nodeOf(object) === onNode)) found.push(object);
    }
    return found;
  }
}

/** The last version and bookmark that one watch received. */
interface Sent {
  readonly version: number;
  readonly bookmarks: number;
}

interface Cache {
  readonly version: number;
  readonly live: Map<string, Live>;
}

/** One API server: a cache, the changes since it was filled, and the watches that wait for more. */
class Server {
  readonly streams: boolean;
  live: Map<string, Live>;
  version: number;
  /** The history begins at this version. */
  begins: number;
  /** Counts its restarts. */
  incarnation = 0;
  /** Counts the times at which watches must receive a bookmark. */
  bookmarks = 0;
  #writes: Write[] = [];
  readonly #waiting = new Set<() => void>();

  constructor({ version, live }: Cache, streams: boolean) {
    this.version = version;
    this.begins = version;
    this.live = live;
    this.streams = streams;
  }

  restart({ version, live }: Cache): void {
    this.version = version;
    this.begins = version;
    this.live = live;
    this.#writes = [];
    this.incarnation += 1;
    this.#wake();
  }

  forget(): void {
    this.#writes = [];
    this.begins = this.version;
  }

  take(writes: readonly Write[], upTo: number): void {
    if (upTo <= this.version) return;
    const from = writes.findLastIndex(({ version }) => version <= this.version) + 1;
    for (let at = from; at < writes.length; at++) {
      const write = writes[at];
      if (!write || write.version > upTo) break;
      apply(write, this.live);
      this.#writes.push(write);
    }
    this.version = upTo;
    this.#wake();
  }

  bookmark(): void {
    this.bookmarks += 1;
    this.#wake();
  }

  /** Returns the changes after a version. */
  since(after: number): readonly Write[] {
    return this.#writes.slice(this.#writes.findLastIndex(({ version }) => version <= after) + 1);
  }

  /** A bookmark without a new version is left out. */
  owesBookmark(sent: Sent): boolean {
    return this.bookmarks > sent.bookmarks && this.version > sent.version;
  }

  /** Resolves when there is an event to send, or when the watch or the server has ended. */
  async news(seen: number, sent: Sent, signal: AbortSignal): Promise<void> {
    const { incarnation } = this;
    const isQuiet = () => this.version <= seen && !this.owesBookmark(sent);
    while (!signal.aborted && incarnation === this.incarnation && isQuiet()) await this.#woken(signal);
  }

  /** Resolves when its cache has reached a version. */
  async fresh(version: number, signal: AbortSignal): Promise<void> {
    if (this.version >= version) return;
    const patience = new AbortController();
    const impatient = setTimeout(() => patience.abort(), FRESH_WITHIN_MS);
    const over = AbortSignal.any([signal, patience.signal]);
    while (this.version < version && !over.aborted) await this.#woken(over);
    clearTimeout(impatient);
    if (this.version < version) {
      throw new ApiError('Too large resource version', 504, 'Timeout', 1, {
        causes: ['ResourceVersionTooLarge'],
      });
    }
  }

  async #woken(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const wake = () => resolve();
    signal.addEventListener('abort', wake, { once: true });
    await promise;
    signal.removeEventListener('abort', wake);
    this.#waiting.delete(resolve);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

function apply({ key, after, kind }: Write, live: Map<string, Live>): void {
  if (kind === undefined) return;
  if (after) live.set(key, after);
  else live.delete(key);
}

const nodeOf = (object: Live): NodeName | undefined => ('node' in object ? object.node : undefined);

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

const reset = () => new ApiError('the connection was reset', 0);
const expired = () => new ApiError('too old resource version', 410, 'Expired');
