import type { ClusterName } from '#shared/eviction/identity.ts';
import {
  LEASE_TTL_MS,
  type Lease,
  type LeaseRecord,
  type LeaseReport,
  type Leases,
  MAX_PROGRESS,
  type Sighting,
  sighting,
} from '#shared/state/lease.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Age } from '#shared/time/age.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { reportSilence } from '#shared/time/stopping.ts';
import type { Fleet } from './fleet.ts';

/** Interval between renewals. Three attempts fit into the lifetime of a lease. */
export const LEASE_RENEW_MS = 3_000;
/** Maximum time before a relay without the lease looks again, jittered by half. */
export const LEASE_READ_MS = 2_000;

/** Another relay acquired the lease, this relay stopped following the cluster, or it handed the lease off. */
export type LeaseEnd = 'lost' | 'stopped' | 'given-away';

export interface LeaseCallbacks {
  /**
   * Called with each acquired lease, which is kept until the promise resolves. `signal` aborts when it must resolve,
   * with a `LeaseEnd` as reason. Unless that is `lost`, pending deltas may still be sent before. Must not reject.
   */
  held(lease: Lease, signal: AbortSignal): Promise<void>;
  /** The expired lease was renewed in the same epoch: pending deltas may be sent. */
  regained(): void;
  /** Returns what is known of the cluster now. */
  report(): Omit<LeaseReport, 'renewedAt' | 'declines' | 'claim'>;
  /** Leases could be read or written; with an error, they could not, or there is no answer yet. */
  reached(error?: unknown): void;
}

export interface LeaseManagerDeps {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly log: Log;
  /** This relay's name in leases. No other process ever uses the name. */
  readonly holder: string;
  readonly fleet: Pick<Fleet, 'saw' | 'acquireDelayMs' | 'gives' | 'avoid'>;
}

/**
 * Keeps one cluster's lease, repeatedly until stopped. It acquires a free lease, or one unchanged for `LEASE_TTL_MS` by
 * its own stopwatch. The write requires that the lease is still in the state that it saw.
 */
export class LeaseManager {
  readonly #cluster: ClusterName;
  readonly #callbacks: LeaseCallbacks;
  readonly #deps: LeaseManagerDeps;
  readonly #stopping = new AbortController();
  /** The lease, as far as it is known to be ours. */
  #lease: Lease | undefined;
  /** Time since the request of the renewal that keeps the lease valid; absent: no lease was held. */
  #renewed: Age | undefined;
  #ending = new AbortController();
  #running: Promise<void> | undefined;

  constructor(cluster: ClusterName, callbacks: LeaseCallbacks, deps: LeaseManagerDeps) {
    this.#cluster = cluster;
    this.#callbacks = callbacks;
    this.#deps = deps;
  }

  start(): void {
    this.#callbacks.reached(new Error('It has not been read yet'));
    this.#running ??= this.#run();
  }

  /** Ends the hold, then releases the lease; resolves when that is done. */
  async stop(): Promise<void> {
    this.#stopping.abort('stopped' satisfies LeaseEnd);
    await this.#running;
  }

  /** Hands the lease off, and avoids it for a while unless no other relay acquires it. Nothing while it isn't held. */
  giveAway(): void {
    if (this.#lease) this.#deps.fleet.avoid(this.#cluster);
    this.#ending.abort('given-away' satisfies LeaseEnd);
  }

  /**
   * Reports whether the lease is ours now. To be checked immediately before each send: after a pause of the process,
   * the lease has expired, and nothing is sent until it is renewed.
   */
  canSend(): boolean {
    return this.#lease !== undefined && this.#renewed !== undefined && this.#renewed.atMostMs < LEASE_TTL_MS;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const lease = await this.#awaitLease();
      if (lease) await this.#hold(lease);
    }
  }

  async #awaitLease(): Promise<Lease | undefined> {
    const { leases, holder, clock, log, fleet } = this.#deps;
    const { signal } = this.#stopping;
    let seen: Sighting | undefined;
    while (!signal.aborted) {
      let waitMs = LEASE_READ_MS * (0.5 + Math.random() / 2);
      try {
        const record = await this.#answered(leases.read(this.#cluster, { mayLag: true }));
        fleet.saw(this.#cluster, record);
        const readAge = new Age(clock);
        const nowMs = stopwatchMs(clock);
        seen = sighting(seen, record, nowMs);
        const leftMs = seen.since + this.#patienceMs(record) - nowMs;
        if (leftMs <= 0) {
          const lease = await this.#answered(leases.take(this.#cluster, record, holder, clock.now()));
          if (lease) {
            this.#renewed = readAge;
            fleet.saw(this.#cluster, lease);
            return lease;
          }
        } else {
          waitMs = Math.min(waitMs, leftMs);
        }
      } catch (error) {
        this.#callbacks.reached(error);
        log.error('relay.lease-failed', { cluster: this.#cluster, error });
      }
      await pause(Math.ceil(waitMs), signal);
    }
    return undefined;
  }

  #patienceMs(record: LeaseRecord | undefined): number {
    const { holder, fleet } = this.#deps;
    // The lease is already ours, after a lost answer or an outage of the table.
    if (record?.holder === holder) return 0;
    return (record?.holder === undefined ? 0 : LEASE_TTL_MS) + fleet.acquireDelayMs(this.#cluster);
  }

  async #hold(lease: Lease): Promise<void> {
    const { leases, log } = this.#deps;
    const about = { cluster: this.#cluster, epoch: lease.epoch };
    const ending = new AbortController();
    const signal = AbortSignal.any([this.#stopping.signal, ending.signal]);
    const over = new AbortController();
    this.#lease = lease;
    this.#ending = ending;
    log.info('relay.lease-acquired', about);
    const renewing = this.#renew(lease, ending, over.signal);
    if (!signal.aborted) await this.#callbacks.held(lease, signal);
    over.abort();
    await renewing;
    const isOurs = this.#lease !== undefined;
    this.#lease = undefined;
    if (ending.signal.reason === ('given-away' satisfies LeaseEnd)) log.info('relay.lease-handed-off', about);
    if (!isOurs) return log.warn('relay.lease-lost', about);
    await leases
      .release(lease)
      .catch((error: unknown) => log.warn('relay.lease-failed', { cluster: this.#cluster, error }));
  }

  /**
   * Renews the lease until `over`, or until another relay has it. While the table is unavailable, nothing is sent under
   * it; no other relay can acquire it then, and if none did, it is ours again.
   */
  async #renew(lease: Lease, ending: AbortController, over: AbortSignal): Promise<void> {
    const { leases, clock, fleet, log } = this.#deps;
    let declines = false;
    for (;;) {
      await pause(LEASE_RENEW_MS, over);
      if (over.aborted) return;
      const requestAge = new Age(clock);
      try {
        const renewed: Lease | undefined = await this.#answered(leases.renew(lease, this.#report(declines)));
        if (!renewed) break;
        const ranOut = !this.canSend();
        this.#renewed = requestAge;
        if (ranOut) this.#callbacks.regained();
        fleet.saw(this.#cluster, renewed);
        if (fleet.gives(renewed)) ending.abort('given-away' satisfies LeaseEnd);
        // Answer a bid once: its statement of the bidder's load gets stale.
        declines = renewed.bid !== undefined && !ending.signal.aborted;
      } catch (error) {
        this.#callbacks.reached(error);
        log.error('relay.lease-failed', { cluster: this.#cluster, error });
      }
    }
    this.#lease = undefined;
    ending.abort('lost' satisfies LeaseEnd);
  }

  async #answered<T>(call: Promise<T>): Promise<T> {
    const { reached } = this.#callbacks;
    const answer = await reportSilence(call, reached);
    reached();
    return answer;
  }

  #report(declines: boolean): LeaseReport {
    const { tripProgress = [], ...report } = this.#callbacks.report();
    return {
      ...report,
      renewedAt: this.#deps.clock.now(),
      tripProgress: tripProgress.slice(0, MAX_PROGRESS),
      ...(declines ? { declines } : {}),
    };
  }
}
