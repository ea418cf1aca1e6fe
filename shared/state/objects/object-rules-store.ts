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

export interface AuditLog {
  /** Returns the objects, for a write together with that entry: both or neither. */
  noting(entry: AuditEntry): Objects;
  /** Resolves with the entries, the newest first. Rejects with `StoreError`. */
  entries(query: AuditQuery): Promise<readonly AuditEntry[]>;
}

export interface ObjectRulesStoreOptions {
  readonly objects: Objects;
  /** Absent: the objects hold the audit, as much of it as they can. */
  readonly audit?: AuditLog;
  readonly historyDays?: number;
}

/** One `EvictionRules` for each cluster, and one for all. Every method rejects with `StoreError`. */
export class ObjectRulesStore implements RulesStore {
  readonly #objects: Objects;
  readonly #audit: AuditLog | undefined;
  readonly #historyDays: number;

  constructor({ objects, audit, historyDays = HISTORY_DAYS }: ObjectRulesStoreOptions) {
    this.#objects = objects;
    this.#audit = audit;
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
    if (this.#audit) return this.#audit.entries(query);
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
    const objects = (entry && this.#audit?.noting(entry)) ?? this.#objects;
    const stored = await changeObject(objects, rulesName(cluster), (object) => {
      const kept = keptIn(object, cluster);
      const next = decide(kept);
      if (!next) return undefined;
      const audit = entry && !this.#audit ? { audit: withEntry(kept, entry, this.#historyDays) } : {};
      return evictionRules({ ...next, ...audit }, rulesName(cluster));
    });
    return stored === undefined ? 'conflict' : 'changed';
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
