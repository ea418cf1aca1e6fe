import type { ListOptions, Page, Resource, WatchEvent, WatchOptions } from '#shared/kubernetes/api.ts';

/** An open watch, into which a test sends the events of the server. */
export class PlayedWatch<T> {
  readonly options: WatchOptions;
  readonly #events: WatchEvent<T>[] = [];
  #end: { readonly error?: Error } | undefined;
  #wake: () => void = () => undefined;

  constructor(options: WatchOptions) {
    this.options = options;
    options.signal.addEventListener('abort', () => this.end(), { once: true });
  }

  get isOpen(): boolean {
    return this.#end === undefined;
  }

  send(...events: readonly WatchEvent<T>[]): void {
    this.#events.push(...events);
    this.#wake();
  }

  /** Ends the watch as the server does, or breaks it with `error`. */
  end(error?: Error): void {
    this.#end ??= error ? { error } : {};
    this.#wake();
  }

  async *events(): AsyncGenerator<WatchEvent<T>, void, undefined> {
    for (;;) {
      const [event] = this.#events.splice(0, 1);
      if (event) yield event;
      else if (this.#end?.error) throw this.#end.error;
      else if (this.#end) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** A kind of object whose lists a function answers. A test sends events into its watches. */
export class PlayedResource<T> implements Resource<T> {
  readonly listed: ListOptions[] = [];
  readonly watched: PlayedWatch<T>[] = [];
  answer: (options: ListOptions) => Page<T> | Promise<Page<T>>;

  constructor(answer: (options: ListOptions) => Page<T> | Promise<Page<T>>) {
    this.answer = answer;
  }

  async list(options: ListOptions): Promise<Page<T>> {
    this.listed.push(options);
    return this.answer(options);
  }

  watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const watch = new PlayedWatch<T>(options);
    this.watched.push(watch);
    return watch.events();
  }
}
