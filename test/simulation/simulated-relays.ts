import { MAX_OUTAGE_MS, MAX_UNKNOWING_MS } from './climates.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { Scene } from './scene.ts';
import { SimulatedRelay } from './simulated-relay.ts';

/** The longest time until a relay notices that a cluster was registered or unregistered. */
const MAX_UNAWARE_MS = 20_000;

/**
 * The relays that hold one cluster's lease, one after the other. The old relay may live on for a while without noticing that it
 * lost its lease. A dead relay has no successor for a while. A relay of an unregistered cluster ends.
 */
export class SimulatedRelays {
  readonly #scene: Scene;
  readonly #cluster: LiveCluster;
  #relay: SimulatedRelay;
  #registered = true;
  #wanted = true;
  #over: (at: number) => void = () => undefined;

  constructor(cluster: LiveCluster, scene: Scene) {
    this.#scene = scene;
    this.#cluster = cluster;
    this.#relay = this.#start();
    const { plans, random, weather } = scene;
    const sometimes = (happen: () => void) => {
      for (const { from, to } of weather.episodes) {
        const times = random.between(0, weather.climate.relayChanges);
        for (let count = 0; count < times; count++) plans.add(random.between(from, to), happen);
      }
    };
    sometimes(() => this.#succeed());
    sometimes(() => this.#relay.process.die());
  }

  /** Registers the cluster, or unregisters it, from now on. */
  setRegistered(registered: boolean): void {
    const { clock, random } = this.#scene;
    this.#wanted = registered;
    clock.setAlarm(clock.now() + random.between(0, MAX_UNAWARE_MS), () => {
      if (this.#registered === this.#wanted) return;
      this.#registered = this.#wanted;
      if (this.#registered) this.#relay = this.#start();
      else this.#relay.process.die();
    });
  }

  #succeed(): void {
    if (!this.#registered) return;
    const { clock, random } = this.#scene;
    const { process, hasLease } = this.#relay;
    const diesAt = clock.now() + random.between(0, MAX_UNKNOWING_MS);
    // A relay that still tries to acquire the lease would take it from its successor, and die with it.
    if (hasLease) clock.setAlarm(diesAt, () => process.die());
    else process.die();
    this.#relay = this.#start();
  }

  /** Notes the disturbance from the previous relay's last report until the new relay has reported everything. */
  #beBlind(): void {
    const { clock, disturbances, weather } = this.#scene;
    this.#over(clock.now());
    const from = clock.now() - weather.climate.watchLagMs;
    this.#over = disturbances.begin('relay', this.#cluster.name, from);
  }

  #start(): SimulatedRelay {
    const { clock, random } = this.#scene;
    this.#beBlind();
    const over = this.#over;
    const relay = new SimulatedRelay(this.#cluster, this.#scene, () => over(clock.now()));
    void relay.process.death.then(() => {
      if (relay !== this.#relay || !this.#registered) return;
      this.#beBlind();
      clock.setAlarm(clock.now() + random.between(5_000, MAX_OUTAGE_MS), () => {
        if (relay === this.#relay) this.#succeed();
      });
    });
    return relay;
  }
}
