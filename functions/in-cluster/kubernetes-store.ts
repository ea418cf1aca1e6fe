import type { Countdowns, ServiceStore, Standing, Upcoming } from '#functions/local/service-state.ts';
import type { ClusterName, EpochMs, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { EndedPod, Ending, Partition } from '#shared/eviction/records.ts';
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
  nodeEviction,
  nothingKept,
  objectName,
  pastName,
  readNodeEviction,
  type Standings,
  standingsOf,
  withHistory,
} from './node-eviction.ts';
import { orStoreError } from './object-store-error.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { pack } from './packed.ts';
import {
  endsOf,
  filled,
  isFull,
  liveSlots,
  MOST_SLOTS,
  NO_SLOTS,
  nextSlot,
  recently,
  SLOT_CHARS,
  slotWith,
} from './past-slots.ts';

/** Of objects that were read for what may follow, as JSON: some 1,500 nodes of 50 pods, or tombstones of 100,000 pods. */
const REMEMBERED_CHARS = 4_000_000;
/** Ends that go into an object together. */
const ENDS_AT_ONCE = 500;

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
 * The store in the cluster itself: one `NodeEviction` for each node, and of one that is busy others beside it, of what ended. A change is one write of the whole object on condition of
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
  readonly #remembered = new Map<string, { readonly object: unknown; readonly chars: number }>();
  #rememberedChars = 0;
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
    const [kept, ...past] = await this.#turns.run(objectName(ref, this.#own), async () => {
      const own = await this.#read(ref);
      const slots = only?.length === 0 ? [] : liveSlots(own.past ?? NO_SLOTS, now);
      return [own, ...(await Promise.all(slots.map((slot) => this.#readPast(ref, slot))))] as const;
    });
    const { revision, node, scheduled } = kept;
    const asked = only && new Set(only);
    const since = now - ENDED_WINDOW_MS;
    const ended = [...past, kept]
      .flatMap((each) => endsOf(each, asked))
      .filter(({ endedAt }) => endedAt >= since);
    return partitionOf(
      { ref, revision, node },
      scheduled.filter(({ uid }) => !asked || asked.has(uid)),
      past.length === 0 ? ended : ended.sort((a, b) => a.endedAt - b.endedAt),
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
    const remembered = this.#remembered.get(objectName(ref, this.#own))?.object;
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
    };
    const notes = noted.length === 0 ? [] : [{ at: now, noted, ended: [] }];
    const object = await this.#next(live ? rest : { ...rest, ttl: nodeTtl(now) }, ended, notes, now);
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
      const kept = object === undefined ? nothingKept(ref, name) : this.#keptIn(object);
      const scheduled = kept.scheduled.filter(({ uid }) => !gone.has(uid));
      return this.#next({ ...kept, scheduled }, ended, [], now);
    };
    await this.#turns.run(name, async () => {
      const known = this.#remembered.get(name)?.object;
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

  /** What is kept of nodes, of those with these labels, without what is in objects beside theirs. Rejects with `StoreError`. */
  async *kept(labels?: Readonly<Record<string, string>>): AsyncIterable<KeptNode> {
    for await (const kept of this.all(labels)) {
      if (kept.name !== objectName(kept.ref, this.#own)) continue;
      this.#count(kept);
      yield kept;
    }
  }

  /** All objects of nodes, of those with these labels, by which their whole history is told. Rejects with `StoreError`. */
  async *all(labels?: Readonly<Record<string, string>>): AsyncIterable<KeptNode> {
    const objects = this.#objects.list(labels)[Symbol.asyncIterator]();
    for (;;) {
      const next = await orStoreError(objects.next());
      if (next.done) return;
      const kept = this.#readable(next.value);
      if (kept) yield kept;
    }
  }

  /** The objects of one node by which its whole history is told. Rejects with `StoreError`. */
  allOf(ref: NodeRef): Promise<readonly KeptNode[]> {
    return this.#turns.run(objectName(ref, this.#own), async () => [
      await this.#read(ref),
      await this.#readPast(ref, 'history'),
    ]);
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
    for await (const kept of this.all()) {
      const { ref, name, ttl = Number.POSITIVE_INFINITY, scheduled, resourceVersion } = kept;
      const own = objectName(ref, this.#own);
      const isOwn = name === own;
      const isLive = isOwn ? ttl * 1000 > now || scheduled.length > 0 : endsOf(kept).some(recently(now));
      if (isLive || resourceVersion === undefined) continue;
      const tells = isOwn || kept.history !== undefined;
      if (tells && historyOf(kept).some(({ at }) => at > before)) continue;
      this.#refuseIdle();
      await this.#turns.run(own, async () => {
        this.#remember(name, undefined);
        await orStoreError(this.#objects.remove(name, resourceVersion));
      });
    }
  }

  async #read(ref: NodeRef): Promise<KeptNode> {
    const kept = await this.#readAs(objectName(ref, this.#own), ref);
    this.#count(kept);
    return kept;
  }

  /** An object beside the node's own; whoever leads knows it as he wrote it last, too. */
  #readPast(ref: NodeRef, part: number | 'history'): Promise<KeptNode> {
    return this.#readAs(pastName(ref, part), ref);
  }

  async #readAs(name: string, ref: NodeRef): Promise<KeptNode> {
    const known = this.#leads?.() ? this.#remembered.get(name)?.object : undefined;
    const object = known ?? (await orStoreError(this.#objects.get(name)));
    const kept = object === undefined ? nothingKept(ref, name) : this.#keptIn(object);
    // What cannot be read is not remembered: once somebody deleted it, it is seen to be gone.
    this.#remember(name, object);
    return kept;
  }

  #keptIn(object: unknown): KeptNode {
    if (typeof object !== 'object' || object === null) return readNodeEviction(object);
    const kept = this.#unpacked.get(object) ?? readNodeEviction(object);
    this.#unpacked.set(object, kept);
    return kept;
  }

  #remember(name: string, object: unknown): void {
    const before = this.#remembered.get(name);
    this.#rememberedChars -= before?.chars ?? 0;
    this.#remembered.delete(name);
    if (object === undefined) return;
    const chars = before?.object === object ? before.chars : JSON.stringify(object).length;
    this.#remembered.set(name, { object, chars });
    this.#rememberedChars += chars;
    for (const [oldest, each] of this.#remembered) {
      if (this.#rememberedChars <= REMEMBERED_CHARS) return;
      this.#rememberedChars -= each.chars;
      this.#remembered.delete(oldest);
    }
  }

  /**
   * What is left in a node's own object when that is full: what ended, and what was noted, is then in objects beside it, which are written
   * first. Who is killed in between leaves it in both. Where these have no room, only a write that adds to it is refused (`adds`).
   */
  async #moved(kept: KeptNode, adds: boolean, now: EpochMs): Promise<KeptNode> {
    if (!isFull(kept)) return kept;
    const { ref } = kept;
    let past = kept.past ?? NO_SLOTS;
    const recent = kept.ended.filter(recently(now));
    for (let first = 0; first < recent.length; first += ENDS_AT_ONCE) {
      const ends = recent.slice(first, first + ENDS_AT_ONCE);
      while (!(await this.#fill(ref, past.current, ends, now))) {
        const current = nextSlot(past, now);
        if (current === undefined && adds) throw tooMany(ref);
        if (current === undefined) return kept;
        past = { ...past, current };
      }
      past = filled(past, past.current, ends);
    }
    await this.#changePast(ref, 'history', (found) => {
      const history = withHistory(found, historyOf(kept), now, this.#historyDays);
      const { history: _history, ...rest } = found;
      return { ...rest, ...(history === undefined ? {} : { history }) };
    });
    const { history: _history, ...rest } = kept;
    return { ...rest, ended: [], past };
  }

  /** Writes more ends into an object; `false`: it has no room for them. */
  async #fill(ref: NodeRef, slot: number, ends: readonly EndedPod[], now: EpochMs): Promise<boolean> {
    let hasRoom = true;
    await this.#changePast(ref, slot, (found) => {
      const next = { ...found, ...slotWith(found, ends, now) };
      const isNew = endsOf(found).filter(recently(now)).length === 0;
      hasRoom = isNew || pack({ ended: next.ended, gone: next.gone }).length <= SLOT_CHARS;
      return hasRoom ? next : undefined;
    });
    return hasRoom;
  }

  async #changePast(
    ref: NodeRef,
    part: number | 'history',
    decide: (found: KeptNode) => KeptNode | undefined,
  ): Promise<void> {
    const name = pastName(ref, part);
    const known = this.#remembered.get(name)?.object;
    const change = (object: unknown) => {
      this.#refuseIdle();
      const found = object === undefined ? nothingKept(ref, name) : this.#keptIn(object);
      const next = decide(found);
      return next && nodeEviction({ ...next, revision: found.revision + 1 });
    };
    const stored = await changeObject(this.#objects, name, change, known);
    if (stored !== undefined) this.#remember(name, stored);
  }

  #count(kept: KeptNode): void {
    const counts = standingsOf(kept);
    const name = objectName(kept.ref, this.#own);
    if (Object.keys(counts).length === 0) this.#standings.delete(name);
    else this.#standings.set(name, { cluster: kept.ref.cluster, counts });
  }

  /** The object to write: under the next revision, with what ended since and what is noted. */
  async #next(
    found: KeptNode,
    ends: readonly EndedPod[],
    notes: readonly Moment[],
    now: EpochMs,
  ): Promise<ReturnType<typeof nodeEviction>> {
    this.#refuseIdle();
    const moved = await this.#moved(found, ends.length > 0, now);
    const { history: before, ...kept } = moved;
    const history = notes.length === 0 ? before : withHistory(moved, notes, now, this.#historyDays);
    const oldest = historyBefore(now, this.#historyDays);
    const ended = [...kept.ended.filter(({ endedAt }) => endedAt > oldest), ...ends];
    const revision = kept.revision + 1;
    const next = { ...kept, ended, revision, ...(history === undefined ? {} : { history }) };
    const object = nodeEviction(next);
    this.#remember(next.name, undefined);
    this.#count(next);
    return object;
  }

  #refuseIdle(): void {
    if (this.#leads?.() !== false) return;
    throw new StoreError('This replica does not hold the lease now, so it writes nothing.');
  }
}

const tooMany = ({ node, cluster }: NodeRef): StoreError =>
  new StoreError(
    `What ended on node ${node} of cluster ${cluster} in the last half hour fills ${MOST_SLOTS} objects, which is all it may: let fewer pods of that node come and go, or run Taintward outside the cluster.`,
  );
