import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Keys with the times at which they are due, in any number: a single alarm fires for all, at the first time. */
export class Moments<Key> {
  readonly #clock: Clock;
  readonly #due: (key: Key) => void;
  readonly #keys = new Map<EpochMs, Set<Key>>();
  /** A binary heap of the times: each is at or before the two at twice its place. */
  readonly #heap: EpochMs[] = [];
  #cancelAlarm: (() => void) | undefined;

  constructor(clock: Clock, due: (key: Key) => void) {
    this.#clock = clock;
    this.#due = due;
  }

  /** Adds a key; the same key at the same time again changes nothing. */
  add(key: Key, at: EpochMs): void {
    const known = this.#keys.get(at);
    if (known) {
      known.add(key);
      return;
    }
    this.#keys.set(at, new Set([key]));
    this.#push(at);
    if (this.#heap[0] === at) this.#wait();
  }

  clear(): void {
    this.#cancelAlarm?.();
    this.#keys.clear();
    this.#heap.length = 0;
  }

  #wait(): void {
    this.#cancelAlarm?.();
    const [first] = this.#heap;
    this.#cancelAlarm = first === undefined ? undefined : setAlarm(this.#clock, first, () => this.#ring());
  }

  #ring(): void {
    const now = this.#clock.now();
    for (let [at] = this.#heap; at !== undefined && at <= now; [at] = this.#heap) {
      const keys = this.#keys.get(at) ?? [];
      this.#keys.delete(at);
      this.#shift();
      for (const key of keys) this.#due(key);
    }
    this.#wait();
  }

  #push(at: EpochMs): void {
    const heap = this.#heap;
    let place = heap.push(at) - 1;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = heap[above] ?? at;
      if (parent <= at) break;
      heap[place] = parent;
      place = above;
    }
    heap[place] = at;
  }

  #shift(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let place = 0;
    for (;;) {
      const left = 2 * place + 1;
      const child = (heap[left + 1] ?? Infinity) < (heap[left] ?? Infinity) ? left + 1 : left;
      const below = heap[child];
      if (below === undefined || below >= last) break;
      heap[place] = below;
      place = child;
    }
    heap[place] = last;
  }
}

/** Interval at which it checks the clock, which may have been set forward. */
const CLOCK_CHECK_MS = 1_000;

/**
 * Fires once, at its time by the clock or up to a second later, never before; doesn't keep a process alive. Returns
 * what prevents it from firing. `at`: any time, however far; a past time fires in the next turn of the event loop.
 */
export function setAlarm(clock: Clock, at: EpochMs, ring: () => void): () => void {
  let timeout: NodeJS.Timeout;
  const wait = () => {
    const leftMs = Math.min(Math.max(at - clock.now(), 0), CLOCK_CHECK_MS);
    timeout = setTimeout(() => (clock.now() < at ? wait() : ring()), leftMs).unref();
  };
  wait();
  return () => clearTimeout(timeout);
}
