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

/** A failing request: before it had any effect, or after (its answer was lost). */
export interface Trouble {
  readonly when: 'before' | 'after';
  readonly error: Error;
}

/** A period with events and failures. */
export interface Episode {
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/** A period in which an API server is unavailable. */
export interface Outage extends Episode {
  readonly cluster: ClusterName;
  /** The time until a request notices that. */
  readonly silenceMs: number;
}

interface Spell extends Episode {
  readonly service: Service;
}

const SERVICES = ['store', 'queues', 'timers', 'api'] as const;
const MAX_SPELL_MS = 4 * 60_000;
/** The longest time of most requests to API servers, each way. Some take up to the climate's limit. */
const USUAL_API_MS = 80;
const SLOW_SHARE = 0.3;
const RETRY_AFTER_SECONDS = 7;
const HOUR_MS = 3_600_000;
/** The shortest and longest delays of a late answer, as often as they are drawn. Requests time out before the longest. */
const MIN_LATE_MS = 300;
const MAX_LATE_MS = [1_000, 4_000, 15_000] as const;

/** The failures and their times: in episodes only. Every failure is noted. */
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

  /** The time when all failures known so far are over. */
  get endAt(): EpochMs {
    return Math.max(...[...this.episodes, ...this.#outages].map(({ to }) => to));
  }

  /** Reports whether an episode is in progress, or ended within that duration. */
  busyWithin(ms: number): boolean {
    const now = this.#clock.now();
    return this.episodes.some(({ from, to }) => from <= now && now < to + ms);
  }

  get calm(): boolean {
    const now = this.#clock.now();
    return !this.episodes.some(({ from, to }) => from <= now && now < to);
  }

  /** Makes an API server unavailable for a while. */
  addOutage(outage: Outage): void {
    this.#outages.push(outage);
    // A request at the end of the outage waits for an answer that never comes.
    this.#disturbances.note('api', outage.cluster, outage.from, outage.to + outage.silenceMs);
  }

  outageOf(cluster: ClusterName): Outage | undefined {
    const now = this.#clock.now();
    return this.#outages.find((each) => each.cluster === cluster && each.from <= now && now < each.to);
  }

  /** Returns the time that a request to an unavailable cluster takes to fail; `undefined`: the cluster is available. */
  silenceMs(cluster: ClusterName): number | undefined {
    return this.outageOf(cluster)?.silenceMs;
  }

  /** `cluster`: the cluster whose API server receives the request. */
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

  /** Returns the additional delay of the answer to a completed request; 0: none. */
  delayMs(): number {
    const { late } = this.climate;
    // Draws no random numbers where nothing is late, so that those histories stay the same.
    if (late === 0 || this.calm || !this.#random.chance(late)) return 0;
    return this.#random.between(MIN_LATE_MS, this.#random.pick(MAX_LATE_MS));
  }

  /** Reports whether the process dies now. */
  death(): boolean {
    return !this.calm && this.#random.chance(this.climate.death);
  }

  /** Returns the longest time of half a request to an API server, for this request. */
  apiLatencyMs(): number {
    const { apiMs } = this.climate;
    return this.#random.chance(SLOW_SHARE) ? apiMs : Math.min(apiMs, USUAL_API_MS);
  }

  /** Reports whether another process committed first. */
  conflict(): boolean {
    const happens = !this.calm && this.#random.chance(this.climate.conflict);
    if (happens) this.#disturbances.note('request', undefined, this.#clock.now());
    return happens;
  }

  /** Reports whether a watch breaks and needs a new list. */
  gap(): boolean {
    return !this.calm && this.#random.chance(this.climate.gap);
  }

  /** Reports whether a handled message is delivered again. */
  duplicate(): boolean {
    return !this.calm && this.#random.chance(this.climate.duplicate);
  }

  /** Reports whether the message of a fired schedule is lost. */
  dropped(): boolean {
    return !this.calm && this.#random.chance(this.climate.dropped);
  }

  /** The behavior of DynamoDB. Expired items are deleted minutes to two days later. */
  readonly whims: Whims = {
    pageItems: () => this.#random.between(1, this.climate.pageItems),
    leavesOut: () => this.conflict(),
    conflicts: () => this.conflict(),
    indexLagMs: () => this.#random.between(0, 400),
    readsLate: () => true,
    removalLagMs: () => this.#random.between(60_000, this.#random.chance(0.5) ? HOUR_MS : 48 * HOUR_MS),
  };

  #errorOf(service: Service, isUnanswered: boolean): Error {
    if (service !== 'api' || isUnanswered) return unanswered(service);
    const status = this.#random.pick([0, 409, 429, 500, 503]);
    const after = status === 429 ? RETRY_AFTER_SECONDS : undefined;
    return new ApiError(`the server answered ${status}`, status, '', after);
  }
}

/** Returns the error of a request without an answer. */
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
