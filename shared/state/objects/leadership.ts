import type { ClusterName } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import {
  LEASE_TTL_MS,
  type Lease,
  type LeaseReader,
  type LeaseRecord,
  type LeaseReport,
  type LeaseRequest,
  type Leases,
} from '#shared/state/lease.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface LeadershipDeps {
  readonly leases: Leases & Pick<LeaseReader, 'epoch'>;
  readonly clock: Clock;
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
  /** Since the renewal was asked for that it lives by; absent: it never led. */
  #renewed: Age | undefined;
  /** Since a lease was last read or written; absent: not yet. */
  #reached: Age | undefined;
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
  mayAct = (): boolean => this.#leads && this.#renewed !== undefined && this.#renewed.atMostMs < LEASE_TTL_MS;

  /** Has `act` called each time the lease had run out and could be renewed: what was due meanwhile was not done. */
  whenRegained = (act: () => void): void => {
    this.#regained = act;
  };

  /** Whether the leases were within reach lately: one that cannot read them never leads, and none leads on that cannot renew its own. */
  reachesLeases = (): boolean => this.#reached !== undefined && this.#reached.atLeastMs < LEASE_TTL_MS;

  async take(
    cluster: ClusterName,
    found: LeaseRecord | undefined,
    holder: string,
    now: EpochMs,
  ): Promise<Lease | undefined> {
    const asked = new Age(this.#deps.clock);
    const lease = await this.#reaching(this.#deps.leases.take(cluster, found, holder, now));
    if (!lease) return undefined;
    this.#renewed = asked;
    this.#leads = true;
    this.#begun.resolve();
    return lease;
  }

  async renew(lease: Lease, report: LeaseReport): Promise<Lease | undefined> {
    const asked = new Age(this.#deps.clock);
    const renewed = await this.#reaching(this.#deps.leases.renew(lease, report));
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
    return this.#reaching(this.#deps.leases.look(cluster));
  }

  bid(lease: Lease, bid: LeaseRequest): Promise<void> {
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

  async #reaching<T>(answer: Promise<T>): Promise<T> {
    const given = await answer;
    this.#reached = new Age(this.#deps.clock);
    return given;
  }

  #end(): void {
    this.#leads = false;
    this.#ended.resolve();
  }
}
