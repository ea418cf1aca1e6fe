import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import type { ReportedProgress } from '#shared/eviction/guard.ts';
import {
  type ClusterName,
  type ClusterUids,
  clusterName,
  nodeName,
  podUid,
} from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { type KeysOf, schemaOf } from '#shared/text/schema-of.ts';
import { cached } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';
import { type EpochMs, epochMs } from '#shared/time/epoch-ms.ts';
import { VERSION } from '#shared/version.ts';
import type { Fault } from './fault.ts';

/**
 * A lease that is not renewed for this long is free. Its holder counts from before it requested the renewal, every
 * other process from when it saw it: the holder stops before another begins, however wrong the clocks are.
 */
export const LEASE_TTL_MS = 10_000;

/** An API server sends a bookmark every minute. After this long without any event, its cluster is disconnected. */
export const DISCONNECTED_AFTER_MS = 120_000;

export interface LeaseRequest {
  readonly holder: string;
  readonly load: number;
}

export const leaseRequestSchema: z.ZodType<LeaseRequest> = z.object({
  holder: z.string(),
  load: z.number().nonnegative(),
} satisfies KeysOf<LeaseRequest>);

/** A cluster's lease, as it is stored. */
export interface LeaseRecord {
  readonly cluster: ClusterName;
  /** Absent: the lease was released, and is free. */
  readonly holder?: string;
  /**
   * The fencing token in every delta's version. It grows with every failover and never repeats, even in a new table: it
   * is never below the Unix time in seconds.
   */
  readonly epoch: number;
  /** In this epoch. If two reads find the same number, the lease was not renewed in between. */
  readonly renewals: number;
  /** By its holder's clock. Compared with `lastContactAt`, never with another clock. */
  readonly renewedAt: EpochMs;
  /** When a relay last received data from the cluster, by that relay's clock. Absent: never. */
  readonly lastContactAt?: EpochMs;
  /** The cluster's number of nodes when a relay last knew it. Absent: never. */
  readonly nodes?: number;
  /** The release of the relay that holds the lease. Absent: there is no holder, or it does not report its release. */
  readonly version?: string;
  /** That relay suspended its requests for some seconds, because the API server does not respond. */
  readonly breakerOpen?: boolean;
  /** As the holder reports them. Absent: no holder, just acquired, or its release reports none. */
  readonly faults?: readonly Fault[];
  /** The progress of the guard's active trips, as that relay reports it, at `renewedAt`. Absent as with `faults`. */
  readonly tripProgress?: readonly ReportedProgress[];
  /** The request for the lease. It stays when the lease is released, and ends when the lease is acquired. */
  readonly bid?: LeaseRequest;
  /**
   * Senders whose messages count as the cluster's deltas: the holder's and earlier holders', as the queue names them.
   * Absent: the sender is unknown, or the queue names none.
   */
  readonly senders?: readonly string[];
  /** The claim to manage the cluster with these UIDs under this name. It stays when the lease is released. */
  readonly uids?: ClusterUids;
  /** The name that claimed the same cluster first: nothing is evicted under this one. */
  readonly sameAs?: ClusterName;
}

export interface Lease extends LeaseRecord {
  readonly holder: string;
}

/** A holder's report on itself and the cluster, sent with a renewal. Unknown values stay unchanged. */
export interface LeaseReport
  extends Pick<
    LeaseRecord,
    'renewedAt' | 'lastContactAt' | 'nodes' | 'breakerOpen' | 'faults' | 'tripProgress'
  > {
  /** Ends the current request for the lease. */
  readonly declines?: true;
  /** Replaces the claim of the cluster. Such a report is not counted as a renewal: it has no other news. */
  readonly claim?: Pick<LeaseRecord, 'uids' | 'sameAs'>;
}

const text = z.string().min(1);

export const uidsSchema: z.ZodType<ClusterUids> = z.object({
  system: text.exactOptional(),
  nodes: z.array(text),
} satisfies KeysOf<ClusterUids>);

export const stuckSchema: z.ZodType<readonly StuckPod[]> = z.array(
  z.object({
    node: text.transform(nodeName),
    uid: text.transform(podUid),
    namespace: text,
    name: text,
    gracePeriodEndedAt: z.int(),
    finalizers: z.array(z.string()),
    nodeState: z.enum(['there', 'unreachable', 'gone']),
  } satisfies KeysOf<StuckPod>),
);

/** A form of a newer release is read as no progress, so that the lease stays readable. */
export const tripProgressSchema = z
  .array(
    z.object({
      scope: z.enum(['cluster', 'zone', 'customTaints']),
      zone: text.exactOptional(),
      trippedAt: epochMs,
      affectedNow: z.int().nonnegative(),
      resetsBelow: z.int().positive(),
      resetsAt: epochMs.exactOptional(),
    }),
  )
  .apply(schemaOf<readonly ReportedProgress[]>())
  .catch([]);

/** Maximum of trips whose progress is in a lease, because each renewal is charged by the lease's size. */
export const MAX_PROGRESS = 8;

/** Maximum of stored stuck pods: they are for people. */
export const MAX_STUCK = 100;

/** The leases of clusters, each with at most one holder. Holders have names that are never reused. */
export interface Leases {
  /**
   * Resolves with the lease; `undefined`: never acquired. `mayLag`: half the price. A waiting relay may use it, because
   * it cannot acquire a lease that has changed since.
   */
  read(cluster: ClusterName, options?: { readonly mayLag?: boolean }): Promise<LeaseRecord | undefined>;
  /**
   * Acquires the lease that was `found` with the next epoch; `undefined`: it changed since. The caller must make sure
   * that it is free, or that its holder is dead.
   */
  take(
    cluster: ClusterName,
    found: LeaseRecord | undefined,
    holder: string,
    now: EpochMs,
  ): Promise<Lease | undefined>;
  /** Renews a lease that the caller still holds (same holder and epoch). `undefined`: it was lost. */
  renew(lease: Lease, report: LeaseReport): Promise<Lease | undefined>;
  /** Requests a lease from its holder, and replaces an earlier request. Does nothing when the holder has changed. */
  bid(lease: Lease, bid: LeaseRequest): Promise<void>;
  /** Replaces the earlier report. Does nothing when the lease was lost. */
  reportStuck(lease: Lease, pods: readonly StuckPod[]): Promise<void>;
  stuck(cluster: ClusterName): Promise<readonly StuckPod[]>;
  /** Another relay then need not wait. Keeps the epoch. Does nothing when the lease was lost. */
  release(lease: Lease): Promise<void>;
}

/** The fields of a lease that every backend stores in the same form. */
export const leaseFields = {
  epoch: z.int().positive(),
  renewals: z.int().nonnegative(),
  renewedAt: epochMs,
  lastContactAt: epochMs.exactOptional(),
  nodes: z.int().nonnegative().exactOptional(),
  version: z.string().exactOptional(),
  breakerOpen: z.boolean().exactOptional(),
  uids: uidsSchema.exactOptional(),
  sameAs: text.transform(clusterName).exactOptional(),
};

export interface LeaseChange {
  /** Fields that the stored lease must have, or lack (`undefined`): otherwise the lease was lost. */
  readonly expected: LeaseFields;
  /** New values. `undefined` = removed. All other fields stay. */
  readonly set: LeaseFields;
  /** Added, not set: a renewal that a client repeats because its response was lost still succeeds. */
  readonly add?: { readonly renewals: number };
}

type LeaseFields = {
  readonly [Field in Exclude<keyof LeaseRecord, 'cluster' | 'senders'>]?: LeaseRecord[Field] | undefined;
};

const NO_REPORTS = { breakerOpen: undefined, faults: undefined, tripProgress: undefined };

/** Returns the acquisition, by a relay of this release, of a lease that still is exactly the one that was `found`. */
export function acquisition(found: LeaseRecord | undefined, holder: string, now: EpochMs) {
  const epoch = nextEpoch(found?.epoch, now);
  return {
    expected: { holder: found?.holder, epoch: found?.epoch, renewals: found?.renewals },
    set: {
      holder,
      version: VERSION,
      epoch,
      renewals: 0,
      renewedAt: now,
      ...NO_REPORTS,
      bid: undefined,
    },
  } satisfies LeaseChange;
}

export const renewal = (
  lease: Lease,
  { renewedAt, lastContactAt, nodes, breakerOpen, faults, tripProgress, declines, claim }: LeaseReport,
): LeaseChange => ({
  expected: holding(lease),
  set: {
    renewedAt,
    ...defined({ lastContactAt, nodes, breakerOpen, faults, tripProgress }),
    ...(declines ? { bid: undefined } : {}),
    ...(claim ? { uids: claim.uids, sameAs: claim.sameAs } : {}),
  },
  add: { renewals: claim ? 0 : 1 },
});

export const request = (lease: Lease, bid: LeaseRequest): LeaseChange => ({
  expected: holding(lease),
  set: { bid },
});

/** Returns the release of a held lease. The epoch stays, so that it never decreases. */
export const release = (lease: Lease): LeaseChange => ({
  expected: holding(lease),
  set: { holder: undefined, version: undefined, ...NO_REPORTS },
});

const holding = ({ holder, epoch }: Lease): LeaseFields => ({ holder, epoch });

export const isHeld = (record: LeaseRecord | undefined, lease: Lease): record is Lease =>
  record !== undefined && isAsExpected(record, holding(lease));

/** Returns a lease after a change. `undefined`: the lease is not as expected. */
export function changedLease(
  cluster: ClusterName,
  record: LeaseRecord | undefined,
  { expected, set, add }: LeaseChange,
): LeaseRecord | undefined {
  if (!isAsExpected(record ?? {}, expected)) return undefined;
  const renewals = (record?.renewals ?? 0) + (add?.renewals ?? 0);
  return defined({ ...record, cluster, renewals, ...set }) as LeaseRecord;
}

const isAsExpected = (stored: LeaseFields, expected: LeaseFields): boolean =>
  Object.entries(expected).every(([field, value]) => stored[field as keyof LeaseFields] === value);

export const nextEpoch = (stored: number | undefined, now: EpochMs): number =>
  Math.max((stored ?? 0) + 1, Math.floor(now / 1000));

/** A lease as a process saw it, and since when, by that process's stopwatch. */
export interface Sighting {
  readonly record: LeaseRecord | undefined;
  readonly since: number;
}

export const sighting = (
  before: Sighting | undefined,
  record: LeaseRecord | undefined,
  at: number,
): Sighting => ({ record, since: before && isSameLease(before.record, record) ? before.since : at });

/** Reports whether a lease was neither acquired, renewed nor released between two reads. */
export const isSameLease = (one: LeaseRecord | undefined, other: LeaseRecord | undefined): boolean =>
  one?.holder === other?.holder && one?.epoch === other?.epoch && one?.renewals === other?.renewals;

export interface LeaseReader {
  /** Resolves with the leases of those clusters that have one, strongly consistent. Unreadable leases are omitted. */
  readAll(clusters: readonly ClusterName[]): Promise<readonly LeaseRecord[]>;
}

export const READ_MAX_AGE_MS = 1_000;

export const onceASecond = <T>(
  read: (cluster: ClusterName) => Promise<T>,
  clock: Clock,
): ((cluster: ClusterName) => Promise<T>) => cached(READ_MAX_AGE_MS, read, clock);

/** Returns a reader of epochs that reads each at most once a second. It rejects with `StoreError`. */
export const leaseEpochs = (leases: Pick<Leases, 'read'>, clock: Clock) =>
  onceASecond(async (cluster) => (await leases.read(cluster))?.epoch, clock);
