import { isNewer } from '#shared/engine/watch/resource-version.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A change of an object. `state`: of a node, its state that came of it, by its number in the truth. */
export interface Happening<T> {
  readonly kind: 'upsert' | 'delete';
  readonly object: T;
  readonly at: EpochMs;
  readonly state?: number;
}

/** What there is of one kind, and everything that happened to it, in order. */
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

  /** How much has happened. */
  get length(): number {
    return this.#all.length;
  }

  at(index: number): Happening<T> | undefined {
    return this.#all[index];
  }

  /** How much had happened by then. */
  lengthAt(at: EpochMs): number {
    return this.#all.findLastIndex((each) => each.at <= at) + 1;
  }

  /** How much of it a version includes. */
  lengthOf(version: string): number {
    return this.#all.findLastIndex(({ object }) => !isNewer(object.resourceVersion, version)) + 1;
  }

  /** What there was when so much had happened. */
  liveAt(length: number): readonly T[] {
    if (length === this.#all.length) return [...this.#live.values()];
    const live = new Map<string, T>();
    for (const happening of this.#all.slice(0, length)) this.#perform(live, happening);
    return [...live.values()];
  }

  /** Calls back whenever something happens; what it returns ends that. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #perform(live: Map<string, T>, { kind, object }: Happening<T>): void {
    if (kind === 'upsert') live.set(this.#keyOf(object), object);
    else live.delete(this.#keyOf(object));
  }
}
