import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Stop, Trip } from '#shared/eviction/policy.ts';
import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';
import { nextOrders } from '#shared/state/operator-controls.ts';
import type {
  AuditEntry,
  AuditQuery,
  Change,
  GuardState,
  OperatorControls,
  RulesStore,
  StoredRules,
} from '#shared/state/rules-store.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { auditFor, fleetRules, guardStateOf, readableRules } from '#shared/state/stored-rules.ts';
import { changeObject, orStoreError } from './change-object.ts';
import {
  auditOf,
  evictionRules,
  type KeptRules,
  nameOfRules,
  noRules,
  readEvictionRules,
  rulesName,
  withEntry,
} from './eviction-rules.ts';

export interface ObjectRulesStoreOptions {
  readonly objects: Objects;
  readonly historyDays?: number;
}

/**
 * One `EvictionRules` for each cluster, and one for all, with as much of the audit as they can hold. Every method rejects
 * with `StoreError`.
 */
export class ObjectRulesStore implements RulesStore {
  readonly #objects: Objects;
  readonly #historyDays: number;

  constructor({ objects, historyDays = HISTORY_DAYS }: ObjectRulesStoreOptions) {
    this.#objects = objects;
    this.#historyDays = historyDays;
  }

  async read(cluster: ClusterName): Promise<StoredRules> {
    const [fleet, kept] = await Promise.all([this.#kept(undefined), this.#kept(cluster)]);
    return { orders: kept.orders, guard: kept.guard, ...fleet.fleet };
  }

  async readAll(clusters: readonly ClusterName[]): Promise<ReadonlyMap<ClusterName, StoredRules>> {
    const objects = await this.#all();
    const rulesOf = (cluster: ClusterName | undefined): KeptRules => {
      return keptIn(
        objects.find((each) => nameOfRules(each) === rulesName(cluster)),
        cluster,
      );
    };
    // Reject if the rules for all clusters are unreadable: they apply to every cluster.
    const { fleet } = rulesOf(undefined);
    return readableRules(clusters, (cluster) => {
      const { orders, guard } = rulesOf(cluster);
      return { orders, guard, ...fleet };
    });
  }

  changeOrders(
    cluster: ClusterName,
    found: OperatorControls,
    next: Omit<OperatorControls, 'revision'>,
    entry: AuditEntry,
  ): Promise<Change> {
    return this.change(cluster, entry, (kept) => {
      if (kept.orders.revision !== found.revision) return undefined;
      return { ...kept, orders: nextOrders(found, next) };
    });
  }

  async fleetStop(): Promise<Stop | undefined> {
    return (await this.#kept(undefined)).fleet.fleetStop;
  }

  changeFleetStop(found: Stop | undefined, next: Stop | undefined, entry: AuditEntry): Promise<Change> {
    return this.change(undefined, entry, (kept) => {
      if (kept.fleet.fleetStop?.at !== found?.at) return undefined;
      return stopping(kept, next);
    });
  }

  changeGuard(
    cluster: ClusterName,
    found: GuardState,
    trips: readonly Trip[],
    entry?: AuditEntry,
  ): Promise<Change> {
    return this.change(cluster, entry, (kept) => {
      if (kept.guard.revision !== found.revision) return undefined;
      return { ...kept, guard: guardStateOf(found.revision + 1, trips) };
    });
  }

  touchGuard(cluster: ClusterName, { revision }: GuardState): Promise<Change> {
    return this.change(cluster, undefined, (kept) => (kept.guard.revision === revision ? kept : undefined));
  }

  async note(entry: AuditEntry): Promise<void> {
    await this.change(entry.cluster, entry, (kept) => kept);
  }

  async audit(query: AuditQuery): Promise<readonly AuditEntry[]> {
    const objects = await this.#all();
    return auditFor(
      query,
      objects.flatMap((object) => auditOf(readEvictionRules(object)).toReversed()),
    );
  }

  /** `decide`: returns the next rules. `undefined`: the change was based on other rules. */
  protected async change(
    cluster: ClusterName | undefined,
    entry: AuditEntry | undefined,
    decide: (kept: KeptRules) => KeptRules | undefined,
  ): Promise<Change> {
    const stored = await changeObject(this.objectsFor(entry), rulesName(cluster), (object) => {
      const next = decide(keptIn(object, cluster));
      return next && evictionRules(entry ? this.noting(next, entry) : next, rulesName(cluster));
    });
    return stored === undefined ? 'conflict' : 'changed';
  }

  /** Returns the objects, for a write together with that audit entry: both or neither. */
  protected objectsFor(_entry: AuditEntry | undefined): Objects {
    return this.#objects;
  }

  /** Returns the rules with an audit entry, if they hold the audit. */
  protected noting(rules: KeptRules, entry: AuditEntry): KeptRules {
    return { ...rules, audit: withEntry(rules, entry, this.#historyDays) };
  }

  async #kept(cluster: ClusterName | undefined): Promise<KeptRules> {
    return keptIn(await orStoreError(this.#objects.get(rulesName(cluster))), cluster);
  }

  #all(): Promise<readonly unknown[]> {
    return orStoreError(Array.fromAsync(this.#objects.list()));
  }
}

const keptIn = (object: unknown, cluster: ClusterName | undefined): KeptRules =>
  object === undefined ? noRules(cluster) : readEvictionRules(object);

export const fleetStopIn = (object: unknown): Stop | undefined => keptIn(object, undefined).fleet.fleetStop;

/** Returns the object for all clusters, or a new one, with another stop. Throws `StoreError`. */
export function withFleetStop(object: unknown, stop: Stop | undefined): KubernetesObject {
  return evictionRules(stopping(keptIn(object, undefined), stop), rulesName(undefined));
}

const stopping = (kept: KeptRules, stop: Stop | undefined): KeptRules => ({
  ...kept,
  fleet: fleetRules(kept.fleet.fleetRevision + 1, stop),
});
