import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { ClusterName, NodeRef } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { History, RecentEvictions } from './history.ts';
import type { LeaseReader, Leases } from './lease.ts';
import type { Permits } from './permits.ts';
import type { FileRulesStore } from './policy-of-file.ts';
import type { OutgoingMessage } from './sender.ts';
import type { Store } from './store.ts';

/** How many scheduled evictions of a cluster stand so; but for those that wait and those given up, the kind of what holds them. */
export interface Standing {
  readonly cluster: ClusterName;
  readonly standing: 'pending' | 'gave-up' | EvictionGate['kind'];
  readonly evictions: number;
}

/** A moment at which something is due on a node. */
export interface Upcoming {
  readonly ref: NodeRef;
  readonly fireAt: EpochMs;
}

/** Countdowns that run. */
export interface Countdowns {
  /** How many there are. */
  readonly total: number;
  /** Those that end first, in that order. */
  readonly soonest: readonly { readonly ref: NodeRef; readonly record: EvictionRecord }[];
}

/** A store of which one process alone keeps the timers. Every method rejects with, or throws, `StoreError`. */
export interface ServiceStore extends Store {
  /** Distinct moments at which scheduled records fall due: timers end with their process. */
  upcoming(): AsyncIterable<Upcoming>;
  /** The countdowns that run: what is held or given up is none of them. Of the soonest, at most `limit`. */
  countdowns(limit: number): Promise<Countdowns>;
  /** How many scheduled evictions of each cluster wait, are held (by what kind of brake), or were given up; as far as this process knows. */
  standings(): readonly Standing[];
}

/** Where a service in one process keeps what is to outlive it. */
export interface ServiceState {
  readonly store: ServiceStore;
  readonly leases: Leases & Pick<LeaseReader, 'epoch'>;
  readonly rulesStore: FileRulesStore;
  readonly permits: Permits;
  readonly history: History & RecentEvictions;
  /** When this process is the one that evicts; absent: it is the only one, from the start. */
  readonly leads?: Promise<void>;
  /** Whether this process can tell who evicts; absent: always. */
  readonly reachesLeases?: () => boolean;
  /** Has `act` called each time this process may evict again after it might not for a while; absent: it always may. */
  whenRegained?(act: () => void): void;
  /** What operators asked for beside this process, which is then its to do. Rejects with `StoreError`. */
  asked(): Promise<readonly OutgoingMessage[]>;
  /** Removes what is to be kept no longer: what TTL does in DynamoDB. Rejects with `StoreError`. */
  purge(now: EpochMs): Promise<void>;
  close(): void;
}
