import {
  type Episode,
  type GuardCounts,
  type GuardReview,
  reportOf,
  reviewGuard,
  tripText,
  unheard,
} from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { FreshRelease, GuardPolicy, ReleasedTrip, Rules, Trip } from '#shared/eviction/policy.ts';
import type { AuditEntry, GuardState, RulesStore } from '#shared/state/rules-store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { ClusterView } from './cluster-view.ts';

/** How often what is written is written once more, should others write meanwhile. */
const TOUCHES = 3;
const BACKOFF: Backoff = { firstMs: 100, longestMs: 2_000 };

export interface GuardControllerDeps {
  readonly rulesStore: Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the view is true now, and this relay speaks for the cluster. */
  readonly knows: () => boolean;
  /** Called when all that is to be written is; with an error, when that failed and is tried again. */
  readonly saved: (error?: unknown) => void;
  /** Called when what could not be told may be told. */
  readonly freed: () => void;
  /** Has all nodes with taints that evict told again. `wake`: what is overdue there is to be looked at at once. */
  readonly retell: (wake: boolean) => void;
  /** Aborts when this relay speaks for the cluster no longer. */
  readonly signal: AbortSignal;
}

/**
 * The guard of one cluster, kept by the relay that speaks for it: judges by each node event, writes what trips and what
 * is let go, and has everything wait that is to be told until a trip is written. So nobody who evicts a pod by what was
 * told after the node that tripped it knows less than that it did. Where a trip cannot be written, all that is tainted is told under the
 * revision that it will have: no rules have that yet, so nobody evicts there, also by what was told before, until it is written or is of no
 * matter any more.
 */
export class GuardController {
  readonly #cluster: ClusterName;
  readonly #view: ClusterView;
  readonly #deps: GuardControllerDeps;
  #policy: GuardPolicy;
  /** As it is written; `undefined`: that was not read yet. */
  #state: GuardState | undefined;
  /** What is written has come so far, by the rules that were told last. */
  #heardOf = 0;
  #episodes: readonly Episode[] = [];
  /** Of the tally, as it was last judged by. */
  #changes = -1;
  /** Something is to be held, and that is not written yet. */
  #adding = false;
  #writing = false;
  /** What is to be written could not be when that was tried last. */
  #failed = false;
  /** What is told bears this revision, which is still to be written; `undefined`: it bears the one that is. */
  #promised: number | undefined;

  constructor(cluster: ClusterName, view: ClusterView, rules: Rules, deps: GuardControllerDeps) {
    this.#cluster = cluster;
    this.#view = view;
    this.#deps = deps;
    this.#policy = rules.policy.guard;
    void this.#begin();
  }

  /** What it holds. */
  get trips(): readonly Trip[] {
    return this.#state?.trips ?? [];
  }

  /** What it judges by. */
  get counts(): GuardCounts {
    return this.#counts(this.trips);
  }

  /** Whether anything may be told of the cluster: to be asked right before. */
  get mayTell(): boolean {
    this.counted();
    return this.#state !== undefined && (!this.#adding || this.#promised !== undefined);
  }

  /**
   * Writes what is written once more, and says why what the guard decides could not be stored; `undefined`: it can be. Never rejects.
   * What was never written is: as a guard that holds nothing.
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
        this.look();
      }
      return "other processes keep changing the guard's state";
    } catch (error) {
      log.warn('guard.save-failed', { cluster: this.#cluster, error });
      return unwritable;
    }
  }

  /** What governs the cluster changed. */
  ruled(rules: Rules): void {
    this.#policy = rules.policy.guard;
    this.#heardOf = rules.guardRevision;
    this.look();
  }

  /** The view may have changed. */
  counted(): void {
    if (this.#view.tally.changes !== this.#changes) this.look();
  }

  /** To be called every few seconds, too: time lets trips go. */
  look(): void {
    if (!this.#state) return;
    // What was just written may be heard of before the answer to that is in.
    if (this.#state.revision < this.#heardOf) void this.#read(this.#writing ? 'auto' : 'operator');
    if (!this.#deps.knows()) {
      this.#episodes = unheard(this.#episodes);
      return;
    }
    const review = this.#review(this.#state);
    if (isWritten(review, this.#state)) this.#settle(review);
    else void this.#write();
  }

  /** Trips that stand are taken as they are. Never rejects. */
  async #begin(): Promise<void> {
    const { freed, signal } = this.#deps;
    for (let failures = 1; !signal.aborted && !(await this.#read('operator')); failures++)
      await pause(backoffMs(failures, BACKOFF), signal);
    freed();
  }

  /** Whether what is written could be read. Never rejects. */
  async #read(by: 'auto' | 'operator'): Promise<boolean> {
    try {
      this.#adopt((await this.#deps.rulesStore.read(this.#cluster)).guard, by);
    } catch (error) {
      this.#deps.log.warn('rules.unreadable', { error });
      return false;
    }
    this.look();
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

  /** A release with the nodes for which it was said, unless the review knows them. */
  #counted({ releasedAt, ...trip }: FreshRelease): readonly ReleasedTrip[] {
    // Who released what this relay holds has seen the nodes that it sees.
    if (this.#episodes.some((each) => stands([each.trip], trip))) return [];
    return [{ ...trip, upTo: this.#view.tally.affectedBy(trip, releasedAt) }];
  }

  #counts(trips: readonly Trip[]): GuardCounts {
    const { withinMs = 0 } = this.#policy.people ?? {};
    // What people did does not get old while it holds evictions: to let go then would only have put them off.
    const { trippedAt = Number.POSITIVE_INFINITY } = trips.find(({ scope }) => scope === 'people') ?? {};
    return this.#view.tally.counts(trippedAt - withinMs, stopwatchMs(this.#deps.clock) - withinMs);
  }

  /** Writes what is to be written, again and again until there is nothing. Never rejects. */
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

  /** Has nobody evict where something is tainted, for what is to be held could not be written in place of what was `found`. */
  #promise({ revision }: GuardState): void {
    if (!this.#adding || this.#promised !== undefined || this.#state?.revision !== revision) return;
    this.#promised = revision + 1;
    this.#view.guardedBy(this.#promised);
    this.#deps.retell(false);
  }

  /** What a review said is so now. */
  #settle({ wouldTrip, episodes }: GuardReview): void {
    this.#episodes = episodes;
    this.#failed = false;
    this.#deps.saved();
    if (this.#promised !== undefined && this.#state) {
      // It was never written, and need not be any more.
      this.#promised = undefined;
      this.#view.guardedBy(this.#state.revision);
      this.#deps.retell(true);
    }
    for (const trip of wouldTrip) this.#deps.log.warn('guard.would-trip', this.#fieldsOf(trip));
  }

  /** What is written is this, unless something newer is known. */
  #adopt(state: GuardState, by: 'auto' | 'operator'): void {
    const { log } = this.#deps;
    const last = this.#state;
    if (last && state.revision <= last.revision) return;
    for (const trip of state.trips)
      if (last && !stands(last.trips, trip)) log.warn('guard.tripped', this.#fieldsOf(trip));
    for (const trip of last?.trips ?? [])
      if (!stands(state.trips, trip)) log.info('guard.released', { ...this.#fieldsOf(trip), by });
    this.#state = state;
    this.#promised = undefined;
    this.#view.guardedBy(state.revision);
  }

  /** What is noted of a change of what stands; nothing of one that leaves it as it is. */
  #entryOf(before: readonly Trip[], after: readonly Trip[]): AuditEntry | undefined {
    const added = after.filter((trip) => !stands(before, trip));
    const ended = before.filter((trip) => !stands(after, trip));
    if (added.length + ended.length === 0) return undefined;
    const kind = added.length > 0 ? 'guard-tripped' : 'guard-calm';
    const what = [
      ...added.map((trip) => `guard tripped: ${tripText(reportOf(trip))}`),
      ...ended.map((trip) => `guard reset: it had tripped because ${tripText(reportOf(trip))}`),
    ].join('; ');
    return { cluster: this.#cluster, who: 'the guard', at: this.#deps.clock.now(), kind, what };
  }

  #fieldsOf({ scope, zone, nodes, outOf }: Trip) {
    return { cluster: this.#cluster, scope, ...(zone === undefined ? {} : { zone }), nodes, total: outOf };
  }
}

/** Whether nothing is to be written for a review to be true. */
const isWritten = ({ trips, released }: GuardReview, state: GuardState): boolean =>
  isSameList(trips, state.trips) && isSameList(released, state.released ?? []);

const isSameList = (some: readonly Trip[], others: readonly Trip[]): boolean =>
  some.length === others.length && some.every((trip) => others.includes(trip));

const stands = (trips: readonly Trip[], { scope, zone, trippedAt }: Trip): boolean =>
  trips.some((trip) => trip.scope === scope && trip.zone === zone && trip.trippedAt === trippedAt);
