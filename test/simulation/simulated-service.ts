import { EmbeddedTimers } from '#functions/local/embedded-timers.ts';
import type { SqliteStore } from '#functions/local/sqlite-store.ts';
import type { LiveCluster } from './live-cluster.ts';
import { queuePort } from './ports.ts';
import { Process } from './process.ts';
import type { Scene } from './scene.ts';
import { runFunctionIn } from './simulated-function.ts';
import { queueFunctions } from './simulated-functions.ts';
import { SimulatedRelay } from './simulated-relay.ts';

const LONGEST_RESTART_MS = 30_000;

/** The whole service in one process, which is killed now and then and started again: its queues and timers go with it. */
export function runService(cluster: LiveCluster, store: SqliteStore, scene: Scene): void {
  const { clock, disturbances, log, queues, plans, random, story, weather } = scene;
  let process = new Process(scene);
  let over: (at: number) => void = () => undefined;
  const start = () => {
    const current = new Process(scene);
    process = current;
    over = disturbances.begin('relay', cluster.name, clock.now() - weather.climate.watchLagMs);
    const synced = over;
    const dueQueue = queuePort(current, queues.evictionsDue, scene);
    const timers = new EmbeddedTimers({ dueQueue, clock, log });
    for (const settings of queueFunctions(scene, timers)) runFunctionIn(current, scene, settings);
    void timers.rearm(store);
    new SimulatedRelay(cluster, scene, () => synced(clock.now()), current);
    void current.death.then(() => {
      story.tell('killed', {});
      void timers.stop();
      for (const queue of Object.values(queues)) queue.lose();
    });
  };
  const restart = () => {
    if (process.dead) return;
    process.die();
    over(clock.now());
    const down = disturbances.begin('relay', cluster.name, clock.now() - weather.climate.watchLagMs);
    clock.setAlarm(clock.now() + random.between(10, LONGEST_RESTART_MS), () => {
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
