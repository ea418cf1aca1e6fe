import { type ClusterName, type NodeRef, nodeKey, type PodUid } from '#shared/eviction/identity.ts';
import type {
  EndedPod,
  EvictionRecord,
  FinalRecord,
  NodeState,
  Partition,
} from '#shared/eviction/records.ts';
import type { Countdowns, ServiceStore, Standing, Upcoming } from '#shared/state/service-state.ts';
import { type Commit, partitionOf, type TaintedNode } from '#shared/state/store.ts';
import { nodeTtl } from '#shared/state/stored.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { untilWritten } from './change-object.ts';
import { isRunning, type KeptNode, type Moment, type Standings, standingsOf } from './node-eviction.ts';

/** What is asked of all nodes at once, so that nobody reads their records for it. */
export interface NodeFigures {
  readonly ref: NodeRef;
  readonly node: NodeState | undefined;
  /** Distinct moments at which its scheduled evictions fall due, the soonest first. */
  readonly due: readonly EpochMs[];
  /** When the first countdown ends that runs; absent: none does. */
  readonly next?: EpochMs;
  readonly standings: Standings;
}

/** Those of one node. */
export function figuresOf({ ref, node, scheduled }: KeptNode): NodeFigures {
  const due = [...new Set(scheduled.map(({ fireAt }) => fireAt))].sort((a, b) => a - b);
  let next: EpochMs | undefined;
  for (const record of scheduled) {
    if (isRunning(record) && record.fireAt < (next ?? Infinity)) next = record.fireAt;
  }
  return { ref, node, due, ...(next === undefined ? {} : { next }), standings: standingsOf({ scheduled }) };
}

/** What a write of a node's object has beside what the object says from then on. */
export interface Since {
  readonly ended: readonly EndedPod[];
  readonly noted: readonly Moment[];
  readonly now: EpochMs;
  /** It is found out anew if a power cut takes it. */
  readonly isFoundAgain?: boolean;
}

/**
 * A store that keeps one object for each node, with all that is scheduled there. What a commit and an end make of that is said here; where
 * objects are, and what ended, by the classes that extend it. A change is one write of the whole object, on condition that it is
 * the one that was read.
 */
export abstract class ObjectStore implements ServiceStore {
  /** By node: so that what was read last is what was stored last, and nothing of ours is in conflict with the rest. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** How many evictions of each node stand how, as it was read or written last. */
  readonly #standings = new Map<string, { readonly cluster: ClusterName; readonly counts: Standings }>();

  /** A node's object as it stands. */
  protected abstract read(ref: NodeRef): Promise<KeptNode>;
  /** As it was read last, which the next write finds out; as it stands, where that costs nothing. */
  protected abstract known(ref: NodeRef): Promise<KeptNode>;
  /** What ended on a node so lately that it is asked for, the oldest first; of these pods, if they are named. */
  protected abstract ended(
    kept: KeptNode,
    now: EpochMs,
    only?: ReadonlySet<PodUid>,
  ): Promise<readonly EndedPod[]>;
  /** Writes the object under its next revision, all or nothing. `false`: another one stands there since. */
  protected abstract write(next: KeptNode, since: Since, figures: NodeFigures): Promise<boolean>;
  /** Of all nodes, or of those of one cluster that have taints. */
  protected abstract figures(tainted?: ClusterName): AsyncIterable<NodeFigures>;
  abstract purge(now: EpochMs): Promise<void>;

  async load(ref: NodeRef, now: EpochMs, only?: readonly PodUid[]): Promise<Partition> {
    const asked = only && new Set(only);
    const [{ revision, node, scheduled }, ended] = await this.inTurn(ref, async () => {
      const kept = await this.read(ref);
      this.count({ ref, standings: standingsOf(kept) });
      return [kept, asked?.size === 0 ? [] : await this.ended(kept, now, asked)] as const;
    });
    const records = scheduled.filter(({ uid }) => !asked || asked.has(uid));
    return partitionOf({ ref, revision, node }, records, ended);
  }

  commit(ref: NodeRef, revision: number, change: Commit, now: EpochMs): Promise<'committed' | 'conflict'> {
    return this.inTurn(ref, async () => {
      // Whoever commits has loaded: what was read then stands still, or the write is in conflict.
      const kept = await this.known(ref);
      if (kept.revision !== revision) return 'conflict';
      const { node, schedule, end, noted = [], live } = change;
      const written = new Map(kept.scheduled.map((record) => [record.uid, record]));
      for (const record of schedule) written.set(record.uid, record);
      for (const { uid } of end) written.delete(uid);
      const { ttl: _ttl, ...rest } = { ...kept, node: node ?? kept.node, scheduled: [...written.values()] };
      const isWritten = await this.#written(live ? rest : { ...rest, ttl: nodeTtl(now) }, {
        ended: end.map((each) => ({ ...each, endedAt: now })),
        noted: noted.length === 0 ? [] : [{ at: now, noted, ended: [] }],
        now,
      });
      return isWritten ? 'committed' : 'conflict';
    });
  }

  async end(ref: NodeRef, pods: readonly FinalRecord[], now: EpochMs): Promise<void> {
    if (pods.length === 0) return;
    const gone = new Set(pods.map(({ uid }) => uid));
    const ended = pods.map((each): EndedPod => ({ ...each, endedAt: now }));
    await this.inTurn(ref, () =>
      untilWritten(`of node ${ref.node} of cluster ${ref.cluster}`, async (tries) => {
        const kept = tries === 1 ? await this.known(ref) : await this.read(ref);
        const scheduled = kept.scheduled.filter(({ uid }) => !gone.has(uid));
        const since = { ended, noted: [], now, isFoundAgain: true };
        return (await this.#written({ ...kept, scheduled }, since)) || undefined;
      }),
    );
  }

  #written(kept: KeptNode, since: Since): Promise<boolean> {
    const figures = figuresOf(kept);
    this.count(figures);
    return this.write({ ...kept, revision: kept.revision + 1 }, since, figures);
  }

  async *taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode> {
    for await (const { ref, node } of this.figures(cluster)) {
      if (ref.cluster === cluster && node && node.taints.length > 0) yield { node: ref.node, state: node };
    }
  }

  /** The soonest first: whoever reads them changes the very nodes that they are of. */
  async *upcoming(): AsyncIterable<Upcoming> {
    const moments: Upcoming[] = [];
    for await (const { ref, due } of this.#all()) for (const fireAt of due) moments.push({ ref, fireAt });
    yield* moments.sort((a, b) => a.fireAt - b.fireAt);
  }

  async countdowns(limit: number): Promise<Countdowns> {
    const running = await Array.fromAsync(this.#all(), ({ ref, next, standings }) => ({
      ref,
      next,
      standings,
    }));
    const total = running.reduce((sum, { standings }) => sum + (standings['pending'] ?? 0), 0);
    let soonest: readonly { readonly ref: NodeRef; readonly record: EvictionRecord }[] = [];
    for (const { ref, next = Infinity } of running.sort(
      (a, b) => (a.next ?? Infinity) - (b.next ?? Infinity),
    )) {
      if (next === Infinity || (soonest[limit - 1]?.record.fireAt ?? Infinity) <= next) break;
      const { scheduled } = await this.inTurn(ref, () => this.read(ref));
      const more = scheduled.filter(isRunning).map((record) => ({ ref, record }));
      soonest = [...soonest, ...more].sort((a, b) => a.record.fireAt - b.record.fireAt).slice(0, limit);
    }
    return { total, soonest };
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

  async *#all(): AsyncIterable<NodeFigures> {
    for await (const figures of this.figures()) {
      this.count(figures);
      yield figures;
    }
  }

  /** Does the work when all that was begun on that node before is over, however that ended. */
  protected async inTurn<T>(ref: NodeRef, work: () => Promise<T>): Promise<T> {
    const key = nodeKey(ref);
    const working = this.#turns.get(key)?.then(work) ?? work();
    const over = working.catch(() => undefined);
    this.#turns.set(key, over);
    try {
      return await working;
    } finally {
      if (this.#turns.get(key) === over) this.#turns.delete(key);
    }
  }

  /** Takes a node into {@link standings} as it was read. */
  protected count({ ref, standings }: Pick<NodeFigures, 'ref' | 'standings'>): void {
    if (Object.keys(standings).length === 0) this.#standings.delete(nodeKey(ref));
    else this.#standings.set(nodeKey(ref), { cluster: ref.cluster, counts: standings });
  }
}
