import * as z from 'zod';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import {
  type FreshRelease,
  type Hold,
  type ReleasedTrip,
  type Stop,
  storedPolicy,
  type Trip,
} from '#shared/eviction/policy.ts';
import { epochMs } from '#shared/time/epoch-ms.ts';
import type { AppliedFile } from './policy-of-file.ts';
import type { AuditEntry, ClusterAct, GuardState } from './rules-store.ts';

/*
 * The stored form of rules. Every object is strict: a field that this release does not know may forbid evictions, so
 * the whole object is then unreadable.
 */

const text = z.string().min(1);
const until = epochMs.exactOptional();
const count = z.int().nonnegative();

const act = { who: text, at: epochMs, why: z.string() };

export const stopSchema: z.ZodType<Stop> = z.strictObject({
  ...act,
  scope: z.enum(['cluster', 'fleet']),
  until,
});

export const holdSchema: z.ZodType<Hold> = z.strictObject({
  ...act,
  id: text,
  until,
  target: z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('pod'),
      namespace: text,
      name: text,
      uid: text.transform(podUid).exactOptional(),
    }),
    z.strictObject({
      kind: z.literal('workload'),
      namespace: text,
      owner: z.strictObject({ kind: text, name: text }),
    }),
    z.strictObject({ kind: z.literal('node'), node: text.transform(nodeName) }),
  ]),
});

/** A trip that is active or was released. Only a released trip has a release time, or a maximum number of nodes. */
type StoredTrip = Trip & Partial<Pick<ReleasedTrip, 'upTo'> & Pick<FreshRelease, 'releasedAt'>>;

const tripSchema: z.ZodType<StoredTrip> = z.strictObject({
  scope: z.enum(['cluster', 'zone', 'people']),
  zone: text.exactOptional(),
  trippedAt: epochMs,
  nodes: count,
  outOf: count,
  upTo: count.exactOptional(),
  releasedAt: epochMs.exactOptional(),
});

export const tripsSchema = z.array(tripSchema);

/** Returns a guard's state from its stored list of trips. */
export function guardStateOf(revision: number, stored: readonly StoredTrip[]): GuardState {
  const released = stored.filter((trip) => isCounted(trip) || isFresh(trip));
  const trips = stored.filter((trip) => !isCounted(trip) && !isFresh(trip));
  return { revision, trips, ...(released.length === 0 ? {} : { released }) };
}

const isCounted = (trip: StoredTrip): trip is ReleasedTrip => trip.upTo !== undefined;

const isFresh = (trip: StoredTrip): trip is FreshRelease => trip.releasedAt !== undefined;

export const storedPolicySchema = z.strictObject({
  text: z.string(),
  read: storedPolicy,
  revision: z.int().positive(),
});

/** The policy file that was applied last. Not strict: fields of a newer release forbid no evictions. */
export const appliedFileSchema: z.ZodType<AppliedFile> = z.object({ hash: text, writtenAt: epochMs });

/** The kinds that every release can read. */
const FIRST_KINDS = [
  'policy',
  'stop',
  'resume',
  'hold',
  'release',
  'release-guard',
  'retry',
  'guard-tripped',
  'guard-calm',
] as const;
const CLUSTER_ACTS: readonly ClusterAct[] = [
  'cluster-added',
  'cluster-removed',
  'takeover-applied',
  'takeover-released',
];
/** Releases that know only the first kinds show an entry of another kind as this one, with its `what`. */
const SHOWN_AS = 'policy';

/**
 * An audit entry. Not strict: fields of a newer release forbid no evictions. `does`: the kind, if it is none of the
 * first.
 */
export const auditSchema: z.ZodType<AuditEntry> = z
  .object({
    cluster: text.transform(clusterName).exactOptional(),
    who: text,
    at: epochMs,
    kind: z.enum(FIRST_KINDS),
    does: z.unknown().optional(),
    what: text,
    why: z.string().exactOptional(),
    before: z.string().exactOptional(),
    after: z.string().exactOptional(),
  })
  .transform(
    ({ does, ...entry }): AuditEntry => ({
      ...entry,
      kind: CLUSTER_ACTS.find((act) => act === does) ?? entry.kind,
    }),
  );

/** Returns an audit entry in its stored form, which every release can read. */
export function storedAudit(entry: AuditEntry): Omit<AuditEntry, 'kind'> & {
  readonly kind: string;
  readonly does?: ClusterAct;
} {
  const does = CLUSTER_ACTS.find((act) => act === entry.kind);
  return does === undefined ? entry : { ...entry, kind: SHOWN_AS, does };
}
