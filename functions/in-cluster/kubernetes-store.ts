import type { Countdowns, ServiceStore, Standing, Upcoming } from '#functions/local/service-state.ts';
import type { ClusterName, EpochMs, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { EndedPod, Ending, EvictionRecord, Partition } from '#shared/eviction/records.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import {
  type Commit,
  ENDED_WINDOW_MS,
  partitionOf,
  StoreError,
  type TaintedNode,
} from '#shared/store/store.ts';
import { HISTORY_DAYS, historyBefore, nodeTtl } from '#shared/store/stored.ts';
import { changeObject, writeObject } from './change-object.ts';
import {
  historyOf,
  isRunning,
  type KeptNode,
  labelsOf,
  type Moment,
  momentsOf,
  nodeEviction,
  nothingKept,
  objectName,
  readNodeEviction,
  type Standings,
  standingsOf,
  withHistory,
} from './node-eviction.ts';
import { orStoreError } from './object-store-error.ts';
import { OneAtATime } from './one-at-a-time.ts';

/** What ended stays with the records for longer than it is asked for: a writer's clock may be ahead of a reader's. */
const RECENT_MS = ENDED_WINDOW_MS + 5 * 60_000;
/** Objects that were read for a commit that may follow. */
const REMEMBERED = 500;

export interface KubernetesStoreOptions {
  /** The `NodeEviction` objects of our namespace. */
  readonly objects: Objects;
  /** The cluster that they are in: there they have the names of its nodes. */
  readonly own: ClusterName;
  /** For so long is kept what became of evictions. */
  readonly historyDays?: number;
  /** Whether this process is the one that writes now, and nobody else; absent: it is one of several, who all may. */
  readonly leads?: () => boolean;
  /** Told of an object that cannot be read, which is passed over where all are asked for; absent: nobody is to miss it, and asking rejects. */
  readonly unreadable?: (reason: StoreError) => void;
}

/**
 * The store in the cluster itself: one `NodeEviction` for each node. A change is one write of the whole object on condition of
 * its resource version; and as each changes `revision`, none is the no-op by which two writers would both win. Who leads reads an
 * object once: from then on it stands as he wrote it last, and should it not, a write is in conflict, and it is read again.
 */
export class KubernetesStore implements ServiceStore {
  readonly #objects: Objects;
  readonly #own: ClusterName;
  readonly #historyDays: number;
  readonly #leads: (() => boolean) | undefined;
  readonly #unreadable: ((reason: StoreError) => void) | undefined;
  /** As they were read or written last, by name. */
  readonly #remembered = new Map<string, unknown>();
  /** What remembered objects say: a pass asks for its node several times for each pod, and unpacking takes a millisecond each. */
  readonly #unpacked = new WeakMap<object, KeptNode>();
  /** By name: so that what is remembered is what was stored last, and nothing of ours is in conflict with the rest. */
  readonly #turns = new OneAtATime();
  /** How many evictions of each node stand how, by name, as it was read or written last. */
  readonly #standings = new Map<string, { readonly cluster: ClusterName; readonly counts: Standings }>();

  constructor({ objects, own, historyDays = HISTORY_DAYS, leads, unreadable }: KubernetesStoreOptions) {
    this.#objects = objects;
    this.#own = own;
    this.#historyDays = historyDays;
    this.#leads = leads;
    this.#unreadable = unreadable;
  }

  async load(ref: NodeRef, now: EpochMs, only?: readonly PodUid[]): Promise<Partition> {
    const { revision, node, scheduled, ended } = await this.keptOf(ref);
    const asked = only && new Set(only);
    const isAsked = ({ uid }: Pick<EvictionRecord, 'uid'>) => !asked || asked.has(uid);
    const since = now - ENDED_WINDOW_MS;
    return partitionOf(
      { ref, revision, node },
      scheduled.filter(isAsked),
      ended.filter((pod) => pod.endedAt >= since && isAsked(pod)),
    );
  }

  commit(ref: NodeRef, revision: number, change: Commit, now: EpochMs): Promise<'committed' | 'conflict'> {
    return this.#turns.run(objectName(ref, this.#own), () => this.#commit(ref, revision, change, now));
  }

  async #commit(
    ref: NodeRef,
    revision: number,
    change: Commit,
    now: EpochMs,
  ): Promise<'committed' | 'conflict'> {
    const remembered = this.#remembered.get(objectName(ref, this.#own));
    // Whoever commits has loaded: what was read then stands still, or the write is in conflict.
    const kept = remembered === undefined ? await this.#read(ref) : this.#keptIn(remembered);
    if (kept.revision !== revision) return 'conflict';
    const { node, schedule, end, noted = [], live } = change;
    const written = new Map(kept.scheduled.map((record) => [record.uid, record]));
    for (const record of schedule) written.set(record.uid, record);
    for (const { uid } of end) written.delete(uid);
    const ended = end.map((each) => ({ ...each, endedAt: now }));
    const { ttl: _ttl, ...rest } = {
      ...kept,
      node: node ?? kept.node,
      scheduled: [...written.values()],
      ended: [...kept.ended, ...ended],
    };
    const notes = noted.length === 0 ? [] : [{ at: now, noted, ended: [] }];
    const object = this.#next(live ? rest : { ...rest, ttl: nodeTtl(now) }, notes, now);
    const stored = await writeObject(this.#objects, object);
    this.#remember(objectName(ref, this.#own), stored);
    return stored === undefined ? 'conflict' : 'committed';
  }

  async end(ref: NodeRef, pods: readonly Ending[], now: EpochMs): Promise<void> {
    if (pods.length === 0) return;
    const gone = new Set(pods.map(({ uid }) => uid));
    const ended = pods.map((each): EndedPod => ({ ...each, endedAt: now }));
    const name = objectName(ref, this.#own);
    const without = (object: unknown) => {
      const kept = object === undefined ? nothingKept(ref) : this.#keptIn(object);
      const scheduled = kept.scheduled.filter(({ uid }) => !gone.has(uid));
      return this.#next({ ...kept, scheduled, ended: [...kept.ended, ...ended] }, [], now);
    };
    await this.#turns.run(name, async () => {
      const known = this.#remembered.get(name);
      this.#remember(name, await changeObject(this.#objects, name, without, known));
    });
  }

  async *taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode> {
    for await (const { ref, node } of this.kept(labelsOf(cluster, true))) {
      if (ref.cluster === cluster && node && node.taints.length > 0) yield { node: ref.node, state: node };
    }
  }

  async *upcoming(): AsyncIterable<Upcoming> {
    for await (const { ref, scheduled } of this.kept()) {
      const moments = new Set(scheduled.map(({ fireAt }) => fireAt));
      for (const fireAt of [...moments].sort((a, b) => a - b)) yield { ref, fireAt };
    }
  }

  async countdowns(limit: number): Promise<Countdowns> {
    const kept = await Array.fromAsync(this.kept(), ({ ref, scheduled }) =>
      scheduled.filter(isRunning).map((record) => ({ ref, record })),
    );
    const all = kept.flat().sort((a, b) => a.record.fireAt - b.record.fireAt);
    return { total: all.length, soonest: all.slice(0, limit) };
  }

  standings(): readonly Standing[] {
    const sums = new Map<string, Standing>();
    for (const { cluster, counts } of this.#standings.values()) {
      for (const [key, evictions] of Object.entries(counts)) {
        const standing = key as Standing['standing'];
        const before = sums.get(`${cluster} ${standing}`)?.evictions ?? 0;
        sums.set(`${cluster} ${standing}`, { cluster, standing, evictions: before + evictions });
      }
    }
    return [...sums.values()];
  }

  /** All that is kept of nodes, of those with these labels. Rejects with `StoreError`. */
  async *kept(labels?: Readonly<Record<string, string>>): AsyncIterable<KeptNode> {
    const objects = this.#objects.list(labels)[Symbol.asyncIterator]();
    for (;;) {
      const next = await orStoreError(objects.next());
      if (next.done) return;
      const kept = this.#readable(next.value);
      if (!kept) continue;
      this.#count(kept);
      yield kept;
    }
  }

  #readable(object: unknown): KeptNode | undefined {
    try {
      return readNodeEviction(object);
    } catch (error) {
      if (!this.#unreadable || !(error instanceof StoreError)) throw error;
      this.#unreadable(error);
      return undefined;
    }
  }

  /** What is kept of one node. Rejects with `StoreError`. */
  keptOf(ref: NodeRef): Promise<KeptNode> {
    return this.#turns.run(objectName(ref, this.#own), () => this.#read(ref));
  }

  /** Removes the objects of nodes with nothing left to watch or to tell, when their time is over. Rejects with `StoreError`. */
  async purge(now: EpochMs): Promise<void> {
    const before = historyBefore(now, this.#historyDays);
    for await (const kept of this.kept()) {
      const { ref, ttl = Number.POSITIVE_INFINITY, scheduled, resourceVersion } = kept;
      if (ttl * 1000 > now || scheduled.length > 0 || resourceVersion === undefined) continue;
      if (historyOf(kept).some(({ at }) => at > before)) continue;
      this.#refuseIdle();
      const name = objectName(ref, this.#own);
      await this.#turns.run(name, async () => {
        this.#remembered.delete(name);
        await orStoreError(this.#objects.remove(name, resourceVersion));
      });
    }
  }

  async #read(ref: NodeRef): Promise<KeptNode> {
    const name = objectName(ref, this.#own);
    const known = this.#leads?.() ? this.#remembered.get(name) : undefined;
    const object = known ?? (await orStoreError(this.#objects.get(name)));
    const kept = object === undefined ? nothingKept(ref) : this.#keptIn(object);
    // What cannot be read is not remembered: once somebody deleted it, it is seen to be gone.
    this.#remember(name, object);
    this.#count(kept);
    return kept;
  }

  #keptIn(object: unknown): KeptNode {
    if (typeof object !== 'object' || object === null) return readNodeEviction(object);
    const kept = this.#unpacked.get(object) ?? readNodeEviction(object);
    this.#unpacked.set(object, kept);
    return kept;
  }

  #remember(name: string, object: unknown): void {
    this.#remembered.delete(name);
    if (object === undefined) return;
    this.#remembered.set(name, object);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest);
  }

  /** What ended longer ago than loads ask for becomes history. */
  #aged(kept: KeptNode, more: readonly Moment[], now: EpochMs): KeptNode {
    const since = now - RECENT_MS;
    const [ended, old] = [
      kept.ended.filter(isRecent(since)),
      kept.ended.filter((pod) => !isRecent(since)(pod)),
    ];
    if (old.length + more.length === 0) return kept;
    const history = withHistory(kept, [...momentsOf(old), ...more], now, this.#historyDays);
    const { history: _history, ...rest } = kept;
    return { ...rest, ended, ...(history === undefined ? {} : { history }) };
  }

  #count(kept: KeptNode): void {
    const counts = standingsOf(kept);
    const name = objectName(kept.ref, this.#own);
    if (Object.keys(counts).length === 0) this.#standings.delete(name);
    else this.#standings.set(name, { cluster: kept.ref.cluster, counts });
  }

  /** The object to write: under the next revision, its history grown by `more`. */
  #next(kept: KeptNode, more: readonly Moment[], now: EpochMs): ReturnType<typeof nodeEviction> {
    this.#refuseIdle();
    const object = nodeEviction({ ...this.#aged(kept, more, now), revision: kept.revision + 1 }, this.#own);
    this.#remembered.delete(object.metadata.name);
    this.#count(kept);
    return object;
  }

  #refuseIdle(): void {
    if (this.#leads?.() !== false) return;
    throw new StoreError('This replica does not hold the lease now, so it writes nothing.');
  }
}

const isRecent =
  (since: EpochMs) =>
  ({ endedAt }: EndedPod): boolean =>
    endedAt >= since;
