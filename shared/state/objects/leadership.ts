import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import { LEASE_TTL_MS, type Lease, type LeaseRecord, type LeaseReport } from '#shared/state/lease.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { ObjectLeases } from './object-leases.ts';

/**
 * Leases by which a replica becomes the leader, and the actions that they allow. The process leads until its lease is
 * lost, released or handed off, and then ends: its state may differ from the next leader's.
 */
export class Leadership extends ObjectLeases {
  readonly #clock: Clock;
  readonly #begun = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  #leads = false;
  #renewed: Age | undefined;
  #regained: () => void = () => undefined;

  constructor(objects: Objects, clock: Clock) {
    super(objects);
    this.#clock = clock;
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

  override async take(
    cluster: ClusterName,
    found: LeaseRecord | undefined,
    holder: string,
    now: EpochMs,
  ): Promise<Lease | undefined> {
    const requestAge = new Age(this.#clock);
    const lease = await super.take(cluster, found, holder, now);
    if (!lease) return undefined;
    this.#renewed = requestAge;
    this.#leads = true;
    this.#begun.resolve();
    return lease;
  }

  override async renew(lease: Lease, report: LeaseReport): Promise<Lease | undefined> {
    const requestAge = new Age(this.#clock);
    const renewed = await super.renew(lease, report);
    if (!renewed) {
      this.#end();
      return undefined;
    }
    const ranOut = !this.mayAct();
    this.#renewed = requestAge;
    if (ranOut) this.#regained();
    return renewed;
  }

  override async release(lease: Lease): Promise<void> {
    // Stop acting first, then let another replica begin.
    this.#end();
    await super.release(lease);
  }

  #end(): void {
    this.#leads = false;
    this.#ended.resolve();
  }
}
