import type { GuardState, Rulebook } from '#shared/clusters/rulebook.ts';
import { type Episode, type GuardReview, reviewGuard, unheard } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { GuardPolicy, Rules, Trip } from '#shared/eviction/policy.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { ClusterView } from './cluster-view.ts';

const BACKOFF: Backoff = { firstMs: 100, longestMs: 2_000 };

export interface GuardKeeperDeps {
  readonly rulebook: Pick<Rulebook, 'read' | 'changeGuard'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the view is true now, and this relay speaks for the cluster. */
  readonly knows: () => boolean;
  /** Called when what could not be told may be told. */
  readonly freed: () => void;
  /** Aborts when this relay speaks for the cluster no longer. */
  readonly signal: AbortSignal;
}

/**
 * The guard of one cluster, kept by the relay that speaks for it: judges by each node event, writes what trips and what
 * is let go, and has everything wait that is to be told until a trip is written. So nobody who evicts a pod by what was
 * told after the node that tripped it knows less than that it did.
 */
export class GuardKeeper {
  readonly #cluster: ClusterName;
  readonly #view: ClusterView;
  readonly #deps: GuardKeeperDeps;
  #policy: GuardPolicy;
  #state: GuardState;
  #episodes: readonly Episode[] = [];
  /** Of the tally, as it was last judged by. */
  #changes = -1;
  /** Something is to be held, and that is not written yet. */
  #adding = false;
  #writing = false;

  /** `rules`: those that stand, which are taken as they are. */
  constructor(cluster: ClusterName, view: ClusterView, rules: Rules, deps: GuardKeeperDeps) {
    this.#cluster = cluster;
    this.#view = view;
    this.#deps = deps;
    this.#policy = rules.policy.guard;
    this.#state = guardOf(rules);
    view.guardedBy(this.#state.revision);
  }

  /** What it holds. */
  get trips(): readonly Trip[] {
    return this.#state.trips;
  }

  /** Whether anything may be told of the cluster: to be asked right before. */
  get mayTell(): boolean {
    this.counted();
    return !this.#adding;
  }

  /** What governs the cluster changed. */
  ruled(rules: Rules): void {
    this.#policy = rules.policy.guard;
    // What was just written may be read before the answer to that is in.
    this.#adopt(guardOf(rules), this.#writing ? 'itself' : 'operator');
    this.look();
  }

  /** The view may have changed. */
  counted(): void {
    if (this.#view.tally.changes !== this.#changes) this.look();
  }

  /** To be called every few seconds, too: time lets trips go. */
  look(): void {
    if (!this.#deps.knows()) {
      this.#episodes = unheard(this.#episodes);
      return;
    }
    const review = this.#review();
    if (isWritten(review)) this.#settle(review);
    else void this.#write();
  }

  #review(): GuardReview {
    const { now } = this.#deps.clock;
    const { tally } = this.#view;
    this.#changes = tally.changes;
    const { withinMs = 0 } = this.#policy.people ?? {};
    // What people did does not get old while it holds evictions: to let go then would only have put them off.
    const { trippedAt = now() } = this.trips.find(({ scope }) => scope === 'people') ?? {};
    const counts = tally.counts(trippedAt - withinMs);
    const review = reviewGuard(this.#policy, counts, { trips: this.trips, episodes: this.#episodes }, now());
    this.#adding = review.added.length > 0;
    return review;
  }

  /** Writes what is to be written, again and again until there is nothing. Never rejects. */
  async #write(): Promise<void> {
    if (this.#writing) return;
    this.#writing = true;
    const { rulebook, knows, freed, log, signal } = this.#deps;
    for (let failures = 0; knows() && !signal.aborted; ) {
      const review = this.#review();
      if (isWritten(review)) {
        this.#settle(review);
        break;
      }
      try {
        const found = this.#state;
        const change = await rulebook.changeGuard(this.#cluster, found, review.trips);
        if (change === 'changed') {
          this.#adopt({ revision: found.revision + 1, trips: review.trips }, 'itself');
          this.#settle(review);
        } else {
          this.#adopt((await rulebook.read(this.#cluster)).guard, 'operator');
        }
        failures = 0;
      } catch (error) {
        failures += 1;
        log.warn('guard.unwritten', { cluster: this.#cluster, reason: error });
        await pause(backoffMs(failures, BACKOFF), signal);
      }
    }
    this.#writing = false;
    if (!this.#adding) freed();
  }

  /** What a review said is so now. */
  #settle({ wouldTrip, episodes }: GuardReview): void {
    this.#episodes = episodes;
    for (const trip of wouldTrip) this.#deps.log.warn('guard.would-trip', this.#fieldsOf(trip));
  }

  /** What is written is this, unless it is known to be newer. */
  #adopt(state: GuardState, by: 'itself' | 'operator'): void {
    if (state.revision <= this.#state.revision) return;
    const { log } = this.#deps;
    for (const trip of state.trips)
      if (!stands(this.trips, trip)) log.warn('guard.tripped', this.#fieldsOf(trip));
    for (const trip of this.trips)
      if (!stands(state.trips, trip)) log.info('guard.released', { ...this.#fieldsOf(trip), by });
    this.#state = state;
    this.#view.guardedBy(state.revision);
  }

  #fieldsOf({ scope, zone, nodes, outOf }: Trip) {
    return { cluster: this.#cluster, scope, ...(zone === undefined ? {} : { zone }), nodes, outOf };
  }
}

const guardOf = ({ guardRevision: revision, trips }: Rules): GuardState => ({ revision, trips });

/** Whether nothing is to be written for a review to be true. */
const isWritten = ({ added, released }: GuardReview): boolean => added.length + released.length === 0;

const stands = (trips: readonly Trip[], { scope, zone, trippedAt }: Trip): boolean =>
  trips.some((trip) => trip.scope === scope && trip.zone === zone && trip.trippedAt === trippedAt);
