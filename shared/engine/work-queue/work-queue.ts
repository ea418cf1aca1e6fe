import type { ClusterName } from '#shared/eviction/identity.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { Moments } from './moments.ts';

export interface WorkQueueOptions<Key> {
  readonly clock: Clock;
  /** Delay before a key returns after its work failed. */
  readonly backoff: Backoff;
  readonly clusterOf: (key: Key) => ClusterName;
}

interface Turn<Key> {
  /** In the order in which they became ready. */
  readonly ready: Set<Key>;
  working: number;
  resting: number;
}

/**
 * An in-memory queue of keys with work, like client-go's. A key waits once, and one worker at a time has it; added
 * meanwhile, it returns when that worker is done. A failed key returns later, by consecutive failures, unless its time
 * came meanwhile. It holds only keys: a worker looks up the current work.
 */
export class WorkQueue<Key extends string> {
  readonly #options: WorkQueueOptions<Key>;
  /** Clusters with keys that are ready, worked on, or delayed; the one with the oldest last turn first. */
  readonly #turns = new Map<ClusterName, Turn<Key>>();
  /** Keys that are worked on, each with whether it was added meanwhile, or its time came. */
  readonly #working = new Map<Key, 'added' | 'due' | undefined>();
  readonly #failures = new Map<Key, number>();
  /** Keys that are delayed because their work failed. Timeouts don't depend on a clock that may be set. */
  readonly #resting = new Map<Key, NodeJS.Timeout>();
  readonly #moments: Moments<Key>;
  #whenReady: () => void = () => undefined;
  #stopped = false;

  constructor(options: WorkQueueOptions<Key>) {
    this.#options = options;
    this.#moments = new Moments(options.clock, (key) => this.#now(key));
  }

  /** Adds a key with work. A failed key is worked on after its delay. */
  add(key: Key): void {
    if (!this.#resting.has(key)) this.#now(key, this.#working.get(key) ?? 'added');
  }

  /** Adds a key with work at a time, however far, or now if the time is past. An earlier failure doesn't delay it. */
  addAt(key: Key, at: EpochMs): void {
    if (this.#stopped) return;
    if (at <= this.#options.clock.now()) this.#now(key);
    else this.#moments.add(key, at);
  }

  /**
   * Takes a key, which no other worker gets until `done` or `failed`, from the cluster with the fewest keys in work;
   * among several, the one with the oldest last turn. `mayWork`: keys of other clusters stay.
   */
  take(mayWork: (cluster: ClusterName) => boolean = () => true): Key | undefined {
    let next: [ClusterName, Turn<Key>] | undefined;
    for (const [cluster, turn] of this.#turns) {
      if (turn.ready.size === 0 || turn.working >= (next?.[1].working ?? Infinity) || !mayWork(cluster))
        continue;
      next = [cluster, turn];
      if (turn.working === 0) break;
    }
    if (!next) return undefined;
    const [cluster, turn] = next;
    const [key] = turn.ready;
    if (key === undefined) return undefined;
    turn.ready.delete(key);
    turn.working += 1;
    this.#working.set(key, undefined);
    this.#turns.delete(cluster);
    this.#turns.set(cluster, turn);
    return key;
  }

  done(key: Key): void {
    this.#failures.delete(key);
    if (this.#release(key)) this.#now(key);
  }

  /** Ends the failed work on a taken key: the key returns by itself. */
  failed(key: Key): void {
    const { backoff, clusterOf } = this.#options;
    this.#failures.set(key, this.failuresOf(key) + 1);
    const isDue = this.#release(key) === 'due';
    if (isDue) this.#now(key);
    if (isDue || this.#stopped) return;
    const rest = setTimeout(() => this.#now(key), backoffMs(this.failuresOf(key), backoff)).unref();
    this.#turn(clusterOf(key)).resting += 1;
    this.#resting.set(key, rest);
  }

  /** Puts back a taken key whose work did not begin: it is the next of its cluster. */
  untake(key: Key): void {
    this.#release(key);
    if (this.#stopped) return;
    const { ready } = this.#turn(this.#options.clusterOf(key));
    const behind = [...ready];
    ready.clear();
    for (const each of [key, ...behind]) ready.add(each);
  }

  /** Number of keys that are delayed because their work failed. */
  get resting(): number {
    return this.#resting.size;
  }

  failuresOf(key: Key): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Number of keys that wait, are delayed, or are worked on; keys whose time has not come don't count. */
  get size(): number {
    return this.#turns.values().reduce((sum, turn) => sum + sizeOf(turn), 0);
  }

  sizeOf(cluster: ClusterName): number {
    const turn = this.#turns.get(cluster);
    return turn ? sizeOf(turn) : 0;
  }

  /** Calls `listener` from now on whenever there may be a key to take. */
  onReady(listener: () => void): void {
    this.#whenReady = listener;
  }

  stop(): void {
    this.#stopped = true;
    this.#moments.clear();
    for (const rest of this.#resting.values()) clearTimeout(rest);
    this.#resting.clear();
    for (const [cluster, turn] of this.#turns) {
      turn.ready.clear();
      turn.resting = 0;
      this.#tidy(cluster, turn);
    }
  }

  #now(key: Key, meanwhile: 'added' | 'due' = 'due'): void {
    if (this.#stopped) return;
    if (this.#working.has(key)) {
      this.#working.set(key, meanwhile);
      return;
    }
    const turn = this.#turn(this.#options.clusterOf(key));
    clearTimeout(this.#resting.get(key));
    if (this.#resting.delete(key)) turn.resting -= 1;
    turn.ready.add(key);
    this.#whenReady();
  }

  #release(key: Key): 'added' | 'due' | undefined {
    const again = this.#working.get(key);
    const cluster = this.#options.clusterOf(key);
    const turn = this.#turns.get(cluster);
    if (!turn || !this.#working.delete(key)) return undefined;
    turn.working -= 1;
    this.#tidy(cluster, turn);
    return again;
  }

  #turn(cluster: ClusterName): Turn<Key> {
    const known = this.#turns.get(cluster);
    if (known) return known;
    const turn: Turn<Key> = { ready: new Set(), working: 0, resting: 0 };
    this.#turns.set(cluster, turn);
    return turn;
  }

  #tidy(cluster: ClusterName, turn: Turn<Key>): void {
    if (sizeOf(turn) === 0) this.#turns.delete(cluster);
  }
}

const sizeOf = ({ ready, working, resting }: Turn<unknown>): number => ready.size + working + resting;
