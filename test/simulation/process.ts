import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Disturbances } from './disturbances.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { SimulationClock } from './simulation-clock.ts';
import { type Service, unanswered, type Weather } from './weather.ts';

/** The longest that one half of a request (there, or back) takes. */
const LATENCY_MS = { store: 8, queues: 20, timers: 60 } as const;

/** For so long an answer is waited for. */
export const PATIENCE_MS = 10_000;

/** Half a request that takes longer holds up what is done. */
const SLOW_MS = 200;

/** What of the world a process meets. */
export interface Surroundings {
  readonly clock: SimulationClock;
  /** The clock of a process that starts; absent: all go by the world's. */
  readonly ownClock?: () => Clock;
  /** Until when a process does not get on, because it is frozen; absent: none ever is. */
  readonly frozenUntil?: () => EpochMs;
  readonly random: SeededRandom;
  readonly weather: Weather;
  readonly disturbances: Disturbances;
}

const never = () => new Promise<never>(() => undefined);

/** A process that may die at any request. What it was doing then just never goes on. */
export class Process {
  readonly #surroundings: Surroundings;
  /** By which it tells the time. */
  readonly clock: Clock;
  #dead = false;
  #buried: () => void = () => undefined;
  /** Resolves when it dies. */
  readonly death = new Promise<void>((resolve) => {
    this.#buried = resolve;
  });

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    this.clock = surroundings.ownClock?.() ?? surroundings.clock;
  }

  get dead(): boolean {
    return this.#dead;
  }

  die(): void {
    this.#dead = true;
    this.#buried();
  }

  /**
   * A request: takes its time there and back, on which it may fail, and the process die. `cluster`: whose API server
   * is asked.
   */
  async request<Result>(
    service: Service,
    perform: () => Result | Promise<Result>,
    cluster?: ClusterName,
  ): Promise<Result> {
    await this.#travel(service, cluster);
    const trouble = this.#surroundings.weather.trouble(service, cluster);
    if (trouble?.when === 'before') throw trouble.error;
    const result = await perform();
    await this.#beLate(service, cluster);
    await this.#travel(service, cluster);
    if (trouble) throw trouble.error;
    return result;
  }

  /** What was done is answered seconds later, or not while anybody waits for it. */
  async #beLate(service: Service, cluster: ClusterName | undefined): Promise<void> {
    const { clock, weather, disturbances } = this.#surroundings;
    const lateMs = weather.lateMs();
    if (lateMs === 0) return;
    const doneAt = clock.now();
    await clock.sleep(Math.min(lateMs, PATIENCE_MS));
    const isLost = lateMs > PATIENCE_MS;
    disturbances.note(
      isLost ? (service === 'api' ? 'api' : 'request') : 'slow',
      cluster,
      doneAt,
      clock.now(),
    );
    if (isLost) throw unanswered(service);
  }

  async #travel(service: Service, cluster: ClusterName | undefined): Promise<void> {
    const { clock, random, weather, disturbances } = this.#surroundings;
    const sentAt = clock.now();
    const frozenMs = (this.#surroundings.frozenUntil?.() ?? 0) - sentAt;
    if (frozenMs > 0) await clock.sleep(frozenMs);
    await clock.sleep(random.between(1, service === 'api' ? weather.apiLatencyMs() : LATENCY_MS[service]));
    if (clock.now() - sentAt > SLOW_MS) disturbances.note('slow', cluster, sentAt, clock.now());
    if (!this.#dead && weather.death()) {
      disturbances.note('death', undefined, clock.now());
      this.die();
    }
    if (this.#dead) await never();
  }
}
