import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { ListOptions, Page, Resource, WatchEvent, WatchOptions } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Chronicle, Happening } from './chronicle.ts';
import type { Process, Surroundings } from './process.ts';

const BOOKMARK_MS = 60_000;
/** The age of changes that the server has forgotten. */
const COMPACTED_MS = 5 * 60_000;
/**
 * The time for which a watch is silent until the server reports that its version is too old, and the longest wait of a relay
 * afterwards.
 */
const MAX_GAP_MS = 10_000;
/**
 * The length of an outage beyond which a load balancer in front of the server accepts requests, and the time for which it lets
 * them wait.
 */
const LONG_OUTAGE_MS = 60 * 60_000;
const UNANSWERED_MS = 60_000;

/** The content of a resource, and its listeners. */
export interface Shown<T extends { readonly resourceVersion: string }> {
  readonly cluster: ClusterName;
  readonly chronicle: Chronicle<T>;
  /** The cluster's version, which all kinds share. */
  readonly version: () => string;
  readonly nodeOf: (object: T) => NodeName | undefined;
  /** Performs a request of the process, and returns its answer. */
  readonly request: <Answer>(perform: () => Answer) => Promise<Answer>;
  /** Called when all objects, or those on a node, are read, and when a change is delivered. */
  readonly onRead: (node: NodeName | undefined) => void;
  readonly onSent: (happening: Happening<T>) => void;
}

/**
 * One kind of object as a process follows it on an API server. Depending on the weather, cached lists are stale, and watches lag,
 * break, fall silent and lose their position.
 */
export class SimulatedResource<T extends { readonly resourceVersion: string }> implements Resource<T> {
  readonly #shown: Shown<T>;
  readonly #process: Process;
  readonly #surroundings: Surroundings;

  constructor(shown: Shown<T>, process: Process, surroundings: Surroundings) {
    this.#shown = shown;
    this.#process = process;
    this.#surroundings = surroundings;
  }

  /** Returns everything in one page: clusters are small here. */
  list({ onNode, notOlderThan, signal }: ListOptions): Promise<Page<T>> {
    const { chronicle, version, onRead } = this.#shown;
    const { weather } = this.#surroundings;
    return this.#request(signal, () => {
      if (notOlderThan !== undefined && weather.gap()) throw behind();
      const length = notOlderThan === undefined ? chronicle.length : this.#cached(notOlderThan);
      onRead(onNode);
      return {
        items: this.#on(onNode, chronicle.liveAt(length)),
        resourceVersion:
          length === chronicle.length ? version() : (chronicle.at(length - 1)?.object.resourceVersion ?? '1'),
      };
    });
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>> {
    const { resourceVersion = '', initial = false, onNode, follows, timeoutSeconds, signal } = options;
    const { chronicle, nodeOf, onSent } = this.#shown;
    const { clock } = this.#surroundings;
    const gracePeriodEndedAt = clock.now() + timeoutSeconds * 1000;
    let position = initial ? yield* this.#begin(onNode, signal) : await this.#resume(resourceVersion, signal);
    let sentAt = clock.now();
    while (!signal.aborted && clock.now() < gracePeriodEndedAt) {
      await this.#beAway(signal);
      const next = chronicle.at(position);
      if (!next && clock.now() >= sentAt + BOOKMARK_MS) {
        yield { kind: 'bookmark', resourceVersion: this.#shown.version() };
        sentAt = clock.now();
      } else if (!next) {
        await this.#sleep(Math.min(sentAt + BOOKMARK_MS, gracePeriodEndedAt), signal, (wake) =>
          chronicle.listen(wake),
        );
      } else {
        const node = nodeOf(next.object);
        if (onNode === undefined || node === onNode) {
          await this.#lag(next.at, signal);
          if (signal.aborted) return;
          sentAt = clock.now();
          if (node !== undefined && follows?.(node) === false) {
            yield { kind: 'passed', resourceVersion: next.object.resourceVersion };
          } else {
            onSent(next);
            yield { kind: next.kind, object: next.object };
          }
        }
        position += 1;
      }
    }
  }

  /** Yields all objects; returns the number of changes up to then. Older servers do not support this, and some break off. */
  async *#begin(onNode: NodeName | undefined, signal: AbortSignal): AsyncGenerator<WatchEvent<T>, number> {
    const { chronicle, version, onRead } = this.#shown;
    const { weather } = this.#surroundings;
    const begun = await this.#request(signal, () => {
      if (!weather.climate.streamedLists)
        throw new ApiError('sendInitialEvents is forbidden', 422, 'Invalid');
      onRead(onNode);
      const { length } = chronicle;
      return { length, version: version(), live: this.#on(onNode, chronicle.liveAt(length)) };
    });
    for (const object of begun.live) {
      if (weather.gap()) throw new ApiError('the connection was reset', 0);
      yield { kind: 'upsert', object };
    }
    yield { kind: 'bookmark', resourceVersion: begun.version, initialEnd: true };
    return begun.length;
  }

  /** Returns the number of changes that a version includes. */
  async #resume(version: string, signal: AbortSignal): Promise<number> {
    const { chronicle } = this.#shown;
    const { clock } = this.#surroundings;
    return this.#request(signal, () => {
      const length = chronicle.lengthOf(version);
      if ((chronicle.at(length)?.at ?? Infinity) < clock.now() - COMPACTED_MS) throw expired();
      return length;
    });
  }

  /** Waits until a change is delivered. Sometimes it is not delivered: the watch breaks, or has lost its position. */
  async #lag(at: EpochMs, signal: AbortSignal): Promise<void> {
    const { clock, random, weather, disturbances } = this.#surroundings;
    if (weather.gap()) {
      const lost = random.chance(0.5);
      if (lost) await this.#sleep(clock.now() + random.between(0, MAX_GAP_MS), signal);
      disturbances.note('relay', this.#shown.cluster, at, clock.now() + MAX_GAP_MS);
      throw lost ? expired() : new ApiError('the connection was reset', 0);
    }
    const lagMs = random.between(0, weather.climate.watchLagMs);
    if (at + lagMs > clock.now()) await this.#sleep(at + lagMs, signal);
    await this.#beAway(signal);
  }

  /** Waits until an unavailable server is noticed; if the server is back soon, the watch just continues. */
  async #beAway(signal: AbortSignal): Promise<void> {
    const { clock, weather } = this.#surroundings;
    if (this.#process.dead) await new Promise<never>(() => undefined);
    const outage = weather.outageOf(this.#shown.cluster);
    if (!outage) return;
    const silenceMs = outage.to - outage.from > LONG_OUTAGE_MS ? UNANSWERED_MS : outage.silenceMs;
    await this.#sleep(Math.min(clock.now() + silenceMs, outage.to), signal);
    if (weather.outageOf(this.#shown.cluster)) throw new ApiError('the server does not answer', 0);
  }

  /** Returns the number of changes that the answering server has seen: at least those that a version includes. */
  #cached(version: string): number {
    const { chronicle } = this.#shown;
    const { clock, random, weather } = this.#surroundings;
    const known = chronicle.lengthAt(clock.now() - random.between(0, weather.climate.watchLagMs));
    return Math.max(known, chronicle.lengthOf(version), 1);
  }

  #on(node: NodeName | undefined, objects: readonly T[]): readonly T[] {
    return node === undefined ? objects : objects.filter((object) => this.#shown.nodeOf(object) === node);
  }

  /** Sleeps until then, or until the signal aborts, or until `listens` calls back. */
  async #sleep(
    until: EpochMs,
    signal: AbortSignal,
    listens: (wake: () => void) => () => void = () => () => undefined,
  ): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const alarm = this.#surroundings.clock.setAlarm(until, wake);
    const unlisten = listens(wake);
    signal.addEventListener('abort', wake, { once: true });
    await promise;
    alarm.off = true;
    unlisten();
    signal.removeEventListener('abort', wake);
  }

  /** Performs a request; rejects when the signal aborts. */
  async #request<Answer>(signal: AbortSignal, perform: () => Answer): Promise<Answer> {
    await this.#beAway(signal);
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await Promise.race([this.#shown.request(perform), aborted.promise]);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }
}

const expired = () => new ApiError('the version is too old', 410, 'Expired');
const behind = () =>
  new ApiError('the version is too large', 504, 'Timeout', 1, { causes: ['ResourceVersionTooLarge'] });
