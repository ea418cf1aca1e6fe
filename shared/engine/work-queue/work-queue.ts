import type { ClusterName } from '#shared/eviction/identity.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { Moments } from './moments.ts';

export interface WorkQueueOptions<Key> {
  readonly clock: Clock;
  /** How soon a key comes back on which work failed. */
  readonly backoff: Backoff;
  /** Clusters take turns. */
  readonly clusterOf: (key: Key) => ClusterName;
}

/** What is known of a cluster's keys. */
interface Turn<Key> {
  /** In the order in which they got ready. */
  readonly ready: Set<Key>;
  working: number;
  resting: number;
}

/**
 * Names of what there is to do, in memory, as client-go's work queue: a key waits once, however often it is added; one worker at
 * a time has it; added meanwhile, it comes back when that worker is done; what failed comes back later, the later the more often
 * it failed in a row. It holds names only: whoever takes a key looks up what there is to do by then.
 */
export class WorkQueue<Key extends string> {
  readonly #options: WorkQueueOptions<Key>;
  /** Those with keys that are ready, worked on or resting; the first was taken from least lately. */
  readonly #turns = new Map<ClusterName, Turn<Key>>();
  /** With each key that is worked on, whether it was added meanwhile. */
  readonly #working = new Map<Key, boolean>();
  /** How often in a row work on a key failed. */
  readonly #failures = new Map<Key, number>();
  /** Keys that rest because work on them failed. Timeouts go by no clock that may be set. */
  readonly #resting = new Map<Key, NodeJS.Timeout>();
  readonly #moments: Moments<Key>;
  #whenReady: () => void = () => undefined;
  #stopped = false;

  constructor(options: WorkQueueOptions<Key>) {
    this.#options = options;
    this.#moments = new Moments(options.clock, (key) => this.#now(key));
  }

  /** There is something to do for a key. If it failed, it is done when its time comes. */
  add(key: Key): void {
    if (!this.#resting.has(key)) this.#now(key);
  }

  /** There is something to do for a key at a moment, however far, or now if that is past; whether or not it failed before. */
  addAt(key: Key, at: EpochMs): void {
    if (this.#stopped) return;
    if (at <= this.#options.clock.now()) this.#now(key);
    else this.#moments.add(key, at);
  }

  /**
   * A key to work on, which nobody else gets until `done` or `failed`: of the cluster with the fewest that are worked on, and of
   * several such clusters of that from which none was taken for longest. `mayWork`: keys of other clusters stay where they are.
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
    this.#working.set(key, false);
    this.#turns.delete(cluster);
    this.#turns.set(cluster, turn);
    return key;
  }

  /** What there was to do for a key that was taken is done. */
  done(key: Key): void {
    this.#failures.delete(key);
    const again = this.#release(key);
    if (again) this.#now(key);
  }

  /** It was not: the key comes back by itself. */
  failed(key: Key): void {
    const { backoff, clusterOf } = this.#options;
    const failures = this.failuresOf(key) + 1;
    this.#failures.set(key, failures);
    this.#release(key);
    if (this.#stopped) return;
    const rest = setTimeout(() => this.#now(key), backoffMs(failures, backoff)).unref();
    this.#turn(clusterOf(key)).resting += 1;
    this.#resting.set(key, rest);
  }

  /** It was not begun after all: it is the next of its cluster. */
  untake(key: Key): void {
    this.#release(key);
    if (this.#stopped) return;
    const { ready } = this.#turn(this.#options.clusterOf(key));
    const behind = [...ready];
    ready.clear();
    for (const each of [key, ...behind]) ready.add(each);
  }

  /** How many keys rest because work on them failed. */
  get resting(): number {
    return this.#resting.size;
  }

  /** How often in a row work on a key failed. */
  failuresOf(key: Key): number {
    return this.#failures.get(key) ?? 0;
  }

  /** How many keys wait, rest or are worked on; those whose moment has not come are not counted. */
  get size(): number {
    return this.#turns.values().reduce((sum, turn) => sum + sizeOf(turn), 0);
  }

  /** How many of them are of one cluster. */
  sizeOf(cluster: ClusterName): number {
    const turn = this.#turns.get(cluster);
    return turn ? sizeOf(turn) : 0;
  }

  /** Calls `listener` from now on whenever there may be something to take. */
  onReady(listener: () => void): void {
    this.#whenReady = listener;
  }

  /** Forgets what waits, and takes nothing more. */
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

  #now(key: Key): void {
    if (this.#stopped) return;
    if (this.#working.has(key)) {
      this.#working.set(key, true);
      return;
    }
    const turn = this.#turn(this.#options.clusterOf(key));
    clearTimeout(this.#resting.get(key));
    if (this.#resting.delete(key)) turn.resting -= 1;
    turn.ready.add(key);
    this.#whenReady();
  }

  /** Returns whether the key was added while it was worked on. */
  #release(key: Key): boolean {
    const again = this.#working.get(key) ?? false;
    const cluster = this.#options.clusterOf(key);
    const turn = this.#turns.get(cluster);
    if (!turn || !this.#working.delete(key)) return false;
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
