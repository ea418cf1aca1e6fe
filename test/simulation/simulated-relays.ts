import type { EpochMs } from '#shared/eviction/identity.ts';
import { LONGEST_OUTAGE_MS, LONGEST_UNKNOWING_MS } from './climates.ts';
import type { Scene } from './scene.ts';
import { SimulatedRelay, WATCH_LAG_MS } from './simulated-relay.ts';
import type { Truth } from './truth.ts';

/**
 * One relay after the other, until then, as the climate has it. The old one may live on for a while without knowing
 * that it lost its lease; a dead one has no successor for a while.
 */
export function runRelays(scene: Scene, truth: Truth, until: EpochMs): void {
  const { clock, random, weather } = scene;
  const startAt = clock.now();
  let epoch = 0;
  const start = (): SimulatedRelay => {
    epoch += 1;
    scene.log.info('relay.lease-taken', { cluster: scene.name, epoch });
    const now = clock.now();
    truth.relayWasBlind(now - LONGEST_OUTAGE_MS - WATCH_LAG_MS, now + WATCH_LAG_MS);
    return new SimulatedRelay(epoch, scene, (from, to) => truth.relayWasBlind(from, to));
  };
  let relay = start();
  const succeed = () => {
    const old = relay.process;
    clock.setAlarm(clock.now() + random.between(0, LONGEST_UNKNOWING_MS), () => old.die());
    relay = start();
  };
  const sometimes = (happen: () => void) => {
    const times = random.between(0, weather.climate.relayChanges);
    for (let count = 0; count < times; count++) clock.setAlarm(random.between(startAt, until), happen);
  };
  sometimes(succeed);
  sometimes(() => relay.process.die());
  const watch = () => {
    if (relay.process.dead) succeed();
    clock.setAlarm(clock.now() + random.between(5_000, LONGEST_OUTAGE_MS), watch);
  };
  watch();
}
