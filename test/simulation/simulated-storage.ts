import type { ClusterName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { dynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { EmbeddedPermits } from '#shared/state/embedded-permits.ts';
import type { History } from '#shared/state/history.ts';
import type { Leases } from '#shared/state/lease.ts';
import type { Permits } from '#shared/state/permits.ts';
import type { ProofStore } from '#shared/state/proofs.ts';
import type { Access, ClusterRegistry, RegisteredCluster } from '#shared/state/registry.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import { sqliteLeases, sqlitePermits } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { ENDED_WINDOW_MS, type Store } from '#shared/state/store.ts';
import { FakeDynamoDb, fakeClient, type Item } from '#test/world/fake-dynamodb.ts';
import { ProofsInMemory } from '#test/world/proofs-in-memory.ts';
import type { Process, Surroundings } from './process.ts';

/** The stored data, as one process accesses it. */
export interface StoragePorts {
  readonly store: Store;
  readonly history: Pick<History, 'noteGone' | 'nodesEvictedFrom'>;
  readonly permits: Permits;
  readonly proofs: ProofStore;
  readonly leases: Leases;
  readonly registry: Pick<ClusterRegistry, 'get' | 'add' | 'remove'>;
}

/** The storage of the service. */
export interface SimulatedStorage {
  ports(process: Process): StoragePorts;
  /** The same data without delay or failure, for observers. */
  readonly open: StoragePorts;
  /** Removes the items whose time to live has expired, and returns them. */
  sweep(): readonly Item[];
  /** Reports whether a pod's record has ended, however long ago. */
  hasEnded(ref: NodeRef, uid: PodUid): Promise<boolean>;
  /** Sets the callback for each item that a query reads. */
  onQueried(listen: (item: Item) => void): void;
  close(): void;
  /** The store, if the service is one process. */
  readonly sqlite?: SqliteStore;
}

/** Returns DynamoDB: a process may die, and others may write, between any two of its calls. */
export function dynamoStorage({ clock, weather }: Surroundings): SimulatedStorage {
  const table = new FakeDynamoDb(clock, weather.whims);
  const portsOf = (perform: (command: unknown) => Promise<object>): StoragePorts => {
    const adapter = new DynamoDbTable({ client: fakeClient(perform), tableName: 'taintward' });
    return {
      store: new DynamoDbStore(adapter),
      history: new DynamoDbHistory(adapter),
      permits: dynamoDbPermits(adapter),
      proofs: dynamoDbProofs(adapter),
      leases: new DynamoDbLeases(adapter),
      registry: new DynamoDbClusterRegistry(adapter),
    };
  };
  const open = portsOf(async (command) => table.calmly(command));
  return {
    ports: (process) => portsOf((command) => process.request('store', () => table.perform(command))),
    open,
    hasEnded: (ref, uid) => hasEnded(open.store, ref, uid),
    sweep: () => table.sweep(),
    onQueried: (listen) => {
      table.onQueried = listen;
    },
    close: () => undefined,
  };
}

/** Returns the database of one process. */
export function sqliteStorage({ clock }: Surroundings): SimulatedStorage {
  const store = new SqliteStore({ path: ':memory:' });
  const leases = sqliteLeases(store.database);
  const history = new SqliteHistory(store);
  const registry = new RegistryInMemory();
  const stored = sqlitePermits(store.database);
  const permitsOf = (workloads: Permits) => new EmbeddedPermits(() => clock.now(), workloads);
  const proofs = new ProofsInMemory();
  const open: StoragePorts = { store, history, permits: permitsOf(stored), proofs, leases, registry };
  return {
    ports: (process) => ({
      store: {
        load: (...args) => process.request('store', () => store.load(...args)),
        commit: (...args) => process.request('store', () => store.commit(...args)),
        end: (...args) => process.request('store', () => store.end(...args)),
        async *taintedNodes(cluster) {
          yield* await process.request('store', () => Array.fromAsync(store.taintedNodes(cluster)));
        },
      },
      history: requesting(history, (perform) => process.request('store', perform)),
      // Each process counts at the rates from its own start.
      permits: permitsOf(requesting<Permits>(stored, (perform) => process.request('store', perform))),
      proofs: requesting(proofs, (perform) => process.request('store', perform)),
      leases: requesting(leases, (perform) => process.request('store', perform)),
      registry,
    }),
    open,
    hasEnded: (ref, uid) => hasEnded(store, ref, uid),
    sweep: () => [],
    onQueried: () => undefined,
    close: () => store.close(),
    sqlite: store,
  };
}

/** Returns an object whose methods all are requests. */
export function requesting<T extends object>(
  whole: T,
  request: (perform: () => unknown) => Promise<unknown>,
): T {
  return new Proxy(whole, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => request(() => member.apply(target, args));
    },
  });
}

/** Loads as of the beginning of time, which reads everything that has ended since. */
const hasEnded = async (store: Store, ref: NodeRef, uid: PodUid): Promise<boolean> =>
  (await store.load(ref, ENDED_WINDOW_MS)).ended.has(uid);

class RegistryInMemory implements Pick<ClusterRegistry, 'get' | 'add' | 'remove'> {
  readonly #clusters = new Map<ClusterName, RegisteredCluster<Access>>();

  async get(name: ClusterName): Promise<RegisteredCluster | undefined> {
    return this.#clusters.get(name);
  }

  async add(cluster: RegisteredCluster<Access>): Promise<'added' | 'exists'> {
    this.#clusters.set(cluster.name, cluster);
    return 'added';
  }

  async remove(name: ClusterName): Promise<'removed' | 'unknown'> {
    return this.#clusters.delete(name) ? 'removed' : 'unknown';
  }
}
