import type { EpochMs } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { QueueError } from '#shared/queues/sender.ts';
import { StoreError } from '#shared/store/store.ts';
import type { Clock } from '#shared/time/clock.ts';
import { TimerError } from '#shared/timers/timers.ts';
import type { Climate } from './climates.ts';
import type { SeededRandom } from './seeded-random.ts';

export type Service = 'store' | 'queues' | 'timers' | 'api';

/** A request that fails: before it had any effect, or after (its answer was lost). */
export interface Trouble {
  readonly when: 'before' | 'after';
  readonly error: Error;
}

interface Spell {
  readonly service: Service;
  readonly from: EpochMs;
  readonly to: EpochMs;
}

const SERVICES = ['store', 'queues', 'timers', 'api'] as const;
const LONGEST_SPELL_MS = 4 * 60_000;

/** What goes wrong and when. From `calmAt` on nothing does. */
export class Weather {
  readonly climate: Climate;
  readonly #random: SeededRandom;
  readonly #clock: Clock;
  readonly #calmAt: EpochMs;
  readonly #spells: readonly Spell[];

  constructor(climate: Climate, random: SeededRandom, clock: Clock, calmAt: EpochMs) {
    this.climate = climate;
    this.#random = random;
    this.#clock = clock;
    this.#calmAt = calmAt;
    this.#spells = Array.from({ length: climate.spells }, () => {
      const from = random.between(clock.now(), calmAt);
      return { service: random.pick(SERVICES), from, to: from + random.between(1000, LONGEST_SPELL_MS) };
    });
  }

  get calm(): boolean {
    return this.#clock.now() >= this.#calmAt;
  }

  trouble(service: Service): Trouble | undefined {
    const now = this.#clock.now();
    const away = this.#spells.some(
      (spell) => spell.service === service && spell.from <= now && now < spell.to,
    );
    if (this.calm || !(away || this.#random.chance(this.climate.trouble))) return undefined;
    const when = !away && this.#random.chance(0.3) ? 'after' : 'before';
    return { when, error: this.#errorOf(service, away || when === 'after') };
  }

  /** A process dies here. */
  death(): boolean {
    return !this.calm && this.#random.chance(this.climate.death);
  }

  /** Somebody else committed first, whoever. */
  conflict(): boolean {
    return !this.calm && this.#random.chance(this.climate.conflict);
  }

  /** A watch breaks such that it has to be listed anew. */
  gap(): boolean {
    return !this.calm && this.#random.chance(this.climate.gap);
  }

  /** A message that was handled comes once more. */
  duplicate(): boolean {
    return !this.calm && this.#random.chance(this.climate.duplicate);
  }

  #errorOf(service: Service, unanswered: boolean): Error {
    switch (service) {
      case 'store':
        return new StoreError('the table is throttled');
      case 'queues':
        return new QueueError('the queue is away');
      case 'timers':
        return new TimerError('no timer could be armed');
      case 'api': {
        const status = unanswered ? 0 : this.#random.pick([0, 409, 429, 500, 503]);
        return new ApiError(`the server answered ${status}`, status, '', status === 429 ? 7 : undefined);
      }
      default:
        return service satisfies never;
    }
  }
}
