import { isDeepStrictEqual } from 'node:util';
import { nextExpiry } from '#shared/eviction/gate.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';

/** How often rules are read: what an operator allows is to be under way within 5 s. What is forbidden, handlers see sooner. */
const POLL_MS = 2_000;

/** Hears what governs a cluster: first as it is, then whenever that changed, by somebody or by time alone. */
export type RulesListener = (rules: Rules) => void;

export interface RulesWatchDeps {
  /** What governs these clusters now, in few calls; rejects with `StoreError`. One that cannot be read is left out. */
  readonly readAll: (clusters: readonly ClusterName[]) => Promise<ReadonlyMap<ClusterName, Rules>>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Reads again and again what governs the clusters that a relay speaks for. While it cannot be read, what was read last stands. */
export class RulesWatch {
  readonly #deps: RulesWatchDeps;
  readonly #followed = new Map<ClusterName, Following>();
  /** Clusters that could not be read last. */
  #unreadable: ReadonlySet<ClusterName> = new Set();
  readonly #stopping = new AbortController();
  #woken = new AbortController();
  readonly #running: Promise<void>;

  constructor(deps: RulesWatchDeps) {
    this.#deps = deps;
    this.#running = this.#poll();
  }

  /**
   * Has a cluster's rules told until `signal` aborts; one listener at a time for a cluster. `read`: called each time that they were
   * read, or, with an error, could not be.
   */
  follow(
    cluster: ClusterName,
    listener: RulesListener,
    signal: AbortSignal,
    read: (error?: unknown) => void = () => undefined,
  ): void {
    const entry = { listener, read };
    this.#followed.set(cluster, entry);
    signal.addEventListener('abort', () => {
      if (this.#followed.get(cluster) === entry) this.#followed.delete(cluster);
    });
    // It waits for its first rules.
    this.#woken.abort();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #poll(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#woken = new AbortController();
      await this.#look();
      await pause(POLL_MS, AbortSignal.any([signal, this.#woken.signal]));
    }
  }

  async #look(): Promise<void> {
    const { readAll, clock, log } = this.#deps;
    const clusters = [...this.#followed.keys()];
    if (clusters.length === 0) return;
    let read: ReadonlyMap<ClusterName, Rules>;
    try {
      read = await readAll(clusters);
    } catch (error) {
      log.warn('rules.unreadable', { error });
      for (const cluster of clusters) this.#followed.get(cluster)?.read(error);
      return;
    }
    this.#tellUnreadable(clusters.filter((cluster) => !read.has(cluster)));
    const now = clock.now();
    for (const [cluster, rules] of read) {
      const followed = this.#followed.get(cluster);
      if (!followed) continue;
      followed.read();
      const { told } = followed;
      const changed = !told || !isDeepStrictEqual(told.rules, rules);
      const expired = told?.expiresAt !== undefined && told.expiresAt <= now;
      if (!changed && !expired) continue;
      followed.told = { rules, expiresAt: nextExpiry(rules, now) };
      followed.listener(rules);
    }
  }

  #tellUnreadable(clusters: readonly ClusterName[]): void {
    const reason = 'a newer release wrote them, or they were edited by hand: upgrade, or revert the edit';
    for (const cluster of clusters) {
      this.#followed.get(cluster)?.read(new Error(`The cluster's rules can't be read: ${reason}.`));
      if (!this.#unreadable.has(cluster))
        this.#deps.log.error('rules.unreadable', { cluster, error: reason });
    }
    this.#unreadable = new Set(clusters);
  }
}

interface Following {
  readonly listener: RulesListener;
  readonly read: (error?: unknown) => void;
  told?: Told;
}

/** What a listener heard last, and when time changes that. */
interface Told {
  readonly rules: Rules;
  readonly expiresAt: EpochMs | undefined;
}
