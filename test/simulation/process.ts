import type { SeededRandom } from './seeded-random.ts';
import type { SimulationClock } from './simulation-clock.ts';
import type { Service, Weather } from './weather.ts';

/** The longest that one half of a request (there, or back) takes. */
export const LATENCY_MS = 80;

/** What of the world a process meets. */
export interface Surroundings {
  readonly clock: SimulationClock;
  readonly random: SeededRandom;
  readonly weather: Weather;
}

const never = () => new Promise<never>(() => undefined);

/** A process that may die at any request. What it was doing then just never goes on. */
export class Process {
  readonly #surroundings: Surroundings;
  #dead = false;
  #buried: () => void = () => undefined;
  /** Resolves when it dies. */
  readonly death = new Promise<void>((resolve) => {
    this.#buried = resolve;
  });

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  get dead(): boolean {
    return this.#dead;
  }

  die(): void {
    this.#dead = true;
    this.#buried();
  }

  /** A request: takes its time there and back, on which it may fail, and the process die. */
  async request<Result>(service: Service, perform: () => Promise<Result>): Promise<Result> {
    await this.#travel();
    const trouble = this.#surroundings.weather.trouble(service);
    if (trouble?.when === 'before') throw trouble.error;
    const result = await perform();
    await this.#travel();
    if (trouble) throw trouble.error;
    return result;
  }

  async #travel(): Promise<void> {
    const { clock, random, weather } = this.#surroundings;
    await clock.sleep(random.between(1, LATENCY_MS));
    if (!this.#dead && weather.death()) this.die();
    if (this.#dead) await never();
  }
}
