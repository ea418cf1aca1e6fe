import type { ClusterName } from '#shared/eviction/identity.ts';
import {
  DEFAULT_POLICY,
  type FreshRelease,
  type Hold,
  type Policy,
  type ReleasedTrip,
  type Rules,
  type Stop,
  type Trip,
} from '#shared/eviction/policy.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { StoreError } from './store.ts';

/** What operators have said of a cluster; changed as a whole, by whoever saw it last. */
export interface OperatorControls {
  /** Grows with each change; 0: nothing was ever said. */
  readonly revision: number;
  /** The policy document: as its owner wrote it, and as it was read. Absent: the default holds. */
  readonly policy?: { readonly text: string; readonly read: Policy; readonly revision: number };
  readonly stop?: Stop;
  readonly holds: readonly Hold[];
}

/** What the guard of a cluster holds; written by its relay, and by who releases it. */
export interface GuardState {
  /** Grows with each change; 0: it never tripped. */
  readonly revision: number;
  readonly trips: readonly Trip[];
  /** What was released of it, until its nodes are well again; absent: nothing. */
  readonly released?: readonly (ReleasedTrip | FreshRelease)[];
}

/** What is written of all clusters at once. */
export interface StoredFleetRules {
  readonly fleetStop?: Stop;
  /** Grows with each change of that; 0: they were never stopped. */
  readonly fleetRevision: number;
}

/** All that is written of what governs a cluster. */
export interface StoredRules extends StoredFleetRules {
  readonly orders: OperatorControls;
  readonly guard: GuardState;
}

/** What the guard does by itself: it holds evictions, or lets them go. */
export type GuardAct = 'guard-tripped' | 'guard-calm';

/** What operators do beside the rules: clusters are registered and removed, and takeovers are applied and released. */
export type ClusterAct = 'cluster-added' | 'cluster-removed' | 'takeover-applied' | 'takeover-released';

/** What governs a cluster, or all of them, was changed: by hand, or by its guard; or what was given up is tried again. */
export interface AuditEntry {
  /** Absent: it concerns all clusters. */
  readonly cluster?: ClusterName;
  readonly who: string;
  readonly at: EpochMs;
  readonly kind:
    | 'policy'
    | 'stop'
    | 'resume'
    | 'hold'
    | 'release'
    | 'release-guard'
    | 'retry'
    | GuardAct
    | ClusterAct;
  /** What was done, for people. */
  readonly what: string;
  readonly why?: string;
  /** With `policy`: the text of the document that held before; absent: none did. */
  readonly before?: string;
  /** With `policy`: that of the one that holds from then on. */
  readonly after?: string;
}

/** Which entries of the audit are asked for: those from `from` on and before `to`. */
export interface AuditQuery {
  /** Those of this cluster, and those that concern all; absent: every one. */
  readonly cluster?: ClusterName;
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/** `'conflict'`: somebody else was faster, and nothing is written: read and decide again. */
export type Change = 'changed' | 'conflict';

/**
 * Where it is written what governs each cluster. Every method rejects with `StoreError`, reads also for what they cannot
 * read to the last field: something that is not understood may be what forbids an eviction.
 */
export interface RulesStore {
  /** As it is now, strongly consistent. `fleet`: what is known of all clusters, which need not be read then. */
  read(cluster: ClusterName, fleet?: StoredFleetRules): Promise<StoredRules>;
  /** Of many clusters in few calls; may lag behind by a moment. A cluster of which something cannot be read is left out. */
  readAll(clusters: readonly ClusterName[]): Promise<ReadonlyMap<ClusterName, StoredRules>>;
  /** Puts `next` in place of the orders that were `found`, and the entry into the audit, both or neither. */
  changeOrders(
    cluster: ClusterName,
    found: OperatorControls,
    next: Omit<OperatorControls, 'revision'>,
    entry: AuditEntry,
  ): Promise<Change>;
  /** The stop of all clusters as it is now, strongly consistent. */
  fleetStop(): Promise<Stop | undefined>;
  /** Puts `next`, or nothing, in place of the stop of all clusters that was `found`, and the entry into the audit. */
  changeFleetStop(found: Stop | undefined, next: Stop | undefined, entry: AuditEntry): Promise<Change>;
  /**
   * Puts these trips, standing and released ones, in place of those that were `found`; with an entry, when something begins or
   * ends to stand by that.
   */
  changeGuard(
    cluster: ClusterName,
    found: GuardState,
    trips: readonly Trip[],
    entry?: AuditEntry,
  ): Promise<Change>;
  /**
   * Writes the revision that was `found`, from 1 on, once more, so that nothing changes: it shows that what the guard decides can be stored.
   * `'conflict'`: another one is stored.
   */
  touchGuard(cluster: ClusterName, found: GuardState): Promise<Change>;
  /** Puts an entry into the audit of something that changes no rule. */
  note(entry: AuditEntry): Promise<void>;
  /** The newest first; kept for as long as what ended. May lag behind by a moment. */
  audit(query: AuditQuery): Promise<readonly AuditEntry[]>;
}

/**
 * What governs a cluster now; rejects with `StoreError`. `guardRevision`: who asks knows that the guard has come so far, and
 * what is known to be older does not do: it rejects, so that nothing is evicted while what the guard decided could not be stored.
 */
export type RulesReader = (cluster: ClusterName, guardRevision?: number) => Promise<Rules>;

/** For how long rules that were read are relied on: with the look's age they are less than a second old at each delete. */
export const RULES_MAX_AGE_MS = 700;

export interface RulesReaderDeps {
  readonly rulesStore: Pick<RulesStore, 'read'>;
  readonly matching: MatchOptions;
  readonly clock: Clock;
}

interface Asked<T> {
  readonly age: Age;
  readonly found: Promise<T>;
}

/**
 * Reads the rules of clusters, each at most every {@link RULES_MAX_AGE_MS}; the same object for as long as it is relied on. What
 * is written of all clusters is one item, which the processes of a large fleet ask for more often than one partition answers:
 * it is read with one cluster, and serves all others for the same time.
 */
export function rulesReader({ rulesStore, matching, clock }: RulesReaderDeps): RulesReader {
  const known = new Map<ClusterName, Asked<Rules>>();
  let fleet: Asked<StoredFleetRules | undefined> | undefined;

  const isFresh = ({ age }: Asked<unknown>): boolean => age.atMostMs < RULES_MAX_AGE_MS;

  const ask = (cluster: ClusterName): Asked<StoredRules> => {
    if (fleet && isFresh(fleet)) {
      const { age, found } = fleet;
      // As old as the older of its parts.
      return { age, found: found.then((storedRules) => rulesStore.read(cluster, storedRules)) };
    }
    const age = new Age(clock);
    const found = rulesStore.read(cluster);
    // Where this cluster's own cannot be read, the others read for themselves.
    fleet = { age, found: found.catch(() => undefined) };
    return { age, found };
  };

  /** The rules that are relied on, unless they are older than that revision of the guard. */
  const newest = async (cluster: ClusterName, guardRevision: number): Promise<Rules> => {
    const last = known.get(cluster);
    if (last && isFresh(last)) {
      const rules = await last.found;
      if (rules.guardRevision >= guardRevision) return rules;
      // Somebody else who needs newer ones may have asked for them already.
      const next = known.get(cluster);
      if (next && next !== last) return next.found;
    }
    const { age, found } = ask(cluster);
    const rules = found.then((storedRules) => rulesOf(storedRules, matching));
    known.set(cluster, { age, found: rules });
    rules.catch(() => known.delete(cluster));
    return rules;
  };

  return async (cluster, guardRevision = 0) => {
    const rules = await newest(cluster, guardRevision);
    if (rules.guardRevision >= guardRevision) return rules;
    throw new StoreError(
      `What the guard of ${cluster} decided is not stored (revision ${guardRevision}; stored: ${rules.guardRevision}), so nothing is evicted from this node: see guard.save-failed in the log of the relay.`,
    );
  };
}

/** Reads what governs many clusters now, in few calls; those that cannot be read are left out. Rejects with `StoreError`. */
export const allRulesReader =
  (rulesStore: Pick<RulesStore, 'readAll'>, matching: MatchOptions) =>
  async (clusters: readonly ClusterName[]): Promise<ReadonlyMap<ClusterName, Rules>> => {
    const read = await rulesStore.readAll(clusters);
    return new Map([...read].map(([cluster, storedRules]) => [cluster, rulesOf(storedRules, matching)]));
  };

/** What is written of a cluster, as the core is given it. Where there is no policy, the default holds: it is observed. */
export function rulesOf(
  { orders, guard, fleetStop, fleetRevision }: StoredRules,
  matching: MatchOptions,
): Rules {
  return {
    policy: orders.policy?.read ?? DEFAULT_POLICY,
    ordersRevision: orders.revision + fleetRevision,
    policyRevision: orders.policy?.revision ?? 0,
    stops: [fleetStop, orders.stop].filter((stop) => stop !== undefined),
    holds: orders.holds,
    trips: guard.trips,
    guardRevision: guard.revision,
    matching,
  };
}
