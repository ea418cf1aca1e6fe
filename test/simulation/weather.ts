import type { ClusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { QueueError } from '#shared/state/sender.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Whims } from '#test/world/fake-dynamodb.ts';
import type { Climate } from './climates.ts';
import type { Disturbances } from './disturbances.ts';
import type { SeededRandom } from './seeded-random.ts';

export type Service = 'store' | 'queues' | 'timers' | 'api';

/** A request that fails: before it had any effect, or after (its answer was lost). */
export interface Trouble {
  readonly when: 'before' | 'after';
  readonly error: Error;
}

/** A time in which things happen and go wrong. */
export interface Episode {
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/** An API server is away. */
export interface Outage extends Episode {
  readonly cluster: ClusterName;
  /** How long it takes to find that out, per request. */
  readonly silenceMs: number;
}

interface Spell extends Episode {
  readonly service: Service;
}

const SERVICES = ['store', 'queues', 'timers', 'api'] as const;
const MAX_SPELL_MS = 4 * 60_000;
/** What most requests to API servers take at most, each way; some take as long as the climate has it. */
const USUAL_API_MS = 80;
const SLOW_SHARE = 0.3;
const RETRY_AFTER_SECONDS = 7;
const HOUR_MS = 3_600_000;
/** An answer that is late comes so much later, at least, and at most, as often as it is here; the longest are given up before. */
const MIN_LATE_MS = 300;
const MAX_LATE_MS = [1_000, 4_000, 15_000] as const;

/** What goes wrong, and when: in episodes only. Whatever does is noted. */
export class Weather {
  readonly climate: Climate;
  readonly episodes: readonly Episode[];
  readonly #random: SeededRandom;
  readonly #clock: Clock;
  readonly #disturbances: Disturbances;
  readonly #spells: readonly Spell[];
  readonly #outages: Outage[] = [];

  constructor(
    climate: Climate,
    episodes: readonly Episode[],
    { random, clock, disturbances }: { random: SeededRandom; clock: Clock; disturbances: Disturbances },
  ) {
    this.climate = climate;
    this.episodes = episodes;
    this.#random = random;
    this.#clock = clock;
    this.#disturbances = disturbances;
    this.#spells = episodes.flatMap((episode) =>
      Array.from({ length: climate.spells }, () => {
        const from = random.between(episode.from, episode.to);
        return { service: random.pick(SERVICES), from, to: from + random.between(1000, MAX_SPELL_MS) };
      }),
    );
  }

  /** When all that goes wrong is over, as far as it is known by now. */
  get endAt(): EpochMs {
    return Math.max(...[...this.episodes, ...this.#outages].map(({ to }) => to));
  }

  /** Whether things happen, or happened so short a time ago. */
  busyWithin(ms: number): boolean {
    const now = this.#clock.now();
    return this.episodes.some(({ from, to }) => from <= now && now < to + ms);
  }

  get calm(): boolean {
    const now = this.#clock.now();
    return !this.episodes.some(({ from, to }) => from <= now && now < to);
  }

  /** From now on an API server is away for a while. */
  addOutage(outage: Outage): void {
    this.#outages.push(outage);
    // What is asked at its end waits for its answer in vain.
    this.#disturbances.note('api', outage.cluster, outage.from, outage.to + outage.silenceMs);
  }

  outageOf(cluster: ClusterName): Outage | undefined {
    const now = this.#clock.now();
    return this.#outages.find((each) => each.cluster === cluster && each.from <= now && now < each.to);
  }

  /** How long a request to a cluster takes to fail that is away; `undefined`: it is there. */
  silenceMs(cluster: ClusterName): number | undefined {
    return this.outageOf(cluster)?.silenceMs;
  }

  /** `cluster`: whose API server is asked. */
  trouble(service: Service, cluster?: ClusterName): Trouble | undefined {
    const now = this.#clock.now();
    const away = this.#spells.some(
      (spell) => spell.service === service && spell.from <= now && now < spell.to,
    );
    if (!away && (this.calm || !this.#random.chance(this.climate.trouble))) return undefined;
    const when = !away && this.#random.chance(0.3) ? 'after' : 'before';
    this.#disturbances.note(service === 'api' ? 'api' : 'request', cluster, now);
    return { when, error: this.#errorOf(service, away || when === 'after') };
  }

  /** How much later than usual a request is answered that was done; 0: no later. */
  lateMs(): number {
    const { late } = this.climate;
    // Draws nothing where nothing is late: those histories are what they were.
    if (late === 0 || this.calm || !this.#random.chance(late)) return 0;
    return this.#random.between(MIN_LATE_MS, this.#random.pick(MAX_LATE_MS));
  }

  /** A process dies here. */
  death(): boolean {
    return !this.calm && this.#random.chance(this.climate.death);
  }

  /** The longest that half a request to an API server takes, this time. */
  apiLatencyMs(): number {
    const { apiMs } = this.climate;
    return this.#random.chance(SLOW_SHARE) ? apiMs : Math.min(apiMs, USUAL_API_MS);
  }

  /** Somebody else committed first, whoever. */
  conflict(): boolean {
    const happens = !this.calm && this.#random.chance(this.climate.conflict);
    if (happens) this.#disturbances.note('request', undefined, this.#clock.now());
    return happens;
  }

  /** A watch breaks such that it has to be listed anew. */
  gap(): boolean {
    return !this.calm && this.#random.chance(this.climate.gap);
  }

  /** A message that was handled comes once more. */
  duplicate(): boolean {
    return !this.calm && this.#random.chance(this.climate.duplicate);
  }

  /** Nobody hears a schedule that fires. */
  dropped(): boolean {
    return !this.calm && this.#random.chance(this.climate.dropped);
  }

  /** How DynamoDB behaves. What outlived its time to live goes minutes to two days later. */
  readonly whims: Whims = {
    pageItems: () => this.#random.between(1, this.climate.pageItems),
    leavesOut: () => this.conflict(),
    conflicts: () => this.conflict(),
    indexLagMs: () => this.#random.between(0, 400),
    removalLagMs: () => this.#random.between(60_000, this.#random.chance(0.5) ? HOUR_MS : 48 * HOUR_MS),
  };

  #errorOf(service: Service, isUnanswered: boolean): Error {
    if (service !== 'api' || isUnanswered) return unanswered(service);
    const status = this.#random.pick([0, 409, 429, 500, 503]);
    const after = status === 429 ? RETRY_AFTER_SECONDS : undefined;
    return new ApiError(`the server answered ${status}`, status, '', after);
  }
}

/** How a request fails that nobody answered. */
export function unanswered(service: Service): Error {
  switch (service) {
    case 'store':
      return Object.assign(new Error('the table is throttled'), { name: 'ThrottlingException' });
    case 'queues':
      return new QueueError('the queue is away');
    case 'timers':
      return new Error('the scheduler is away');
    case 'api':
      return new ApiError('the server answered 0', 0);
    default:
      return service satisfies never;
  }
}
