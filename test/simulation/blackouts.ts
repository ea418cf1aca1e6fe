import type { NodeName } from '#shared/eviction/identity.ts';
import {
  type LiveTaint,
  NODE_NOT_READY,
  NODE_OUT_OF_SERVICE,
  NODE_UNREACHABLE,
} from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type LiveCluster, zoneOf } from './live-cluster.ts';
import type { Scene } from './scene.ts';
import type { Episode } from './weather.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
/** The longest time until all nodes of a blackout are down; often they fail at the same time. */
const SPREAD_MS = [0, 5 * SECOND_MS, 60 * SECOND_MS, 10 * MINUTE_MS] as const;
/** The longest time for which nodes stay down. */
const LASTING_MS = [MINUTE_MS, 10 * MINUTE_MS, 40 * MINUTE_MS] as const;
/** The longest time until the node controller evicts from a node that it found down. */
const PACE_MS = [0, 200, 30 * SECOND_MS, 10 * MINUTE_MS] as const;
/** The chance that the node controller evicts from a node at all: where most nodes are down, it does not. */
const EVICTED_CHANCE = 0.85;
/** The chance that a user declares a node out of service, and the longest time until then. */
const OUT_OF_SERVICE_CHANCE = 0.1;
const OUT_OF_SERVICE_MS = 10 * MINUTE_MS;

/**
 * Takes nodes down, alone or many at a time, and back up, with the taints of the node controller. The NoSchedule taint comes
 * immediately, and the NoExecute taint later or never.
 */
export class Blackouts {
  readonly #cluster: LiveCluster;
  readonly #nodes: readonly NodeName[];
  readonly #scene: Scene;

  constructor(cluster: LiveCluster, nodes: readonly NodeName[], scene: Scene) {
    this.#cluster = cluster;
    this.#nodes = nodes;
    this.#scene = scene;
    for (const episode of scene.weather.episodes) {
      for (let count = 0; count < scene.weather.climate.blackouts; count++) this.#plan(episode);
    }
  }

  #plan({ from, to }: Episode): void {
    const { random } = this.#scene;
    const at = random.between(from, to);
    const zone = random.pick(['a', 'b', undefined]);
    const inReach = this.#nodes.filter((node) => zone === undefined || zoneOf(node) === zone);
    const most = random.between(1, inReach.length);
    const [spreadMs, lastingMs, paceMs] = [
      random.pick(SPREAD_MS),
      random.pick(LASTING_MS),
      random.pick(PACE_MS),
    ];
    const first = random.between(0, inReach.length - 1);
    for (let count = 0; count < most; count++) {
      const node = inReach[(first + count) % inReach.length];
      if (node) this.#goDown(node, at + random.between(0, spreadMs), lastingMs, paceMs);
    }
  }

  #goDown(node: NodeName, at: EpochMs, lastingMs: number, paceMs: number): void {
    const { plans, random } = this.#scene;
    const key = random.pick([NODE_NOT_READY, NODE_UNREACHABLE]);
    plans.add(at, () => this.#taint(node, { key, effect: 'NoSchedule' }));
    const backAt = at + random.between(SECOND_MS, lastingMs);
    const evictedAt = at + random.between(0, paceMs);
    if (random.chance(EVICTED_CHANCE) && evictedAt < backAt)
      plans.add(evictedAt, () => this.#taint(node, { key, effect: 'NoExecute' }));
    const outAt = at + random.between(0, OUT_OF_SERVICE_MS);
    if (random.chance(OUT_OF_SERVICE_CHANCE) && outAt < backAt)
      plans.add(outAt, () => this.#taint(node, { key: NODE_OUT_OF_SERVICE, effect: 'NoExecute' }));
    plans.add(backAt, () => this.#recover(node, [key, NODE_OUT_OF_SERVICE]));
  }

  #taint(node: NodeName, { key, effect }: Pick<LiveTaint, 'key' | 'effect'>): void {
    const found = this.#cluster.liveNodes.get(node);
    if (!found || found.taints.some((taint) => taint.key === key && taint.effect === effect)) return;
    const byController = key !== NODE_OUT_OF_SERVICE;
    const second = Math.floor(this.#scene.clock.now() / SECOND_MS) * SECOND_MS;
    const taint = { key, effect, ...(byController ? { timeAdded: second } : {}) };
    this.#cluster.setNode(node, [...found.taints, taint], writerOf(byController));
  }

  #recover(node: NodeName, keys: readonly string[]): void {
    const found = this.#cluster.liveNodes.get(node);
    const kept = found?.taints.filter(({ key }) => !keys.includes(key));
    if (!found || !kept || kept.length === found.taints.length) return;
    this.#cluster.setNode(node, kept, writerOf(true));
  }
}

const writerOf = (byController: boolean): string => (byController ? 'kube-controller-manager' : 'kubectl');
