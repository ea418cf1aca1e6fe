import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Disturbances } from './disturbances.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { SimulationClock } from './simulation-clock.ts';
import { type Service, unanswered, type Weather } from './weather.ts';

/** The longest time of one half of a request (there, or back). */
const LATENCY_MS = { store: 8, queues: 20, timers: 60 } as const;

/** The timeout of a request. */
export const PATIENCE_MS = 10_000;

/** A half of a request beyond this time delays the service's work. */
const SLOW_MS = 200;

/** The environment of a process. */
export interface Surroundings {
  readonly clock: SimulationClock;
  /** Returns the clock of a starting process; absent: all processes use the simulated time. */
  readonly ownClock?: () => Clock;
  /** Returns the time until which a process is frozen; absent: no process ever is. */
  readonly frozenUntil?: () => EpochMs;
  readonly random: SeededRandom;
  readonly weather: Weather;
  readonly disturbances: Disturbances;
}

const never = () => new Promise<never>(() => undefined);

/** A process that may die at any request. Its current work then never continues. */
export class Process {
  readonly #surroundings: Surroundings;
  /** The process's own clock. */
  readonly clock: Clock;
  #dead = false;
  #buried: () => void = () => undefined;
  /** Resolves when the process dies. */
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
   * Performs a request. It takes time there and back; in either half it may fail, and the process may die. `cluster`: the cluster
   * whose API server receives the request.
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

  /** Delays the answer of a completed request by seconds, or beyond the timeout. */
  async #beLate(service: Service, cluster: ClusterName | undefined): Promise<void> {
    const { clock, weather, disturbances } = this.#surroundings;
    const delayMs = weather.delayMs();
    if (delayMs === 0) return;
    const doneAt = clock.now();
    await clock.sleep(Math.min(delayMs, PATIENCE_MS));
    const isLost = delayMs > PATIENCE_MS;
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
