import { isDeepStrictEqual } from 'node:util';
import { nextExpiry } from '#shared/eviction/gate.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import { reportSilence } from '#shared/time/stopping.ts';

/** Interval of reads: allowed evictions start within 5 s. Handlers apply new prohibitions sooner. */
export const POLL_MS = 2_000;

/** Receives a cluster's rules: first the current ones, then each change, by an operator or by time alone. */
export type RulesListener = (rules: Rules) => void;

export interface RulesWatchDeps {
  /** Reads these clusters' rules; rejects with `StoreError`. Clusters whose rules can't be read are left out. */
  readonly readAll: (clusters: readonly ClusterName[]) => Promise<ReadonlyMap<ClusterName, Rules>>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Reads the rules of the clusters whose lease is held. While they can't be read, the last ones apply. */
export class RulesWatch {
  readonly #deps: RulesWatchDeps;
  readonly #followed = new Map<ClusterName, Following>();
  #unreadable: ReadonlySet<ClusterName> = new Set();
  readonly #stopping = new AbortController();
  #woken = new AbortController();
  readonly #running: Promise<void>;

  constructor(deps: RulesWatchDeps) {
    this.#deps = deps;
    this.#running = this.#poll();
  }

  /**
   * Passes a cluster's rules to its only `listener` until `signal` aborts. `read`: after each read; with an error, it
   * failed.
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
    // The listener waits for its first rules.
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
      await this.#read();
      await pause(POLL_MS, AbortSignal.any([signal, this.#woken.signal]));
    }
  }

  async #read(): Promise<void> {
    const { readAll, clock, log } = this.#deps;
    const clusters = [...this.#followed.keys()];
    if (clusters.length === 0) return;
    const failed = (error: unknown) => {
      for (const cluster of clusters) this.#followed.get(cluster)?.read(error);
    };
    let read: ReadonlyMap<ClusterName, Rules>;
    try {
      read = await reportSilence(readAll(clusters), failed);
    } catch (error) {
      log.warn('rules.unreadable', { error });
      return failed(error);
    }
    this.#logUnreadable(clusters.filter((cluster) => !read.has(cluster)));
    const now = clock.now();
    for (const [cluster, rules] of read) {
      const followed = this.#followed.get(cluster);
      if (!followed) continue;
      followed.read();
      const { received } = followed;
      const changed = !received || !isDeepStrictEqual(received.rules, rules);
      const expired = received?.expiresAt !== undefined && received.expiresAt <= now;
      if (!changed && !expired) continue;
      followed.received = { rules, expiresAt: nextExpiry(rules, now) };
      followed.listener(rules);
    }
  }

  #logUnreadable(clusters: readonly ClusterName[]): void {
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
  /** The rules that the listener received last, and when time alone changes their effect. */
  received?: { readonly rules: Rules; readonly expiresAt: EpochMs | undefined };
}
