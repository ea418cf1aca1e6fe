import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Fault } from '#shared/state/fault.ts';
import {
  LEASE_TTL_MS,
  type Lease,
  type LeaseRecord,
  type LeaseReport,
  type Leases,
  type Sighting,
  sighting,
} from '#shared/state/lease.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Age } from '#shared/time/age.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import type { Fleet } from './fleet.ts';

/** Three tries to renew fit into a lease's time. */
export const LEASE_RENEW_MS = 3_000;
/** How long a relay without the lease waits at most before it looks again, jittered by half. */
export const LEASE_LOOK_MS = 2_000;

/** Why a lease's time ended: another relay has it, this one stops following the cluster, or it gave the lease away. */
export type LeaseEnd = 'lost' | 'stopped' | 'given-away';

/** What is done with a lease while it is held. */
export interface LeaseCallbacks {
  /**
   * Called with each lease that is taken; the lease is kept until the promise resolves. `signal` aborts when it is
   * to, with a `LeaseEnd` as its reason: unless that is `lost`, what waits may still be said before it resolves.
   * Must not reject.
   */
  held(lease: Lease, signal: AbortSignal): Promise<void>;
  /** The lease had run out and is ours again, in the same epoch: what waited may be said. */
  regained(): void;
  /** When something was last heard from the cluster under any lease of ours; `undefined`: nothing yet. */
  heardAt(): EpochMs | undefined;
  /** How many nodes the cluster has; `undefined`: not known yet. */
  nodes(): number | undefined;
  /** Whether its API server is not asked for some seconds, because it does not answer. */
  breakerOpen(): boolean;
  /** What is wrong with the cluster now. */
  faults(): readonly Fault[];
  /** Leases could be read or written; with an error, they could not. */
  reached(error?: unknown): void;
}

export interface LeaseManagerDeps {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly log: Log;
  /** Names this relay in leases; no other process ever uses the name. */
  readonly holder: string;
  /** What all of this relay's keepers see. */
  readonly fleet: Pick<Fleet, 'saw' | 'acquireDelayMs' | 'gives' | 'avoid'>;
}

/**
 * Gets one cluster's lease and keeps it, again and again until stopped. It takes a lease that is free, and one that it
 * has seen unchanged for `LEASE_TTL_MS` by its own stopwatch, on condition that it still is what it saw.
 */
export class LeaseManager {
  readonly #cluster: ClusterName;
  readonly #tenant: LeaseCallbacks;
  readonly #deps: LeaseManagerDeps;
  readonly #stopping = new AbortController();
  /** As far as it is known to be ours. */
  #lease: Lease | undefined;
  /** Since the renewal was asked for that the lease lives by; absent: none was held. */
  #renewed: Age | undefined;
  #ending = new AbortController();
  #running: Promise<void> | undefined;

  constructor(cluster: ClusterName, tenant: LeaseCallbacks, deps: LeaseManagerDeps) {
    this.#cluster = cluster;
    this.#tenant = tenant;
    this.#deps = deps;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends the tenancy, then gives the lease up; resolves when that is done. */
  async stop(): Promise<void> {
    this.#stopping.abort('stopped' satisfies LeaseEnd);
    await this.#running;
  }

  /**
   * Gives the lease up for others to try, and leaves it alone for a while unless nobody else takes it. Does nothing
   * when it is not held.
   */
  giveAway(): void {
    if (this.#lease) this.#deps.fleet.avoid(this.#cluster);
    this.#ending.abort('given-away' satisfies LeaseEnd);
  }

  /**
   * Whether the lease is ours now. To be asked right before each word: a process that was paused, or whose host slept,
   * finds that its time is over, and is silent until it has renewed the lease.
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

  /** `undefined`: stopped while waiting. */
  async #awaitLease(): Promise<Lease | undefined> {
    const { leases, holder, clock, log, fleet } = this.#deps;
    const { signal } = this.#stopping;
    let seen: Sighting | undefined;
    while (!signal.aborted) {
      let waitMs = LEASE_LOOK_MS * (0.5 + Math.random() / 2);
      try {
        const record = await leases.look(this.#cluster, { mayLag: true });
        this.#tenant.reached();
        fleet.saw(this.#cluster, record);
        const looked = new Age(clock);
        const nowMs = stopwatchMs(clock);
        seen = sighting(seen, record, nowMs);
        const leftMs = seen.since + this.#patienceMs(record) - nowMs;
        if (leftMs <= 0) {
          const lease = await leases.take(this.#cluster, record, holder, clock.now());
          if (lease) {
            this.#renewed = looked;
            fleet.saw(this.#cluster, lease);
            return lease;
          }
        } else {
          waitMs = Math.min(waitMs, leftMs);
        }
      } catch (error) {
        this.#tenant.reached(error);
        log.error('relay.lease-failed', { cluster: this.#cluster, error });
      }
      await pause(Math.ceil(waitMs), signal);
    }
    return undefined;
  }

  /** For how long a lease has to stand as it is before it is taken. */
  #patienceMs(record: LeaseRecord | undefined): number {
    const { holder, fleet } = this.#deps;
    // Ours, and we do not know of it or have lost count: an answer that was lost, a table that was away.
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
    if (!signal.aborted) await this.#tenant.held(lease, signal);
    over.abort();
    await renewing;
    const isOurs = this.#lease !== undefined;
    this.#lease = undefined;
    if (ending.signal.reason === ('given-away' satisfies LeaseEnd)) {
      log.info('relay.lease-handed-off', about);
    }
    if (!isOurs) {
      log.warn('relay.lease-lost', about);
      return;
    }
    await leases
      .release(lease)
      .catch((error: unknown) => log.warn('relay.lease-failed', { cluster: this.#cluster, error }));
  }

  /**
   * Renews until `over`, or until another relay has the lease. While the table is away the lease is only not spoken
   * under: nobody else can take it then, and if nobody did, it is ours again.
   */
  async #renew(lease: Lease, ending: AbortController, over: AbortSignal): Promise<void> {
    const { leases, clock, fleet, log } = this.#deps;
    let declines = false;
    for (;;) {
      await pause(LEASE_RENEW_MS, over);
      if (over.aborted) return;
      const asked = new Age(clock);
      try {
        const renewed = await leases.renew(lease, this.#report(declines));
        this.#tenant.reached();
        if (!renewed) break;
        const ranOut = !this.canSend();
        this.#renewed = asked;
        if (ranOut) this.#tenant.regained();
        fleet.saw(this.#cluster, renewed);
        const gives = fleet.gives(renewed);
        if (gives) ending.abort('given-away' satisfies LeaseEnd);
        // A bid is answered once: what it says of its bidder gets old.
        declines = renewed.bid !== undefined && !ending.signal.aborted;
      } catch (error) {
        this.#tenant.reached(error);
        log.error('relay.lease-failed', { cluster: this.#cluster, error });
      }
    }
    this.#lease = undefined;
    ending.abort('lost' satisfies LeaseEnd);
  }

  #report(declines: boolean): LeaseReport {
    const [heardAt, nodes] = [this.#tenant.heardAt(), this.#tenant.nodes()];
    return {
      renewedAt: this.#deps.clock.now(),
      breakerOpen: this.#tenant.breakerOpen(),
      faults: this.#tenant.faults(),
      ...(heardAt === undefined ? {} : { heardAt }),
      ...(nodes === undefined ? {} : { nodes }),
      ...(declines ? { declines } : {}),
    };
  }
}
