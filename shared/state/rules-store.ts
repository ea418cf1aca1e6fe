import { isOn, longestFirst } from '#shared/eviction/gate.ts';
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
import type { ChangedSetting } from './policy-change.ts';
import { StoreError } from './store.ts';

export interface StoredPolicy {
  readonly text: string;
  readonly read: Policy;
  readonly revision: number;
  /** The file or object that alone may change it. Absent: commands. */
  readonly owner?: string;
}

/** They change as a whole, on condition that they are still those that were read. */
export interface OperatorControls {
  /** Grows with each change; 0: there never was one. */
  readonly revision: number;
  /** The policy document: its text as the author wrote it, and the parsed policy. Absent: the default applies. */
  readonly policy?: StoredPolicy;
  /** Stops of this cluster, those that last longest first. */
  readonly stops: readonly Stop[];
  /** The fleet's stop that doesn't apply here, because this cluster was resumed alone. Each later stop applies. */
  readonly resumedFrom?: { readonly fleetRevision: number; readonly stoppedAt: EpochMs };
  readonly holds: readonly Hold[];
}

/** The state of a cluster's guard, written by its relay and by operators who release it. */
export interface GuardState {
  /** Grows with each change; 0: the guard never tripped. */
  readonly revision: number;
  readonly trips: readonly Trip[];
  /** Released trips, until their nodes recover. Absent: none. */
  readonly released?: readonly (ReleasedTrip | FreshRelease)[];
}

export interface StoredFleetRules {
  readonly fleetStop?: Stop;
  /** Grows with each change of the stop; 0: there never was one. */
  readonly fleetRevision: number;
}

export interface StoredRules extends StoredFleetRules {
  readonly orders: OperatorControls;
  readonly guard: GuardState;
}

export const AUDIT_KINDS = [
  'policy',
  'stop',
  'resume',
  'hold',
  'release',
  'release-guard',
  'retry',
  'guard-tripped',
  'guard-calm',
  'cluster-added',
  'cluster-changed',
  'cluster-removed',
  'takeover-applied',
  'takeover-released',
  'tolerations-changed',
] as const;

/** Actions of operators on clusters and their objects. They change no rules. */
export type ClusterAct = Extract<AuditEntry['kind'], `${'cluster' | 'takeover' | 'tolerations'}-${string}`>;

/** A change of rules by a user or the guard, an act on a cluster, or a retry of failed evictions. */
export interface AuditEntry {
  /** Absent: the entry concerns all clusters. */
  readonly cluster?: ClusterName;
  readonly actor: string;
  readonly at: EpochMs;
  readonly kind: (typeof AUDIT_KINDS)[number];
  readonly message: string;
  readonly reason?: string;
  readonly policy?: PolicyChange;
}

/** A change of a policy: its revision from then on, and the settings that differ. */
export interface PolicyChange {
  readonly revision: number;
  /** The document. Absent: it was withdrawn, and the default applies. */
  readonly text?: string;
  readonly settings: readonly ChangedSetting[];
}

/** A query of the audit: entries from `from` on and before `to`. */
export interface AuditQuery {
  /** Entries of this cluster, and entries that concern all clusters. Absent: every entry. */
  readonly cluster?: ClusterName;
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/** `'conflict'`: another client was faster, and nothing is written. Read and decide again. */
export type Change = 'changed' | 'conflict';

/** Every method rejects with `StoreError`; reads also for an unreadable field, which may forbid evictions. */
export interface RulesStore {
  /** Strongly consistent. `fleet`: the known rules for all clusters, which are then not read. */
  read(cluster: ClusterName, fleet?: StoredFleetRules): Promise<StoredRules>;
  /** In few calls; the rules may be briefly outdated. A cluster with unreadable rules is omitted. */
  readAll(clusters: readonly ClusterName[]): Promise<ReadonlyMap<ClusterName, StoredRules>>;
  /** Replaces the operator controls that were `found` by `next`, and adds the audit entry: both or neither. */
  changeOrders(
    cluster: ClusterName,
    found: OperatorControls,
    next: Omit<OperatorControls, 'revision'>,
    entry: AuditEntry,
  ): Promise<Change>;
  fleetStop(): Promise<Stop | undefined>;
  /** Replaces the stop of all clusters that was `found` by `next`, or removes it, and adds the audit entry. */
  changeFleetStop(found: Stop | undefined, next: Stop | undefined, entry: AuditEntry): Promise<Change>;
  /** Replaces the trips that were `found`. With an entry if this change begins or ends a trip. */
  changeGuard(
    cluster: ClusterName,
    found: GuardState,
    trips: readonly Trip[],
    entry?: AuditEntry,
  ): Promise<Change>;
  /** Writes the `found` revision (from 1 on) again: the guard's decisions can be stored. `'conflict'`: it changed. */
  touchGuard(cluster: ClusterName, found: GuardState): Promise<Change>;
  /** Adds an audit entry that changes no rules. */
  note(entry: AuditEntry): Promise<void>;
  /** The newest first. Kept as long as ended evictions, and may be briefly outdated. */
  audit(query: AuditQuery): Promise<readonly AuditEntry[]>;
}

/**
 * Resolves with current rules; rejects with `StoreError`, also if the stored rules are older than `guardRevision`:
 * nothing is evicted while the guard's decision could not be stored.
 */
export type RulesReader = (cluster: ClusterName, guardRevision?: number) => Promise<Rules>;

/** Together with the age of the node check, rules are less than a second old at each delete. */
export const RULES_MAX_AGE_MS = 700;

export interface RulesReaderDeps {
  readonly rulesStore: Pick<RulesStore, 'read'>;
  readonly matching: MatchOptions;
  readonly clock: Clock;
}

interface Requested<T> {
  readonly age: Age;
  readonly found: Promise<T>;
}

/**
 * Reads each cluster's rules at most every {@link RULES_MAX_AGE_MS}; the object is the same as long as it is reused.
 * The rules for all clusters are one item, which a large fleet would read more often than one partition allows: all
 * clusters share one read of it.
 */
export function rulesReader({ rulesStore, matching, clock }: RulesReaderDeps): RulesReader {
  const known = new Map<ClusterName, Requested<Rules>>();
  let fleet: Requested<StoredFleetRules | undefined> | undefined;

  const isFresh = ({ age }: Requested<unknown>): boolean => age.atMostMs < RULES_MAX_AGE_MS;

  const ask = (cluster: ClusterName): Requested<StoredRules> => {
    if (fleet && isFresh(fleet)) {
      const { age, found } = fleet;
      // The result is as old as the older of its parts.
      return { age, found: found.then((storedRules) => rulesStore.read(cluster, storedRules)) };
    }
    const age = new Age(clock);
    const found = rulesStore.read(cluster);
    // If this cluster's own rules are unreadable, other clusters read the rules for all clusters themselves.
    fleet = { age, found: found.catch(() => undefined) };
    return { age, found };
  };

  const newest = async (cluster: ClusterName, guardRevision: number): Promise<Rules> => {
    const last = known.get(cluster);
    if (last && isFresh(last)) {
      const rules = await last.found;
      if (rules.guardRevision >= guardRevision) return rules;
      // Another caller may already have requested newer rules.
      const next = known.get(cluster);
      if (next && next !== last) return next.found;
    }
    const { age, found } = ask(cluster);
    const rules = found.then((storedRules) => rulesOf(storedRules, matching));
    known.set(cluster, { age, found: rules });
    void rules.catch(() => known.delete(cluster));
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

/** Many clusters' current rules, in few calls, without unreadable ones. Rejects with `StoreError`. */
export const allRulesReader =
  (rulesStore: Pick<RulesStore, 'readAll'>, matching: MatchOptions) =>
  async (clusters: readonly ClusterName[]): Promise<ReadonlyMap<ClusterName, Rules>> => {
    const read = await rulesStore.readAll(clusters);
    return new Map([...read].map(([cluster, storedRules]) => [cluster, rulesOf(storedRules, matching)]));
  };

/** The form that decisions use. Without a policy, the default applies: observe mode. */
export function rulesOf(storedRules: StoredRules, matching: MatchOptions): Rules {
  const { orders, guard, fleetRevision } = storedRules;
  return {
    policy: orders.policy?.read ?? DEFAULT_POLICY,
    ordersRevision: orders.revision + fleetRevision,
    policyRevision: orders.policy?.revision ?? 0,
    stops: stopsOf(storedRules),
    holds: orders.holds,
    trips: guard.trips,
    guardRevision: guard.revision,
    matching,
  };
}

/** Returns the stops of a cluster: that of all clusters, unless this cluster was resumed from it, and its own; longest first. */
export function stopsOf({ orders, fleetStop, fleetRevision }: StoredRules): readonly Stop[] {
  const { resumedFrom, stops } = orders;
  // A new object for all clusters begins with revision 1 again, so the time must match, too.
  const isResumed = resumedFrom?.fleetRevision === fleetRevision && resumedFrom.stoppedAt === fleetStop?.at;
  return longestFirst(fleetStop && !isResumed ? [fleetStop, ...stops] : stops);
}

/** Returns the stops of a cluster that have not ended; longest first. */
export const stopsInForce = (storedRules: StoredRules, now: EpochMs): readonly Stop[] =>
  stopsOf(storedRules).filter(({ until }) => isOn(until, now));
