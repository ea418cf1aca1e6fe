import { defined } from '#shared/defined.ts';
import type { ClusterName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { EndedPod } from '#shared/eviction/records.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import { ENDED_WINDOW_MS, StoreError } from '#shared/state/store.ts';
import { HISTORY_DAYS, historyBefore } from '#shared/state/stored.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { changeObject, orStoreError, writeObject } from './change-object.ts';
import {
  historyOf,
  type KeptNode,
  labelsOf,
  nodeEviction,
  nothingKept,
  objectName,
  pastName,
  readNodeEviction,
  withHistory,
} from './node-eviction.ts';
import { figuresOf, type HistoryWrite, type NodeFigures, ObjectStore, Remembered } from './object-store.ts';
import { pack } from './packed.ts';
import {
  endsOf,
  filled,
  isFull,
  liveSlots,
  MAX_SLOTS,
  NO_SLOTS,
  nextSlot,
  recently,
  SLOT_CHARS,
  slotWith,
} from './past-slots.ts';

/** Maximum of remembered objects' characters as JSON: some 1,500 nodes of 50 pods, or tombstones of 100,000 pods. */
export const REMEMBERED_CHARS = 4_000_000;
const MAX_CONCURRENT_ENDS = 500;

export interface KubernetesStoreOptions {
  readonly objects: Objects;
  /** The cluster that the objects are in. Objects of its nodes have the nodes' names. */
  readonly own: ClusterName;
  readonly historyDays?: number;
  /** Reports whether this process is the only writer now. Absent: several processes may write. */
  readonly leads?: () => boolean;
  /** Called for an unreadable object, which lists then omit. Absent: listing rejects instead. */
  readonly unreadable?: (reason: StoreError) => void;
}

/**
 * One `NodeEviction` for each node, and further objects for ended evictions of busy nodes. Each write changes
 * `revision`, so none is a no-op by which two writers would both succeed. The leader relies on its own last write; a
 * conflict makes it read again.
 */
export class KubernetesStore extends ObjectStore {
  readonly #options: KubernetesStoreOptions & { readonly historyDays: number };
  readonly #remembered = new Remembered<unknown>(REMEMBERED_CHARS);
  /** A pass reads its node several times for each pod, and unpacking takes a millisecond each time. */
  readonly #unpacked = new WeakMap<object, KeptNode>();

  constructor(options: KubernetesStoreOptions) {
    super();
    this.#options = { historyDays: HISTORY_DAYS, ...options };
  }

  protected read(ref: NodeRef): Promise<KeptNode> {
    return this.#readAs(objectName(ref, this.#options.own), ref);
  }

  protected async known(ref: NodeRef): Promise<KeptNode> {
    const remembered = this.#remembered.get(objectName(ref, this.#options.own));
    return remembered === undefined ? this.read(ref) : this.#keptIn(remembered);
  }

  protected async ended(
    kept: KeptNode,
    now: EpochMs,
    only?: ReadonlySet<PodUid>,
  ): Promise<readonly EndedPod[]> {
    const slots = liveSlots(kept.past ?? NO_SLOTS, now);
    const past = await Promise.all(slots.map((slot) => this.#readPast(kept.ref, slot)));
    const ended = [...past, kept]
      .flatMap((each) => endsOf(each, only))
      .filter(({ endedAt }) => endedAt >= now - ENDED_WINDOW_MS);
    return past.length === 0 ? ended : ended.sort((a, b) => a.endedAt - b.endedAt);
  }

  protected async write(next: KeptNode, { ended, noted, now }: HistoryWrite): Promise<boolean> {
    this.#refuseIdle();
    const moved = await this.#moved(next, ended.length > 0, now);
    const { history: before, ...kept } = moved;
    const history = noted.length === 0 ? before : withHistory(moved, noted, now, this.#options.historyDays);
    const oldest = historyBefore(now, this.#options.historyDays);
    const ends = [...kept.ended.filter(({ endedAt }) => endedAt > oldest), ...ended];
    const object = nodeEviction({ ...kept, ended: ends, ...defined({ history }) });
    // Whatever the result of this write, the remembered object is outdated.
    this.#remembered.forget(next.name);
    const stored = await writeObject(this.#options.objects, object);
    this.#remember(next.name, stored);
    return stored !== undefined;
  }

  protected async *figures(tainted?: ClusterName): AsyncIterable<NodeFigures> {
    for await (const kept of this.kept(tainted && labelsOf(tainted, true))) yield figuresOf(kept);
  }

  /** Rejects with `StoreError`. */
  async *kept(labels?: Readonly<Record<string, string>>): AsyncIterable<KeptNode> {
    for await (const kept of this.all(labels)) {
      if (kept.name === objectName(kept.ref, this.#options.own)) yield kept;
    }
  }

  /** Together, all objects have the nodes' whole history. Rejects with `StoreError`. */
  async *all(labels?: Readonly<Record<string, string>>): AsyncIterable<KeptNode> {
    const objects = this.#options.objects.list(labels)[Symbol.asyncIterator]();
    for (;;) {
      const next = await orStoreError(objects.next());
      if (next.done) return;
      const kept = this.#readable(next.value);
      if (kept) yield kept;
    }
  }

  allOf(ref: NodeRef): Promise<readonly KeptNode[]> {
    return this.inTurn(ref, async () => [await this.read(ref), await this.#readPast(ref, 'history')]);
  }

  #readable(object: unknown): KeptNode | undefined {
    try {
      return readNodeEviction(object);
    } catch (error) {
      if (!this.#options.unreadable || !(error instanceof StoreError)) throw error;
      this.#options.unreadable(error);
      return undefined;
    }
  }

  /** Removes objects without live records, recent ends or history. Rejects with `StoreError`. */
  async purge(now: EpochMs): Promise<void> {
    const before = historyBefore(now, this.#options.historyDays);
    for await (const kept of this.all()) {
      const { ref, name, ttl = Number.POSITIVE_INFINITY, scheduled, resourceVersion } = kept;
      const own = objectName(ref, this.#options.own);
      const isOwn = name === own;
      const isLive = isOwn ? ttl * 1000 > now || scheduled.length > 0 : endsOf(kept).some(recently(now));
      if (isLive || resourceVersion === undefined) continue;
      const hasHistory = isOwn || kept.history !== undefined;
      if (hasHistory && historyOf(kept).some(({ at }) => at > before)) continue;
      this.#refuseIdle();
      await this.inTurn(ref, async () => {
        this.#remembered.forget(name);
        await orStoreError(this.#options.objects.remove(name, resourceVersion));
      });
    }
  }

  /** The leader relies on its own last write here too. */
  #readPast(ref: NodeRef, part: number | 'history'): Promise<KeptNode> {
    return this.#readAs(pastName(ref, part), ref);
  }

  async #readAs(name: string, ref: NodeRef): Promise<KeptNode> {
    const known = this.#options.leads?.() ? this.#remembered.get(name) : undefined;
    const object = known ?? (await orStoreError(this.#options.objects.get(name)));
    const kept = object === undefined ? nothingKept(ref, name) : this.#keptIn(object);
    // Unreadable objects are not remembered. Once an operator deletes one, the next read finds it gone.
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
    if (object === undefined) this.#remembered.forget(name);
    else this.#remembered.set(name, object, (each) => JSON.stringify(each).length);
  }

  /**
   * If a node's own object is full, ends and notes first move to objects beside it; a kill in between leaves them in
   * both. Without room there, only a write that adds ends (`adds`) is rejected.
   */
  async #moved(kept: KeptNode, adds: boolean, now: EpochMs): Promise<KeptNode> {
    if (!isFull(kept)) return kept;
    const { ref } = kept;
    let past = kept.past ?? NO_SLOTS;
    const recent = kept.ended.filter(recently(now));
    for (let first = 0; first < recent.length; first += MAX_CONCURRENT_ENDS) {
      const ends = recent.slice(first, first + MAX_CONCURRENT_ENDS);
      while (!(await this.#fill(ref, past.current, ends, now))) {
        const current = nextSlot(past, now);
        if (current === undefined && adds) throw tooMany(ref);
        if (current === undefined) return kept;
        past = { ...past, current };
      }
      past = filled(past, past.current, ends);
    }
    await this.#changePast(ref, 'history', (found) => {
      const history = withHistory(found, historyOf(kept), now, this.#options.historyDays);
      const { history: _history, ...rest } = found;
      return { ...rest, ...defined({ history }) };
    });
    const { history: _history, ...rest } = kept;
    return { ...rest, ended: [], past };
  }

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
    const known = this.#remembered.get(name);
    const change = (object: unknown) => {
      this.#refuseIdle();
      const found = object === undefined ? nothingKept(ref, name) : this.#keptIn(object);
      const next = decide(found);
      return next && nodeEviction({ ...next, revision: found.revision + 1 });
    };
    const stored = await changeObject(this.#options.objects, name, change, known);
    if (stored !== undefined) this.#remember(name, stored);
  }

  #refuseIdle(): void {
    if (this.#options.leads?.() !== false) return;
    throw new StoreError("Not written: this replica doesn't hold the lease.");
  }
}

const tooMany = ({ node, cluster }: NodeRef): StoreError =>
  new StoreError(
    `The evictions that ended on node ${node} of cluster ${cluster} in the last half hour exceed the limit of ${MAX_SLOTS} objects. Run fewer short-lived pods on that node, or run Taintward outside the cluster.`,
  );
