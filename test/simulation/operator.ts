import type { LiveCluster } from './live-cluster.ts';
import type { Scene } from './scene.ts';
import type { SimulatedRelays } from './simulated-relays.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const MAX_UNREGISTERED_MS = 2 * HOUR_MS;
/** The delays after which dead letters are redriven. */
const REDRIVES_MS = [MINUTE_MS, 20 * MINUTE_MS, 6 * HOUR_MS, 60 * HOUR_MS] as const;

/** An operator of the service: redrives dead letters, unregisters a cluster and registers it again. */
export class Operator {
  readonly #scene: Scene;
  readonly #cluster: LiveCluster;
  readonly #relays: SimulatedRelays;

  constructor(cluster: LiveCluster, relays: SimulatedRelays, scene: Scene) {
    this.#scene = scene;
    this.#cluster = cluster;
    this.#relays = relays;
    const { plans, random, weather } = scene;
    for (const { from, to } of weather.episodes) {
      const at = random.between(from, to) + random.between(0, random.pick(REDRIVES_MS));
      plans.add(at, () => {
        for (const queue of Object.values(scene.queues)) queue.redrive();
      });
      const times = random.between(0, weather.climate.unregistered);
      for (let count = 0; count < times; count++) {
        plans.add(random.between(from, to), () => void this.#unregister());
      }
    }
  }

  async #unregister(): Promise<void> {
    const { clock, disturbances, storage, story, random } = this.#scene;
    const { name } = this.#cluster;
    const { registry } = storage.open;
    const found = await registry.get(name);
    if (!found || found.access.kind === 'unreadable') return;
    const registration = { ...found, access: found.access };
    story.add('unregistered', { cluster: name });
    await registry.remove(name);
    this.#relays.setRegistered(false);
    const over = disturbances.begin('unregistered', name, clock.now());
    clock.setAlarm(clock.now() + random.between(0, MAX_UNREGISTERED_MS), async () => {
      story.add('registered', { cluster: name });
      await registry.add(registration);
      this.#relays.setRegistered(true);
      over(clock.now());
    });
  }
}
