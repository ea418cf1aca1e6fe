import {
  type Bid,
  LEASE_TTL_MS,
  type Lease,
  type LeaseReader,
  type LeaseRecord,
  type LeaseReport,
  type Leases,
} from '#shared/clusters/lease.ts';
import type { StuckPod } from '#shared/clusters/stuck.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import type { Clock, Stopwatch } from '#shared/time/clock.ts';

export interface LeadershipDeps {
  readonly leases: Leases & Pick<LeaseReader, 'epoch'>;
  readonly clock: Clock;
  readonly stopwatch: Stopwatch;
}

/**
 * The leases by which a replica becomes the one that evicts, and what it may do by them. Whoever takes one leads until it is
 * lost, released or given away, and then never again: what the process knows is not what the next leader knows, so it ends.
 */
export class Leadership implements Leases, Pick<LeaseReader, 'epoch'> {
  readonly #deps: LeadershipDeps;
  readonly #begun = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  #leads = false;
  /** When the renewal was asked for that it lives by, by both clocks that a process has. */
  #renewed = { stopwatchMs: 0, at: 0 };
  /** When a lease was last read or written; absent: not yet. */
  #reachedAtMs: number | undefined;
  #regained: () => void = () => undefined;

  constructor(deps: LeadershipDeps) {
    this.#deps = deps;
  }

  /** Resolves when this replica leads. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  /** Resolves when it led and does no more. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /**
   * Whether it leads for certain: nobody else can have the lease yet. To be asked right before each act: a process that was
   * paused, or whose host slept, finds that its time is over.
   */
  mayAct = (): boolean => {
    const { stopwatchMs, at } = this.#moment();
    // A stopwatch may stand while the host sleeps, and a clock may be set: the longer of both is the safe one.
    const heldMs = Math.max(stopwatchMs - this.#renewed.stopwatchMs, at - this.#renewed.at);
    return this.#leads && heldMs < LEASE_TTL_MS;
  };

  /** Has `act` called each time the lease had run out and could be renewed: what was due meanwhile was not done. */
  whenRegained = (act: () => void): void => {
    this.#regained = act;
  };

  /** Whether the leases were within reach lately: one that cannot read them never leads, and none leads on that cannot renew its own. */
  reachesLeases = (): boolean =>
    this.#reachedAtMs !== undefined && this.#deps.stopwatch() - this.#reachedAtMs < LEASE_TTL_MS;

  async take(
    cluster: ClusterName,
    found: LeaseRecord | undefined,
    holder: string,
    now: EpochMs,
  ): Promise<Lease | undefined> {
    const asked = this.#moment();
    const lease = await this.#reached(this.#deps.leases.take(cluster, found, holder, now));
    if (!lease) return undefined;
    this.#renewed = asked;
    this.#leads = true;
    this.#begun.resolve();
    return lease;
  }

  async renew(lease: Lease, report: LeaseReport): Promise<Lease | undefined> {
    const asked = this.#moment();
    const renewed = await this.#reached(this.#deps.leases.renew(lease, report));
    if (!renewed) {
      this.#end();
      return undefined;
    }
    const ranOut = !this.mayAct();
    this.#renewed = asked;
    if (ranOut) this.#regained();
    return renewed;
  }

  async release(lease: Lease): Promise<void> {
    // First nothing more is done, then another one may begin.
    this.#end();
    await this.#deps.leases.release(lease);
  }

  look(cluster: ClusterName): Promise<LeaseRecord | undefined> {
    return this.#reached(this.#deps.leases.look(cluster));
  }

  bid(lease: Lease, bid: Bid): Promise<void> {
    return this.#deps.leases.bid(lease, bid);
  }

  reportStuck(lease: Lease, pods: readonly StuckPod[]): Promise<void> {
    return this.#deps.leases.reportStuck(lease, pods);
  }

  stuck(cluster: ClusterName): Promise<readonly StuckPod[]> {
    return this.#deps.leases.stuck(cluster);
  }

  epoch(cluster: ClusterName): Promise<number | undefined> {
    return this.#deps.leases.epoch(cluster);
  }

  async #reached<T>(answer: Promise<T>): Promise<T> {
    const given = await answer;
    this.#reachedAtMs = this.#deps.stopwatch();
    return given;
  }

  #end(): void {
    this.#leads = false;
    this.#ended.resolve();
  }

  #moment(): { readonly stopwatchMs: number; readonly at: EpochMs } {
    return { stopwatchMs: this.#deps.stopwatch(), at: this.#deps.clock.now() };
  }
}
