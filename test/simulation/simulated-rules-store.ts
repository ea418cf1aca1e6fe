import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Hold, Policy, ReleasedTrip, Stop, Trip } from '#shared/eviction/policy.ts';
import type { AuditEntry, Change, GuardState, RulesStore, StoredRules } from '#shared/state/rules-store.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** What was written of a cluster, and since when it stood. */
export interface Ruling {
  readonly at: EpochMs;
  readonly storedRules: StoredRules;
  /** What the guard did, or who released it; absent: something else was written. */
  readonly guardAct?: AuditEntry['kind'] | undefined;
}

const UNSAID: StoredRules = {
  orders: { revision: 0, holds: [] },
  guard: { revision: 0, trips: [] },
  fleetRevision: 0,
};

/** What governs the clusters, and what ever did. Whoever writes is heard at once by whoever reads after that. */
export class SimulatedRulebook implements Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'> {
  readonly #clock: Clock;
  readonly #written = new Map<ClusterName, Ruling[]>();
  readonly #listeners = new Set<() => void>();
  /** Called with whatever is written, right then. */
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

  /** In the order in which it was written. */
  history(cluster: ClusterName): readonly Ruling[] {
    return this.#written.get(cluster) ?? [];
  }

  /** The next moment at which something that stands ends by itself; `Infinity`: nothing does. */
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

  /** Absent: evictions are resumed. */
  setStop(cluster: ClusterName, stop?: Stop): void {
    const { orders, ...others } = this.now(cluster);
    const { stop: _before, ...rest } = orders;
    const revision = orders.revision + 1;
    this.#write(cluster, { ...others, orders: { ...rest, revision, ...(stop ? { stop } : {}) } });
  }

  /** Of all clusters; as {@link setStop}. */
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

  /** Somebody lets go whatever the guard of a cluster holds. */
  releaseGuard(cluster: ClusterName): void {
    const { guard, ...others } = this.now(cluster);
    if (guard.trips.length === 0) return;
    this.#write(cluster, { ...others, guard: { revision: guard.revision + 1, trips: [] } }, 'release-guard');
  }

  /** Resolves when something is written, or at that moment. */
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

/** All moments at which something of that ends by itself. */
export function endsOf({ orders, fleetStop }: StoredRules): readonly EpochMs[] {
  const { pausedUntil, exclude = [], only = [] } = orders.policy?.read ?? {};
  const ends = [orders.stop, fleetStop, ...orders.holds, ...exclude, ...only].map((each) => each?.until);
  return [pausedUntil, ...ends].filter((at) => at !== undefined);
}
