import { defined } from '#shared/defined.ts';
import { type ClusterName, type NodeRef, nodeKey, type PodUid } from '#shared/eviction/identity.ts';
import type { EndedPod, FinalRecord, NodeState, Partition } from '#shared/eviction/records.ts';
import type { ScheduledEviction } from '#shared/state/history.ts';
import type { Countdowns, ServiceStore, StateCount, Upcoming } from '#shared/state/service-state.ts';
import { type Commit, partitionOf, type TaintedNode } from '#shared/state/store.ts';
import { nodeTtl } from '#shared/state/stored.ts';
import { untilWritten } from '#shared/state/until-written.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { conflictText } from './change-object.ts';
import {
  countStates,
  type HistoryEvents,
  isRunning,
  type KeptNode,
  type StateCounts,
} from './node-eviction.ts';

/** Summary values of a node, which spare reading its records when all nodes are listed. */
export interface NodeFigures {
  readonly ref: NodeRef;
  readonly node: NodeState | undefined;
  /** Distinct deadlines of the node's scheduled evictions, the soonest first. */
  readonly due: readonly EpochMs[];
  /** The first deadline of a running countdown. Absent: none runs. */
  readonly next?: EpochMs;
  readonly states: StateCounts;
}

export function figuresOf({ ref, node, scheduled }: KeptNode): NodeFigures {
  const due = [...new Set(scheduled.map(({ dueAt }) => dueAt))].sort((a, b) => a - b);
  let next: EpochMs | undefined;
  for (const record of scheduled) {
    if (isRunning(record) && record.dueAt < (next ?? Infinity)) next = record.dueAt;
  }
  return { ref, node, due, ...defined({ next }), states: countStates({ scheduled }) };
}

/** The data of a write that is not in the node's object itself. */
export interface HistoryWrite {
  readonly ended: readonly EndedPod[];
  readonly noted: readonly HistoryEvents[];
  readonly now: EpochMs;
  /** True: the change is detected again if a power failure loses it. */
  readonly isFoundAgain?: boolean;
}

/**
 * One object for each node, with all evictions scheduled there, derived here from commits and ends; subclasses keep the
 * objects and the ended evictions. A change is one write of the whole object that was read.
 */
export abstract class ObjectStore implements ServiceStore {
  /**
   * Work on a node runs in sequence: the last read has the last write, and this process never conflicts with itself.
   */
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #states = new Map<string, { readonly cluster: ClusterName; readonly counts: StateCounts }>();

  protected abstract read(ref: NodeRef): Promise<KeptNode>;
  /** The object as it was read last, which the next write verifies; the current one if reading costs nothing. */
  protected abstract known(ref: NodeRef): Promise<KeptNode>;
  /** Recent ends that decisions need, the oldest first. With `only`, only those of these pods. */
  protected abstract ended(
    kept: KeptNode,
    now: EpochMs,
    only?: ReadonlySet<PodUid>,
  ): Promise<readonly EndedPod[]>;
  /** Writes the object under its next revision, all or nothing. `false`: the stored object has changed. */
  protected abstract write(next: KeptNode, since: HistoryWrite, figures: NodeFigures): Promise<boolean>;
  protected abstract figures(tainted?: ClusterName): AsyncIterable<NodeFigures>;
  abstract purge(now: EpochMs): Promise<void>;

  async load(ref: NodeRef, now: EpochMs, only?: readonly PodUid[]): Promise<Partition> {
    const uids = only && new Set(only);
    const [{ revision, node, scheduled }, ended] = await this.inTurn(ref, async () => {
      const kept = await this.read(ref);
      this.count({ ref, states: countStates(kept) });
      return [kept, uids?.size === 0 ? [] : await this.ended(kept, now, uids)] as const;
    });
    const records = scheduled.filter(({ uid }) => !uids || uids.has(uid));
    return partitionOf({ ref, revision, node }, records, ended);
  }

  commit(ref: NodeRef, revision: number, change: Commit, now: EpochMs): Promise<'committed' | 'conflict'> {
    return this.inTurn(ref, async () => {
      // A commit follows a load. If the object changed after that load, the write conflicts.
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
      untilWritten(
        async (tries) => {
          const kept = tries === 1 ? await this.known(ref) : await this.read(ref);
          const scheduled = kept.scheduled.filter(({ uid }) => !gone.has(uid));
          const since = { ended, noted: [], now, isFoundAgain: true };
          return (await this.#written({ ...kept, scheduled }, since)) ? { result: undefined } : undefined;
        },
        (tries) => conflictText(`of node ${ref.node} of cluster ${ref.cluster}`, tries),
      ),
    );
  }

  #written(kept: KeptNode, since: HistoryWrite): Promise<boolean> {
    const figures = figuresOf(kept);
    this.count(figures);
    return this.write({ ...kept, revision: kept.revision + 1 }, since, figures);
  }

  async *taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode> {
    for await (const { ref, node } of this.figures(cluster)) {
      if (ref.cluster === cluster && node && node.taints.length > 0) yield { node: ref.node, state: node };
    }
  }

  /** Yields the soonest first. Collects all of them beforehand, because the caller changes their nodes meanwhile. */
  async *upcoming(): AsyncIterable<Upcoming> {
    const moments: Upcoming[] = [];
    for await (const { ref, due } of this.#all()) for (const dueAt of due) moments.push({ ref, dueAt });
    yield* moments.sort((a, b) => a.dueAt - b.dueAt);
  }

  async countdowns(limit: number): Promise<Countdowns> {
    const running = await Array.fromAsync(this.#all(), ({ ref, next, states }) => ({
      ref,
      next,
      states,
    }));
    const total = running.reduce((sum, { states }) => sum + (states['pending'] ?? 0), 0);
    let soonest: readonly ScheduledEviction[] = [];
    for (const { ref, next = Infinity } of running.sort(
      (a, b) => (a.next ?? Infinity) - (b.next ?? Infinity),
    )) {
      if (next === Infinity || (soonest[limit - 1]?.record.dueAt ?? Infinity) <= next) break;
      const { scheduled } = await this.inTurn(ref, () => this.read(ref));
      const more = scheduled.filter(isRunning).map((record) => ({ ref, record }));
      soonest = [...soonest, ...more].sort((a, b) => a.record.dueAt - b.record.dueAt).slice(0, limit);
    }
    return { total, soonest };
  }

  states(): readonly StateCount[] {
    const sums = new Map<string, StateCount>();
    for (const { cluster, counts } of this.#states.values()) {
      for (const [key, evictions] of Object.entries(counts)) {
        const state = key as StateCount['state'];
        const before = sums.get(`${cluster} ${state}`)?.evictions ?? 0;
        sums.set(`${cluster} ${state}`, { cluster, state, evictions: before + evictions });
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

  /** Does the work after all earlier work on that node has settled. */
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

  protected count({ ref, states }: Pick<NodeFigures, 'ref' | 'states'>): void {
    if (Object.keys(states).length === 0) this.#states.delete(nodeKey(ref));
    else this.#states.set(nodeKey(ref), { cluster: ref.cluster, counts: states });
  }
}

/** Values that were read or written last, by name, up to a total number of characters. */
export class Remembered<Thing> {
  readonly #mostChars: number;
  readonly #things = new Map<string, { readonly thing: Thing; readonly chars: number }>();
  #chars = 0;

  constructor(mostChars: number) {
    this.#mostChars = mostChars;
  }

  get(name: string): Thing | undefined {
    return this.#things.get(name)?.thing;
  }

  set(name: string, thing: Thing, charsOf: (thing: Thing) => number): void {
    const before = this.#things.get(name);
    const chars = before?.thing === thing ? before.chars : charsOf(thing);
    this.forget(name);
    this.#things.set(name, { thing, chars });
    this.#chars += chars;
    for (const oldest of this.#things.keys()) {
      if (this.#chars <= this.#mostChars) return;
      this.forget(oldest);
    }
  }

  forget(name: string): void {
    this.#chars -= this.#things.get(name)?.chars ?? 0;
    this.#things.delete(name);
  }
}
