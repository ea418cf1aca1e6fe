import type { ListOptions, Page, Resource, WatchEvent, WatchOptions } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';

interface Change<T> {
  readonly version: number;
  readonly event: WatchEvent<T>;
}

/** Objects of one kind and what happened to them, as an API server shows both. */
export class FakeResource<T extends { readonly resourceVersion: string }> implements Resource<T> {
  /** What there is, by its key. */
  readonly live = new Map<string, T>();
  readonly #present: () => number;
  #changes: Change<T>[] = [];
  #forgottenUpTo = 0;
  readonly #listeners = new Set<() => void>();
  /** What is left of lists, by their tokens. */
  readonly #rests = new Map<string, readonly T[]>();

  /** `present`: the cluster's version, which all kinds share. */
  constructor(present: () => number) {
    this.#present = present;
  }

  put(key: string, object: T): T {
    this.live.set(key, object);
    this.#tell({ kind: 'upsert', object });
    return object;
  }

  /** A deletion is a version, too. */
  remove(key: string, resourceVersion: string): T | undefined {
    const found = this.live.get(key);
    if (!found) return undefined;
    this.live.delete(key);
    this.#tell({ kind: 'delete', object: { ...found, resourceVersion } });
    return found;
  }

  /** Makes every version and token given out so far too old, as compaction does. */
  forget(): void {
    this.#forgottenUpTo = this.#present() + 1;
    this.#changes = [];
    this.#rests.clear();
  }

  async list({ limit, continue: token }: ListOptions): Promise<Page<T>> {
    const rest = token === undefined ? [...this.live.values()] : this.#rests.get(token);
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

  async *watch({ resourceVersion, timeoutSeconds, signal }: WatchOptions): AsyncGenerator<WatchEvent<T>> {
    let heard = Number(resourceVersion);
    if (heard < this.#forgottenUpTo) throw expired();
    const over = AbortSignal.any([signal, AbortSignal.timeout(timeoutSeconds * 1000)]);
    while (!over.aborted) {
      const { promise: told, resolve: wake } = Promise.withResolvers<void>();
      this.#listeners.add(wake);
      over.addEventListener('abort', () => wake(), { once: true });
      try {
        const news = this.#changes.filter(({ version }) => version > heard);
        heard = this.#present();
        for (const { event } of news) yield event;
        yield { kind: 'bookmark', resourceVersion: String(heard) };
        await told;
      } finally {
        this.#listeners.delete(wake);
      }
    }
  }

  #tell(event: WatchEvent<T>): void {
    this.#changes.push({ version: this.#present(), event });
    for (const wake of this.#listeners) wake();
  }
}

const expired = () => new ApiError('the version is too old', 410, 'Expired');
