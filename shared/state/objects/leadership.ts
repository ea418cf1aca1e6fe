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
 * Leases by which a replica becomes the leader, and the actions that they allow. The process leads until its lease is
 * lost, released or handed off, and then ends: its state may differ from the next leader's.
 */
export class Leadership implements Leases, Pick<LeaseReader, 'epoch'> {
  readonly #deps: LeadershipDeps;
  readonly #begun = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  #leads = false;
  #renewed: Age | undefined;
  #regained: () => void = () => undefined;

  constructor(deps: LeadershipDeps) {
    this.#deps = deps;
  }

  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /**
   * Reports whether no other replica can have acquired the lease yet. Call it right before each action: after a pause,
   * it may have expired.
   */
  mayAct = (): boolean => this.#leads && this.#renewed !== undefined && this.#renewed.atMostMs < LEASE_TTL_MS;

  /** `act` is called each time an expired lease is renewed after all: evictions that fell due were not performed. */
  whenRegained = (act: () => void): void => {
    this.#regained = act;
  };

  async take(
    cluster: ClusterName,
    found: LeaseRecord | undefined,
    holder: string,
    now: EpochMs,
  ): Promise<Lease | undefined> {
    const requestAge = new Age(this.#deps.clock);
    const lease = await this.#deps.leases.take(cluster, found, holder, now);
    if (!lease) return undefined;
    this.#renewed = requestAge;
    this.#leads = true;
    this.#begun.resolve();
    return lease;
  }

  async renew(lease: Lease, report: LeaseReport): Promise<Lease | undefined> {
    const requestAge = new Age(this.#deps.clock);
    const renewed = await this.#deps.leases.renew(lease, report);
    if (!renewed) {
      this.#end();
      return undefined;
    }
    const ranOut = !this.mayAct();
    this.#renewed = requestAge;
    if (ranOut) this.#regained();
    return renewed;
  }

  async release(lease: Lease): Promise<void> {
    // Stop acting first, then let another replica begin.
    this.#end();
    await this.#deps.leases.release(lease);
  }

  read(cluster: ClusterName): Promise<LeaseRecord | undefined> {
    return this.#deps.leases.read(cluster);
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

  #end(): void {
    this.#leads = false;
    this.#ended.resolve();
  }
}
