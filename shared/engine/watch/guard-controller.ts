import { defined } from '#shared/defined.ts';
import {
  type Episode,
  type GuardCounts,
  type GuardReview,
  progressOf,
  type ReportedProgress,
  reportOf,
  reviewGuard,
  type TripReport,
  tripText,
  unreported,
} from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { FreshRelease, GuardPolicy, ReleasedTrip, Rules, Trip } from '#shared/eviction/policy.ts';
import type { AuditEntry, GuardState, RulesStore } from '#shared/state/rules-store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { ClusterView } from './cluster-view.ts';

/** Attempts to rewrite the stored state while other processes write it. */
const TOUCHES = 3;
const BACKOFF: Backoff = { firstMs: 100, longestMs: 2_000 };

export interface GuardControllerDeps {
  readonly rulesStore: Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly knows: () => boolean;
  /** Called when everything is saved; with an error, when saving failed and is retried. */
  readonly saved: (error?: unknown) => void;
  /** Called when deltas that had to wait may be sent. */
  readonly freed: () => void;
  /** Marks all nodes with evicting taints for sending again. `wake`: overdue evictions are checked immediately. */
  readonly retell: (wake: boolean) => void;
  /** Aborts when this relay no longer holds the cluster's lease. */
  readonly signal: AbortSignal;
}

/**
 * The guard of one cluster, run by the relay that holds the cluster's lease. It evaluates each node event, saves trips
 * and resets, and delays all deltas until a trip is saved. So every evictor that acts on a delta from after the
 * tripping event also reads the trip.
 *
 * If a trip can't be saved, all tainted nodes are sent with the revision that the trip will have. No rules have that
 * revision yet, so nothing is evicted there, even by earlier deltas, until the trip is saved or no longer needed.
 */
export class GuardController {
  readonly #cluster: ClusterName;
  readonly #view: ClusterView;
  readonly #deps: GuardControllerDeps;
  #policy: GuardPolicy;
  #state: GuardState | undefined;
  /** The newest stored revision, according to the last rules received. */
  #newestRevision = 0;
  #episodes: readonly Episode[] = [];
  #changes = -1;
  #adding = false;
  #writing = false;
  #failed = false;
  /** The unsaved revision with which deltas are stamped; `undefined`: they are stamped with the saved one. */
  #promised: number | undefined;

  constructor(cluster: ClusterName, view: ClusterView, rules: Rules, deps: GuardControllerDeps) {
    this.#cluster = cluster;
    this.#view = view;
    this.#deps = deps;
    this.#policy = rules.policy.guard;
    void this.#begin();
  }

  get trips(): readonly Trip[] {
    return this.#state?.trips ?? [];
  }

  get counts(): GuardCounts {
    return this.#counts(this.trips);
  }

  get reports(): readonly TripReport[] {
    return this.trips.map((trip) => reportOf(trip, this.progress));
  }

  /** The progress of the active trips; empty: this relay doesn't know the cluster's current state. */
  get progress(): readonly ReportedProgress[] {
    const { knows, clock } = this.#deps;
    if (!knows()) return [];
    const guarded = { trips: this.trips, episodes: this.#episodes };
    return progressOf(this.#policy, this.counts, guarded, clock.now(), stopwatchMs(clock));
  }

  /**
   * Reports whether deltas may be sent: the current counts are reviewed, and no new trip waits to be saved. To be
   * checked immediately before sending.
   */
  get maySend(): boolean {
    const isReviewed = this.#view.tally.changes === this.#changes || !this.#deps.knows();
    return isReviewed && this.#state !== undefined && (!this.#adding || this.#promised !== undefined);
  }

  /**
   * Saves the stored state once more, or a guard without trips if none was saved. Resolves with the reason why decisions
   * can't be stored; `undefined`: they can. Never rejects.
   */
  async whyUnwritable(): Promise<string | undefined> {
    const { rulesStore, log } = this.#deps;
    const unwritable = "the guard's state can't be saved: see guard.save-failed in the relay's log";
    try {
      for (let tries = 0; tries < TOUCHES; tries++) {
        const found = this.#state;
        if (!found) return "the guard's state can't be read: see rules.unreadable in the relay's log";
        if (this.#failed) return unwritable;
        const isNew = found.revision === 0;
        const change = isNew
          ? await rulesStore.changeGuard(this.#cluster, found, [])
          : await rulesStore.touchGuard(this.#cluster, found);
        if (change === 'changed') {
          if (isNew) this.#adopt({ revision: 1, trips: [] }, 'auto');
          return undefined;
        }
        this.#adopt((await rulesStore.read(this.#cluster)).guard, 'operator');
        this.review();
      }
      return "other processes keep changing the guard's state";
    } catch (error) {
      log.warn('guard.save-failed', { cluster: this.#cluster, error });
      return unwritable;
    }
  }

  ruled(rules: Rules): void {
    this.#policy = rules.policy.guard;
    this.#newestRevision = rules.guardRevision;
    this.review();
  }

  /** To be called after each change of nodes, before its deltas are sent. */
  counted(): void {
    if (this.#view.tally.changes !== this.#changes) this.#reviewNow();
  }

  /** Reviews the guard. Also to be called every few seconds: time resets trips. */
  review(): void {
    const waited = !this.maySend;
    this.#reviewNow();
    if (waited && this.maySend) this.#deps.freed();
  }

  #reviewNow(): void {
    if (!this.#state) return;
    // The rules may show a revision that this relay just wrote before the answer to the write arrives.
    if (this.#state.revision < this.#newestRevision) void this.#read(this.#writing ? 'auto' : 'operator');
    if (!this.#deps.knows()) {
      this.#episodes = unreported(this.#episodes);
      return;
    }
    const review = this.#review(this.#state);
    if (isWritten(review, this.#state)) this.#settle(review);
    else void this.#write();
  }

  /** Reads the stored state. Stored trips stay active. Never rejects. */
  async #begin(): Promise<void> {
    const { freed, signal } = this.#deps;
    for (let failures = 1; !signal.aborted && !(await this.#read('operator')); failures++)
      await pause(backoffMs(failures, BACKOFF), signal);
    freed();
  }

  /** Never rejects. */
  async #read(actor: 'auto' | 'operator'): Promise<boolean> {
    const shown = this.#newestRevision;
    try {
      const { guard } = await this.#deps.rulesStore.read(this.#cluster);
      this.#adopt(guard, actor);
      // After a restore of the store, the rules show a revision that is gone. Nothing newer is there to be read.
      if (this.#newestRevision === shown) this.#newestRevision = Math.min(shown, guard.revision);
    } catch (error) {
      this.#deps.log.warn('rules.unreadable', { error });
      return false;
    }
    this.#reviewNow();
    return true;
  }

  #review({ trips, released: stored = [] }: GuardState): GuardReview {
    const { clock } = this.#deps;
    const { tally } = this.#view;
    this.#changes = tally.changes;
    const counts = this.#counts(trips);
    const released = stored.flatMap((each) => ('upTo' in each ? each : this.#counted(each)));
    const review = reviewGuard(
      this.#policy,
      counts,
      { trips, released, episodes: this.#episodes },
      clock.now(),
      stopwatchMs(clock),
    );
    this.#adding = review.added.length > 0;
    return review;
  }

  /** Returns a release with the number of nodes for which it was given; empty if the review has an episode for it. */
  #counted({ releasedAt, ...trip }: FreshRelease): readonly ReleasedTrip[] {
    // The operator who released a trip that this relay holds has seen the same nodes as the relay.
    if (this.#episodes.some((each) => stands([each.trip], trip))) return [];
    return [{ ...trip, upTo: this.#view.tally.affectedBy(trip, releasedAt) }];
  }

  #counts(trips: readonly Trip[]): GuardCounts {
    const { windowMs = 0 } = this.#policy.customTaints ?? {};
    // Custom taints don't age while they hold evictions: otherwise, the hold would only have postponed the evictions.
    const { trippedAt = Number.POSITIVE_INFINITY } =
      trips.find(({ scope }) => scope === 'customTaints') ?? {};
    return this.#view.tally.counts(trippedAt - windowMs, stopwatchMs(this.#deps.clock) - windowMs);
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    if (this.#writing) return;
    this.#writing = true;
    const { rulesStore, knows, saved, freed, log, signal } = this.#deps;
    for (let failures = 0; this.#state && knows() && !signal.aborted; ) {
      const found = this.#state;
      const review = this.#review(found);
      const { trips, released } = review;
      if (isWritten(review, found)) {
        this.#settle(review);
        break;
      }
      try {
        const entry = this.#entryOf(found.trips, trips);
        const change = await rulesStore.changeGuard(this.#cluster, found, [...trips, ...released], entry);
        if (change === 'changed') {
          this.#adopt({ revision: found.revision + 1, trips, released }, 'auto');
          this.#settle(review);
        } else {
          this.#adopt((await rulesStore.read(this.#cluster)).guard, 'operator');
        }
        failures = 0;
        this.#failed = false;
      } catch (error) {
        failures += 1;
        this.#failed = true;
        saved(error);
        log.warn('guard.save-failed', { cluster: this.#cluster, error });
        this.#promise(found);
        await pause(backoffMs(failures, BACKOFF), signal);
      }
    }
    this.#writing = false;
    if (!this.#adding) freed();
  }

  /** Prevents evictions from all tainted nodes while a new trip can't be saved on top of this stored state. */
  #promise({ revision }: GuardState): void {
    if (!this.#adding || this.#promised !== undefined || this.#state?.revision !== revision) return;
    this.#promised = revision + 1;
    this.#view.guardedBy(this.#promised);
    this.#deps.retell(false);
  }

  #settle({ wouldTrip, episodes }: GuardReview): void {
    this.#episodes = episodes;
    this.#failed = false;
    this.#deps.saved();
    if (this.#promised !== undefined && this.#state) {
      // The promised trip was never saved and isn't needed anymore.
      this.#promised = undefined;
      this.#view.guardedBy(this.#state.revision);
      this.#deps.retell(true);
    }
    for (const trip of wouldTrip) this.#deps.log.warn('guard.would-trip', this.#fieldsOf(trip));
  }

  #adopt(state: GuardState, actor: 'auto' | 'operator'): void {
    const { log } = this.#deps;
    const last = this.#state;
    if (last && state.revision <= last.revision) return;
    for (const trip of state.trips)
      if (last && !stands(last.trips, trip)) log.warn('guard.tripped', this.#fieldsOf(trip));
    for (const trip of last?.trips ?? [])
      if (!stands(state.trips, trip)) log.info('guard.released', { ...this.#fieldsOf(trip), by: actor });
    this.#state = state;
    this.#promised = undefined;
    this.#view.guardedBy(state.revision);
  }

  #entryOf(before: readonly Trip[], after: readonly Trip[]): AuditEntry | undefined {
    const added = after.filter((trip) => !stands(before, trip));
    const ended = before.filter((trip) => !stands(after, trip));
    if (added.length + ended.length === 0) return undefined;
    const kind = added.length > 0 ? 'guard-tripped' : 'guard-calm';
    const what = [
      ...added.map((trip) => `guard tripped: ${tripText(reportOf(trip))}`),
      ...ended.map((trip) => `guard reset: it had tripped with ${tripText(reportOf(trip))}`),
    ].join('; ');
    return { cluster: this.#cluster, actor: 'the guard', at: this.#deps.clock.now(), kind, message: what };
  }

  #fieldsOf({ scope, zone, nodes, outOf }: Trip) {
    return { cluster: this.#cluster, scope, ...defined({ zone }), nodes, total: outOf };
  }
}

const isWritten = ({ trips, released }: GuardReview, state: GuardState): boolean =>
  isSameList(trips, state.trips) && isSameList(released, state.released ?? []);

const isSameList = (some: readonly Trip[], others: readonly Trip[]): boolean =>
  some.length === others.length && some.every((trip) => others.includes(trip));

const stands = (trips: readonly Trip[], { scope, zone, trippedAt }: Trip): boolean =>
  trips.some((trip) => trip.scope === scope && trip.zone === zone && trip.trippedAt === trippedAt);
