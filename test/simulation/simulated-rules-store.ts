import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Hold, Policy, ReleasedTrip, Stop, Trip } from '#shared/eviction/policy.ts';
import type { AuditEntry, Change, GuardState, RulesStore, StoredRules } from '#shared/state/rules-store.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** The stored rules of a cluster, and the time since which they apply. */
export interface Ruling {
  readonly at: EpochMs;
  readonly storedRules: StoredRules;
  /** The guard's action, or its release by a user; absent: something else was written. */
  readonly guardAct?: AuditEntry['kind'] | undefined;
}

const UNSAID: StoredRules = {
  orders: { revision: 0, stops: [], holds: [] },
  guard: { revision: 0, trips: [] },
  fleetRevision: 0,
};

/** The rules of the clusters, and their history. Every read after a write returns the written rules. */
export class SimulatedRulesStore implements Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'> {
  readonly #clock: Clock;
  readonly #written = new Map<ClusterName, Ruling[]>();
  readonly #listeners = new Set<() => void>();
  /** Called immediately with everything that is written. */
  onWritten: (cluster: ClusterName, ruling: Ruling, before: StoredRules) => void = () => undefined;

  constructor(clusters: readonly ClusterName[], clock: Clock) {
    this.#clock = clock;
    for (const cluster of clusters) this.#written.set(cluster, [{ at: clock.now(), storedRules: UNSAID }]);
  }

  async read(cluster: ClusterName): Promise<StoredRules> {
    return this.now(cluster);
  }

  now(cluster: ClusterName): StoredRules {
    return this.history(cluster).at(-1)?.storedRules ?? UNSAID;
  }

  /** Returns the entries in the order in which they were written. */
  history(cluster: ClusterName): readonly Ruling[] {
    return this.#written.get(cluster) ?? [];
  }

  /** Returns the next time at which a control expires; `Infinity`: none does. */
  nextEnd(cluster: ClusterName): EpochMs {
    return Math.min(...endsOf(this.now(cluster)).filter((at) => at > this.#clock.now()));
  }

  setPolicy(cluster: ClusterName, read: Policy): void {
    const { orders, ...others } = this.now(cluster);
    const revision = orders.revision + 1;
    this.#write(cluster, {
      ...others,
      orders: { ...orders, revision, policy: { text: '', read, revision } },
    });
  }

  setStops(cluster: ClusterName, change: (stops: readonly Stop[]) => readonly Stop[]): void {
    const { orders, ...others } = this.now(cluster);
    const [revision, stops] = [orders.revision + 1, change(orders.stops)];
    this.#write(cluster, { ...others, orders: { ...orders, revision, stops } });
  }

  /** Stops all clusters; `fleetStop` absent: resumes them. */
  setFleetStop(fleetStop?: Stop): void {
    for (const cluster of this.#written.keys()) {
      const { fleetStop: _before, fleetRevision, ...others } = this.now(cluster);
      const revised = { ...others, fleetRevision: fleetRevision + 1 };
      this.#write(cluster, { ...revised, ...(fleetStop ? { fleetStop } : {}) });
    }
  }

  setHolds(cluster: ClusterName, change: (holds: readonly Hold[]) => readonly Hold[]): void {
    const { orders, ...others } = this.now(cluster);
    const [revision, holds] = [orders.revision + 1, change(orders.holds)];
    this.#write(cluster, { ...others, orders: { ...orders, revision, holds } });
  }

  async changeGuard(
    cluster: ClusterName,
    found: GuardState,
    all: readonly (Trip | ReleasedTrip)[],
    entry?: AuditEntry,
  ): Promise<Change> {
    const { guard, ...others } = this.now(cluster);
    if (guard.revision !== found.revision) return 'conflict';
    const released = all.filter((trip) => 'upTo' in trip);
    const trips = all.filter((trip) => !('upTo' in trip));
    this.#write(
      cluster,
      { ...others, guard: { revision: guard.revision + 1, trips, released } },
      entry?.kind,
    );
    return 'changed';
  }

  async touchGuard(cluster: ClusterName, { revision }: GuardState): Promise<Change> {
    return this.now(cluster).guard.revision === revision ? 'changed' : 'conflict';
  }

  /** Releases all holds of a cluster's guard. */
  releaseGuard(cluster: ClusterName): void {
    const { guard, ...others } = this.now(cluster);
    if (guard.trips.length === 0) return;
    this.#write(cluster, { ...others, guard: { revision: guard.revision + 1, trips: [] } }, 'release-guard');
  }

  /** Resolves when something is written, or at that time. */
  async changed(until: EpochMs, wait: (ring: () => void, at: EpochMs) => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#listeners.add(resolve);
    if (until < Infinity) wait(resolve, until);
    await promise;
    this.#listeners.delete(resolve);
  }

  #write(cluster: ClusterName, storedRules: StoredRules, guardAct?: AuditEntry['kind']): void {
    const before = this.now(cluster);
    const ruling = { at: this.#clock.now(), storedRules, guardAct };
    this.#written.get(cluster)?.push(ruling);
    this.onWritten(cluster, ruling, before);
    for (const listen of [...this.#listeners]) listen();
  }
}

/** Returns all times at which one of the controls expires. */
export function endsOf({ orders, fleetStop }: StoredRules): readonly EpochMs[] {
  const { exclude = [], include = [] } = orders.policy?.read ?? {};
  const timed = [...orders.stops, fleetStop, ...orders.holds, ...exclude, ...include];
  return timed.map((each) => each?.until).filter((at) => at !== undefined);
}
