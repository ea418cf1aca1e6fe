import type { NodeName } from '#shared/eviction/identity.ts';
import type {
  Change as ChangeEvent,
  ListOptions,
  Page,
  Resource,
  WatchEvent,
  WatchOptions,
} from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';

interface Change<T> {
  readonly version: number;
  readonly event: ChangeEvent<T>;
}

/** Objects of one kind and their changes, as an API server shows both. */
export class FakeResource<T extends { readonly resourceVersion: string }> implements Resource<T> {
  /** The present objects, by their keys. */
  readonly live = new Map<string, T>();
  readonly #present: () => number;
  readonly #nodeOf: (object: T) => NodeName | undefined;
  #changes: Change<T>[] = [];
  #forgottenUpTo = 0;
  readonly #listeners = new Set<() => void>();
  /** The rest of paged lists, by their tokens. */
  readonly #rests = new Map<string, readonly T[]>();

  /** `present`: the cluster's version, which all kinds share; `nodeOf`: the node that an object is bound to. */
  constructor(present: () => number, nodeOf: (object: T) => NodeName | undefined = () => undefined) {
    this.#present = present;
    this.#nodeOf = nodeOf;
  }

  put(key: string, object: T): T {
    this.live.set(key, object);
    this.#send({ kind: 'upsert', object });
    return object;
  }

  /** Removes an object, which creates a version, too. Returns the object with that version. */
  remove(key: string, resourceVersion: string): T | undefined {
    const found = this.live.get(key);
    if (!found) return undefined;
    this.live.delete(key);
    const gone = { ...found, resourceVersion };
    this.#send({ kind: 'delete', object: gone });
    return gone;
  }

  /** Makes every version and token so far too old, as compaction does. */
  forget(): void {
    this.#forgottenUpTo = this.#present() + 1;
    this.#changes = [];
    this.#rests.clear();
  }

  async list({
    limit = Number.POSITIVE_INFINITY,
    continue: token,
    ...options
  }: ListOptions): Promise<Page<T>> {
    const { notOlderThan = '0' } = options;
    if (Number(notOlderThan) > this.#present()) throw tooLarge();
    const rest = token === undefined ? this.#bound(options.onNode) : this.#rests.get(token);
    if (rest === undefined) throw expired();
    const [version] = token?.split('/') ?? [String(this.#present())];
    const left = rest.slice(limit);
    const next = `${version}/${left.length}`;
    this.#rests.set(next, left);
    return {
      items: rest.slice(0, limit),
      resourceVersion: version ?? '',
      ...(left.length > 0 ? { continue: next } : {}),
    };
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>> {
    const { resourceVersion, initial = false, onNode, timeoutSeconds, signal } = options;
    let position = initial ? this.#present() : Number(resourceVersion);
    if (position < this.#forgottenUpTo && !initial) throw expired();
    const over = AbortSignal.any([signal, AbortSignal.timeout(timeoutSeconds * 1000)]);
    if (initial) {
      for (const object of this.#bound(onNode)) yield { kind: 'upsert', object };
      yield { kind: 'bookmark', resourceVersion: String(position), initialEnd: true };
    }
    while (!over.aborted) {
      const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
      this.#listeners.add(wake);
      over.addEventListener('abort', () => wake(), { once: true });
      try {
        const news = this.#changes.filter(({ version }) => version > position);
        position = this.#present();
        for (const { event } of news) {
          if (onNode === undefined || this.#nodeOf(event.object) === onNode) yield this.#seen(event, options);
        }
        yield { kind: 'bookmark', resourceVersion: String(position) };
        await woken;
      } finally {
        this.#listeners.delete(wake);
      }
    }
  }

  #bound(node: NodeName | undefined): readonly T[] {
    const objects = [...this.live.values()];
    return node === undefined ? objects : objects.filter((object) => this.#nodeOf(object) === node);
  }

  #seen(event: Change<T>['event'], { follows }: WatchOptions): WatchEvent<T> {
    const node = this.#nodeOf(event.object);
    if (node === undefined || follows?.(node) !== false) return event;
    return { kind: 'passed', resourceVersion: event.object.resourceVersion };
  }

  #send(event: Change<T>['event']): void {
    this.#changes.push({ version: this.#present(), event });
    for (const wake of this.#listeners) wake();
  }
}

const expired = () => new ApiError('the version is too old', 410, 'Expired');
const tooLarge = () =>
  new ApiError('the version is too large', 504, 'Timeout', 1, { causes: ['ResourceVersionTooLarge'] });
