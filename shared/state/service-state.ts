import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { ClusterName, NodeRef } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { History, ScheduledEviction } from './history.ts';
import type { Leases } from './lease.ts';
import type { Permits } from './permits.ts';
import type { PolicySource } from './policy-file.ts';
import type { RulesStore } from './rules-store.ts';
import type { OutgoingMessage } from './sender.ts';
import type { Store } from './store.ts';

/** Number of a cluster's scheduled evictions in one state: pending, failed, or the kind of gate that holds them. */
export interface StateCount {
  readonly cluster: ClusterName;
  readonly state: 'pending' | 'failed' | EvictionGate['kind'];
  readonly evictions: number;
}

export interface Upcoming {
  readonly ref: NodeRef;
  readonly dueAt: EpochMs;
}

export interface Countdowns {
  readonly total: number;
  readonly soonest: readonly ScheduledEviction[];
}

/** A store for which one process alone keeps the timers. Every method rejects with, or throws, `StoreError`. */
export interface ServiceStore extends Store {
  /** Yields the distinct deadlines of scheduled records, because timers end with their process. */
  upcoming(): AsyncIterable<Upcoming>;
  /** Excludes held and failed evictions. Returns at most `limit` of the soonest. */
  countdowns(limit: number): Promise<Countdowns>;
  states(): readonly StateCount[];
}

export interface ServiceState {
  readonly store: ServiceStore;
  readonly leases: Leases;
  readonly rulesStore: RulesStore;
  /** The object that owns the policies, if it exists. */
  readonly policies?: PolicySource;
  readonly permits: Permits;
  readonly history: History;
  /** Resolves when this process begins to evict. Absent: it is the only process, and evicts from the start. */
  readonly leads?: Promise<void>;
  /** `act` is called each time this process may evict again after an interruption. Absent: it always may. */
  whenRegained?(act: () => void): void;
  /** Removes and returns requests from outside; this process must then perform them. Rejects with `StoreError`. */
  requests(): Promise<readonly OutgoingMessage[]>;
  /** Removes state whose retention is over, as TTL does in DynamoDB. Rejects with `StoreError`. */
  purge(now: EpochMs): Promise<void>;
  close(): void;
}
