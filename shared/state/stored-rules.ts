import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import { type ClusterName, clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { FreshRelease, Policy, ReleasedTrip, Stop, Trip } from '#shared/eviction/policy.ts';
import { labelSelector } from '#shared/eviction/policy.ts';
import { type KeysOf, schemaOf } from '#shared/text/schema-of.ts';
import { epochMs } from '#shared/time/epoch-ms.ts';
import { PolicyError, parsePolicyDocument } from './policy-document.ts';
import {
  AUDIT_KINDS,
  type AuditEntry,
  type AuditQuery,
  type GuardState,
  type OperatorControls,
  type PolicyChange,
  type StoredFleetRules,
  type StoredRules,
} from './rules-store.ts';
import { StoreError } from './store.ts';

/*
 * The stored form of rules, and what every backend makes of them. Every object is strict: a field that this release
 * does not know may forbid evictions, so the whole object is then unreadable.
 */

const text = z.string().min(1);
const until = epochMs.exactOptional();
const count = z.int().nonnegative();

const act = { actor: text, at: epochMs, reason: z.string() };

export const stopSchema = z.strictObject({
  scope: z.enum(['cluster', 'fleet']),
  id: text.exactOptional(),
  ...act,
  until,
});

/** Targets of holds, as stored and as the console requests them. */
export const holdTarget = z.discriminatedUnion('kind', [
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
  z.strictObject({ kind: z.literal('namespace'), namespace: text }),
  z.strictObject({ kind: z.literal('labels'), labels: labelSelector, namespace: text.exactOptional() }),
  z.strictObject({ kind: z.literal('zone'), zone: text }),
]);

const holdSchema = z.strictObject({
  id: text,
  target: holdTarget,
  ...act,
  until,
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

const policySchema = z
  .strictObject({ text: z.string(), revision: z.int().positive(), owner: text.exactOptional() })
  .transform((policy, { addIssue }) => {
    try {
      return { ...policy, read: parsePolicyOnce(policy.text) };
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      addIssue({ code: 'custom', message: error.message.replace(/\.$/, ''), path: ['text'] });
      return z.NEVER;
    }
  });

/** Parsed policies by text. Rules are read with each pass, a policy file every second, and documents rarely change. */
const parsed = new Map<string, Policy>();
const MAX_PARSED = 1_000;

/** Parses a policy document once for each text. Throws `PolicyError`. */
export function parsePolicyOnce(text: string): Policy {
  const known = parsed.get(text);
  if (known) return known;
  const policy = parsePolicyDocument(text);
  if (parsed.size >= MAX_PARSED) parsed.clear();
  parsed.set(text, policy);
  return policy;
}

/** Returns a policy in its stored form: its text alone, which each release parses by the settings it knows. */
export const storedPolicy = (policy: OperatorControls['policy']) =>
  policy && { text: policy.text, revision: policy.revision, ...defined({ owner: policy.owner }) };

/** The fields of operator controls, in which every backend rejects unknown ones. */
export const ordersFields = {
  policy: policySchema.exactOptional(),
  stops: z.array(stopSchema),
  resumedFrom: z.strictObject({ fleetRevision: count, stoppedAt: epochMs }).exactOptional(),
  holds: z.array(holdSchema),
};

const policyChangeSchema = z.object({
  revision: z.int().positive(),
  text: z.string().exactOptional(),
  settings: z.array(z.object({ setting: text, now: z.string(), next: z.string() })),
} satisfies KeysOf<PolicyChange>);

/** Not strict: the audit log forbids no evictions. A newer release's kind is read as `policy`, with its message. */
export const auditSchema = z
  .object({
    cluster: text.transform(clusterName).exactOptional(),
    actor: text,
    at: epochMs,
    kind: z.enum(AUDIT_KINDS).catch('policy'),
    message: text,
    reason: z.string().exactOptional(),
    policy: policyChangeSchema.exactOptional(),
  })
  .apply(schemaOf<AuditEntry>());

export const NO_RULES: StoredRules = {
  orders: { revision: 0, stops: [], holds: [] },
  guard: { revision: 0, trips: [] },
  fleetRevision: 0,
};

export const fleetRules = (fleetRevision: number, stop: Stop | undefined): StoredFleetRules => ({
  fleetRevision,
  ...defined({ fleetStop: stop }),
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
