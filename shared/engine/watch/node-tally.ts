import type { SeenTaint } from '#shared/eviction/facts.ts';
import type { Affected, GuardCounts } from '#shared/eviction/guard.ts';
import type { NodeName } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import type { LiveNode } from '#shared/kubernetes/api.ts';
import { countdownIdentity } from '#shared/taints/deadline.ts';
import { DOWN_KEYS, NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** The state of a node; `joining`: it joined as down, as nodes do, and was not up yet. */
type NodePhase = 'up' | 'down' | 'joining';

/** Nodes of a zone, or of none, with the same state share it, so a node costs only its entry in a map. */
interface Place {
  readonly zone: string | undefined;
  readonly phase: NodePhase;
  nodes: number;
}

interface Tainted {
  readonly at: EpochMs;
  readonly stopwatchMs: number;
}

/**
 * Counts, with each node event, the nodes on which the guard's decisions are based.
 *
 * A node is down if it has the taint not-ready or unreachable with the effect NoSchedule or NoExecute. The node
 * controller sets NoSchedule immediately, and paces NoExecute. A node joins the cluster with that taint and doesn't
 * count until it was up: otherwise each large scale-up would look like an outage. Taints with which nodes join (from
 * networks and autoscalers) don't count as custom either.
 */
export class NodeTally {
  readonly #nodes = new Map<NodeName, Place>();
  readonly #places = new Map<string, Place>();
  /** Nodes with a NoExecute taint that the node controller didn't set, and when they got it; the oldest first. */
  #customTaints = new Map<NodeName, Tainted>();
  /** Nodes that are down, or joining as down, and when they went down. */
  readonly #down = new Map<NodeName, EpochMs>();
  readonly #clock: Clock | undefined;
  #changes = 0;

  /** `clock`: its stopwatch counts; absent: the times passed in are of a clock that is never set. */
  constructor(clock?: Clock) {
    this.#clock = clock;
  }

  /** Grows with each change of the counts. */
  get changes(): number {
    return this.#changes;
  }

  /**
   * Counts a node. `taints`: its NoExecute taints; `before`: its last known ones, and their stamp. `listed`: it may
   * have joined earlier, and one that joined as down may have been up unseen if its taints were written since.
   */
  saw(
    node: LiveNode,
    taints: readonly SeenTaint[],
    before: { readonly taints: readonly SeenTaint[]; readonly taintsStamp?: string },
    { listed, now }: { readonly listed: boolean; readonly now: EpochMs },
  ): void {
    const last = this.#nodes.get(node.name);
    const isDown = this.#seeDown(node, now);
    const wasSeen = !listed || node.taintsStamp === before.taintsStamp;
    const joins = last ? last.phase === 'joining' && wasSeen : !listed;
    this.#put(node.name, last, node.zone, isDown ? (joins ? 'joining' : 'down') : 'up');
    const set = taints.filter(isCustom);
    if (set.length === 0) {
      if (this.#customTaints.delete(node.name)) this.#changes += 1;
      return;
    }
    const gained = (taint: SeenTaint) =>
      !before.taints.some((each) => countdownIdentity(each) === countdownIdentity(taint));
    if (last && set.some(gained)) this.#gotTaint(node.name, now, now);
    else if (!last && listed) this.#gotTaint(node.name, Math.min(now, lastWritten(node) ?? 0), now);
  }

  gone(name: NodeName): void {
    const last = this.#nodes.get(name);
    if (!last) return;
    this.#leave(last);
    this.#nodes.delete(name);
    this.#customTaints.delete(name);
    this.#down.delete(name);
    this.#changes += 1;
  }

  /** Sorts the tainted nodes, after all nodes of a list were seen. */
  listed(): void {
    this.#customTaints = new Map([...this.#customTaints].sort(([, a], [, b]) => a.at - b.at));
  }

  /**
   * Returns the counts. Custom taints count since `from`, or since `fromMs` by the stopwatch; older ones are forgotten.
   */
  counts(from: EpochMs, fromMs = Number.POSITIVE_INFINITY): GuardCounts {
    for (const [name, { at, stopwatchMs: ms }] of this.#customTaints) {
      if (at >= from || ms >= fromMs) break;
      this.#customTaints.delete(name);
    }
    const zones = new Map<string, Affected>();
    const cluster = { nodes: 0, outOf: 0 };
    for (const { zone, phase, nodes } of this.#places.values()) {
      if (phase === 'joining') continue;
      cluster.outOf += nodes;
      if (phase !== 'down') continue;
      cluster.nodes += nodes;
      const up = this.#places.get(placeKey(zone, 'up'))?.nodes ?? 0;
      if (zone !== undefined) zones.set(zone, { nodes, outOf: nodes + up });
    }
    return { cluster, zones, customTaints: { nodes: this.#customTaints.size, outOf: this.#nodes.size } };
  }

  /** Returns how many of the nodes that now count for a trip were already affected by the time `at`. */
  affectedBy({ scope, zone }: Pick<Trip, 'scope' | 'zone'>, at: EpochMs): number {
    if (scope === 'customTaints')
      return this.#customTaints.values().reduce((sum, each) => sum + (each.at <= at ? 1 : 0), 0);
    return [...this.#down].filter(([name, from]) => from <= at && this.#isDownIn(name, zone)).length;
  }

  /** Returns a node's zone, and since when it is down or joining as down; `undefined`: no zone, and not down. */
  placeOf(name: NodeName): { readonly zone: string | undefined; readonly downSince: EpochMs | undefined } {
    return { zone: this.#nodes.get(name)?.zone, downSince: this.#down.get(name) };
  }

  #isDownIn(name: NodeName, zone: string | undefined): boolean {
    const place = this.#nodes.get(name);
    return place?.phase === 'down' && (zone === undefined || place.zone === zone);
  }

  #seeDown({ name, taints }: LiveNode, now: EpochMs): boolean {
    const since = taints
      .filter(({ key, effect }) => DOWN_KEYS.includes(key) && effect !== 'PreferNoSchedule')
      .map(({ timeAdded = now }) => timeAdded);
    if (since.length === 0) this.#down.delete(name);
    else this.#down.set(name, Math.min(this.#down.get(name) ?? now, ...since));
    return since.length > 0;
  }

  #put(name: NodeName, last: Place | undefined, zone: string | undefined, phase: NodePhase): void {
    if (last?.phase === phase && last.zone === zone) return;
    if (last) this.#leave(last);
    const key = placeKey(zone, phase);
    const place = this.#places.get(key) ?? { zone, phase, nodes: 0 };
    place.nodes += 1;
    this.#places.set(key, place);
    this.#nodes.set(name, place);
    this.#changes += 1;
  }

  #leave(place: Place): void {
    place.nodes -= 1;
    if (place.nodes === 0) this.#places.delete(placeKey(place.zone, place.phase));
  }

  #gotTaint(name: NodeName, at: EpochMs, now: EpochMs): void {
    this.#customTaints.delete(name);
    const nowMs = this.#clock ? stopwatchMs(this.#clock) : now;
    this.#customTaints.set(name, { at, stopwatchMs: nowMs - (now - at) });
    this.#changes += 1;
  }
}

const placeKey = (zone: string | undefined, phase: NodePhase): string => `${phase} ${zone ?? ''}`;

const isCustom = ({ key }: SeenTaint): boolean => !DOWN_KEYS.includes(key) && key !== NODE_OUT_OF_SERVICE;

function lastWritten({ taintsStamp = '' }: LiveNode): EpochMs | undefined {
  const times = [...taintsStamp.matchAll(/@([^@,]+)(?=,|$)/g)].map(([, time = '']) => Date.parse(time));
  const known = times.filter((time) => !Number.isNaN(time));
  return known.length === 0 ? undefined : Math.max(...known);
}
