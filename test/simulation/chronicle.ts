import { isNewer } from '#shared/engine/watch/list-pages.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A change of an object. `state`: the state of a node after the change, by its number in the truth. */
export interface Happening<T> {
  readonly kind: 'upsert' | 'delete';
  readonly object: T;
  readonly at: EpochMs;
  readonly state?: number;
}

/** The objects of one kind, and all their changes, in order. */
export class Chronicle<T extends { readonly resourceVersion: string }> {
  readonly #keyOf: (object: T) => string;
  readonly #all: Happening<T>[] = [];
  readonly #live = new Map<string, T>();
  readonly #listeners = new Set<() => void>();

  constructor(keyOf: (object: T) => string) {
    this.#keyOf = keyOf;
  }

  add(happening: Happening<T>): void {
    this.#all.push(happening);
    this.#perform(this.#live, happening);
    for (const listen of [...this.#listeners]) listen();
  }

  /** The number of changes. */
  get length(): number {
    return this.#all.length;
  }

  at(index: number): Happening<T> | undefined {
    return this.#all[index];
  }

  /** Returns the number of changes up to that time. */
  lengthAt(at: EpochMs): number {
    return this.#all.findLastIndex((each) => each.at <= at) + 1;
  }

  /** Returns the number of changes that a version includes. */
  lengthOf(version: string): number {
    return this.#all.findLastIndex(({ object }) => !isNewer(object.resourceVersion, version)) + 1;
  }

  /** Returns the objects after that number of changes. */
  liveAt(length: number): readonly T[] {
    if (length === this.#all.length) return [...this.#live.values()];
    const live = new Map<string, T>();
    for (const happening of this.#all.slice(0, length)) this.#perform(live, happening);
    return [...live.values()];
  }

  /** Calls back after every change; returns a function that ends this. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #perform(live: Map<string, T>, { kind, object }: Happening<T>): void {
    if (kind === 'upsert') live.set(this.#keyOf(object), object);
    else live.delete(this.#keyOf(object));
  }
}
