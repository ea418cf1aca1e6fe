import * as z from 'zod';
import { type ClusterName, clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import {
  type FreshRelease,
  type ReleasedTrip,
  type Stop,
  storedPolicy,
  type Trip,
} from '#shared/eviction/policy.ts';
import { type KeysOf, schemaOf } from '#shared/text/schema-of.ts';
import { epochMs } from '#shared/time/epoch-ms.ts';
import type {
  AppliedFile,
  AuditEntry,
  AuditQuery,
  ClusterAct,
  GuardState,
  StoredFleetRules,
  StoredRules,
} from './rules-store.ts';
import { StoreError } from './store.ts';

/*
 * The stored form of rules, and what every backend makes of them. Every object is strict: a field that this release
 * does not know may forbid evictions, so the whole object is then unreadable.
 */

const text = z.string().min(1);
const until = epochMs.exactOptional();
const count = z.int().nonnegative();

const act = { who: text, at: epochMs, why: z.string() };

export const stopSchema = z.strictObject({
  ...act,
  scope: z.enum(['cluster', 'fleet']),
  until,
});

const holdSchema = z.strictObject({
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
  scope: z.enum(['cluster', 'zone', 'customTaints']),
  zone: text.exactOptional(),
  trippedAt: epochMs,
  nodes: count,
  outOf: count,
  upTo: count.exactOptional(),
  releasedAt: epochMs.exactOptional(),
} satisfies KeysOf<StoredTrip>);

export const tripsSchema = z.array(tripSchema);

export function guardStateOf(revision: number, stored: readonly StoredTrip[]): GuardState {
  const released = stored.filter((trip) => isCounted(trip) || isFresh(trip));
  const trips = stored.filter((trip) => !isCounted(trip) && !isFresh(trip));
  return { revision, trips, ...(released.length === 0 ? {} : { released }) };
}

export const storedTrips = ({ trips, released = [] }: GuardState): readonly Trip[] => [...released, ...trips];

const isCounted = (trip: StoredTrip): trip is ReleasedTrip => trip.upTo !== undefined;

const isFresh = (trip: StoredTrip): trip is FreshRelease => trip.releasedAt !== undefined;

const storedPolicySchema = z.strictObject({
  text: z.string(),
  read: storedPolicy,
  revision: z.int().positive(),
});

/** The fields of operator controls, in which every backend rejects unknown ones. */
export const ordersFields = {
  policy: storedPolicySchema.exactOptional(),
  stop: stopSchema.exactOptional(),
  resumedFrom: z.strictObject({ fleetRevision: count, stoppedAt: epochMs }).exactOptional(),
  holds: z.array(holdSchema),
};

/** The policy file that was applied last. Not strict: fields of a newer release forbid no evictions. */
export const appliedFileSchema: z.ZodType<AppliedFile> = z.object({
  hash: text,
  writtenAt: epochMs,
} satisfies KeysOf<AppliedFile>);

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

/** Not strict: fields of a newer release forbid no evictions. `does`: the kind, if it is none of the first. */
export const auditSchema = z
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
  .transform(({ does, ...entry }) => ({
    ...entry,
    kind: CLUSTER_ACTS.find((act) => act === does) ?? entry.kind,
  }))
  .apply(schemaOf<AuditEntry>());

/** Returns an audit entry in its stored form, which every release can read. */
export function storedAudit(entry: AuditEntry): Omit<AuditEntry, 'kind'> & {
  readonly kind: string;
  readonly does?: ClusterAct;
} {
  const does = CLUSTER_ACTS.find((act) => act === entry.kind);
  return does === undefined ? entry : { ...entry, kind: SHOWN_AS, does };
}

export const NO_RULES: StoredRules = {
  orders: { revision: 0, holds: [] },
  guard: { revision: 0, trips: [] },
  fleetRevision: 0,
};

export const fleetRules = (fleetRevision: number, stop: Stop | undefined): StoredFleetRules => ({
  fleetRevision,
  ...(stop ? { fleetStop: stop } : {}),
});

/** Returns the rules of those clusters whose rules `read` can read. An unreadable cluster hides no other. */
export function readableRules(
  clusters: readonly ClusterName[],
  read: (cluster: ClusterName) => StoredRules,
): ReadonlyMap<ClusterName, StoredRules> {
  const found = new Map<ClusterName, StoredRules>();
  for (const cluster of clusters) {
    try {
      found.set(cluster, read(cluster));
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    }
  }
  return found;
}

export const auditFor = (
  { cluster, from, to }: AuditQuery,
  entries: readonly AuditEntry[],
): readonly AuditEntry[] =>
  entries
    .filter(({ at }) => at >= from && at < to)
    .filter((entry) => cluster === undefined || (entry.cluster ?? cluster) === cluster)
    .sort((a, b) => b.at - a.at);
