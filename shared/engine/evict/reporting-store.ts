import type { ClusterName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { FinalRecord, Partition } from '#shared/eviction/records.ts';
import type { Commit, Store, TaintedNode } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Called after each write of a cluster: it succeeded or, with an error, failed. */
export type Stored = (cluster: ClusterName, error?: unknown) => void;

/** A store that reports whether decisions can be stored: nothing else shows a full disk. */
export class ReportingStore implements Store {
  readonly #store: Store;
  readonly #stored: Stored;

  constructor(store: Store, stored: Stored) {
    this.#store = store;
    this.#stored = stored;
  }

  load(ref: NodeRef, now: EpochMs, only?: readonly PodUid[]): Promise<Partition> {
    return this.#store.load(ref, now, only);
  }

  commit(ref: NodeRef, revision: number, change: Commit, now: EpochMs): Promise<'committed' | 'conflict'> {
    return this.#reported(ref, this.#store.commit(ref, revision, change, now));
  }

  end(ref: NodeRef, pods: readonly FinalRecord[], now: EpochMs): Promise<void> {
    return this.#reported(ref, this.#store.end(ref, pods, now));
  }

  taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode> {
    return this.#store.taintedNodes(cluster);
  }

  async #reported<T>({ cluster }: NodeRef, write: Promise<T>): Promise<T> {
    try {
      const done = await write;
      this.#stored(cluster);
      return done;
    } catch (error) {
      this.#stored(cluster, error);
      throw error;
    }
  }
}
