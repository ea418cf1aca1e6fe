import { Registry } from 'prom-client';
import { Decisions } from '#functions/service/decisions.ts';
import { Evictions } from '#functions/service/evictions.ts';
import { deduplicationId, encodeDelta } from '#shared/aws/delta-message.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { applyDeltas } from '#shared/engine/decide/apply-deltas.ts';
import { announce } from '#shared/engine/evict/events.ts';
import { evictNode, tryAgain } from '#shared/engine/evict/evict-node.ts';
import type { EvictDeps } from '#shared/engine/evict/ports.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { type Delta, onlyPod } from '#shared/eviction/facts.ts';
import { type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import type { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import type { LiveCluster } from './live-cluster.ts';
import { Process } from './process.ts';
import type { Scene } from './scene.ts';
import { portsOf } from './simulated-functions.ts';
import { SimulatedRelay } from './simulated-relay.ts';

const MAX_RESTART_MS = 30_000;
const METRICS = relayMetrics(new Registry());

/**
 * Runs the whole service in one process, which is killed now and then and started again. Messages that wait in the process are
 * lost with it.
 */
export function runService(cluster: LiveCluster, store: SqliteStore, scene: Scene): void {
  const { clock, disturbances, plans, random, story, weather } = scene;
  let process = new Process(scene);
  let over: (at: number) => void = () => undefined;
  const start = () => {
    const current = new Process(scene);
    process = current;
    over = disturbances.begin('relay', cluster.name, clock.now() - weather.climate.watchLagMs);
    const synced = over;
    const { decisions, evictions } = serviceIn(current, cluster, scene);
    void evictions.rearm(store);
    new SimulatedRelay(cluster, scene, () => synced(clock.now()), current, decisions);
    void current.death.then(() => {
      story.add('killed', {});
      void evictions.stop();
      decisions.stop();
    });
  };
  const restart = () => {
    if (process.dead) return;
    process.die();
    over(clock.now());
    const down = disturbances.begin('relay', cluster.name, clock.now() - weather.climate.watchLagMs);
    clock.setAlarm(clock.now() + random.between(10, MAX_RESTART_MS), () => {
      start();
      down(clock.now());
    });
  };
  start();
  for (const { from, to } of weather.episodes) {
    for (let count = random.between(0, weather.climate.relayChanges); count > 0; count--) {
      plans.add(random.between(from, to), restart);
    }
  }
}

/** Runs the deciding and evicting parts in a process. The judges receive its internal messages as if they were sent by queue. */
function serviceIn(process: Process, cluster: LiveCluster, scene: Scene) {
  const { clock, judge, log, queues } = scene;
  /** The nodes to look at again. */
  const again = new Set<string>();
  const evictions: Evictions = new Evictions({
    process: async (ref, failedBefore) => {
      const key = nodeKey(ref);
      const receives = failedBefore || again.delete(key) ? 2 : 1;
      queues.evictionsDue.onReceived({
        body: encodeDue({ ...ref, at: clock.now() }),
        again: false,
        receives,
      });
      const found = await evictNode(ref, evicting, failedBefore);
      if (!found) return undefined;
      again.add(key);
      return clock.now() + found.againInSeconds * 1000;
    },
    tryAgain: (ref, pods) => tryAgain(ref, pods, evicting),
    clock,
    log,
  });
  const evicting: EvictDeps = portsOf(process, 'evictionsDue', scene, evictions);
  const deciding = {
    ...portsOf(process, 'nodeDeltas', scene, evictions),
    announce: (ref: NodeRef, news: Parameters<typeof announce>[1]) => announce(ref, news, evicting),
  };
  const decide = async (deltas: readonly [Delta, ...Delta[]]) => {
    const messages = deltas.map((delta) => ({
      queue: onlyPod(delta) === undefined ? queues.nodeDeltas : queues.podDeltas,
      message: { body: encodeDelta(delta), deduplicationId: deduplicationId(delta) },
    }));
    for (const { queue, message } of messages) {
      cluster.truth.knowledge.sent(message);
      judge.sent(message);
      queue.onReceived({ ...message, again: false, receives: 1 });
    }
    await applyDeltas(deltas, deciding);
    for (const { queue, message } of messages) queue.onHandled(message);
  };
  const decisions = new Decisions({ decide, clock, log, metrics: METRICS });
  return { decisions, evictions };
}
