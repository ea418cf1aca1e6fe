import * as z from 'zod';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { FreshRelease, Hold, Policy, ReleasedTrip, Stop, Trip } from '#shared/eviction/policy.ts';
import { epochMs } from '#shared/time/epoch-ms.ts';
import type { AppliedFile } from './policy-of-file.ts';
import type { AuditEntry, GuardState } from './rulebook.ts';

/*
 * What is stored of what governs clusters. Every object is strict: a field that this release does not know may forbid
 * something, so what holds it cannot be read at all.
 */

const text = z.string().min(1);
const until = epochMs.exactOptional();
const percent = z.number().min(0).max(100);
const count = z.int().nonnegative();
const positive = z.number().positive();

const selection = z.strictObject({
  namespaces: z.array(text).exactOptional(),
  labels: z
    .strictObject({
      matchLabels: z.record(z.string(), z.string()).exactOptional(),
      matchExpressions: z
        .array(
          z.strictObject({
            key: text,
            operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
            values: z.array(z.string()).exactOptional(),
          }),
        )
        .exactOptional(),
    })
    .exactOptional(),
  taints: z.array(text).exactOptional(),
  until,
});

const threshold = { percent, nodes: count };

/** A policy, as it was read from its document. */
export const policySchema: z.ZodType<Policy> = z.strictObject({
  mode: z.enum(['observe', 'enforce', 'paused']),
  pausedUntil: until,
  guard: z.strictObject({
    shadow: z.boolean(),
    cluster: z.strictObject(threshold).exactOptional(),
    zone: z.strictObject(threshold).exactOptional(),
    people: z.strictObject({ ...threshold, withinMs: positive }).exactOptional(),
  }),
  rate: positive.exactOptional(),
  drain: positive,
  exclude: z.array(selection),
  only: z.array(selection),
  method: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('delete') }),
    z.strictObject({
      kind: z.literal('evict'),
      deadlineMs: z.number().nonnegative(),
      afterDeadline: z.enum(['delete', 'never']),
    }),
  ]),
  tolerationSeconds: z.record(z.string(), z.int().nonnegative()),
  requireExpiredLease: z.literal(false).exactOptional(),
  virtualKeys: z.array(text),
  giveUpAfterMs: positive,
});

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

/** One that stands, or was released: then, and only then, it says when, or up to how many nodes. */
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

/** A guard, by the list of its trips as they are stored. */
export function guardStateOf(revision: number, stored: readonly StoredTrip[]): GuardState {
  const released = stored.filter((trip) => isCounted(trip) || isFresh(trip));
  const trips = stored.filter((trip) => !isCounted(trip) && !isFresh(trip));
  return { revision, trips, ...(released.length === 0 ? {} : { released }) };
}

const isCounted = (trip: StoredTrip): trip is ReleasedTrip => trip.upTo !== undefined;

const isFresh = (trip: StoredTrip): trip is FreshRelease => trip.releasedAt !== undefined;

export const storedPolicySchema = z.strictObject({
  text: z.string(),
  read: policySchema,
  revision: z.int().positive(),
});

/** What was applied last from the file of a policy. It forbids nothing, whatever a newer release adds to it. */
export const appliedFileSchema: z.ZodType<AppliedFile> = z.object({ hash: text, writtenAt: epochMs });

/** An entry of the audit; what a newer release adds to it forbids nothing. */
export const auditSchema: z.ZodType<AuditEntry> = z.object({
  cluster: text.transform(clusterName).exactOptional(),
  who: text,
  at: epochMs,
  kind: z.enum([
    'policy',
    'stop',
    'resume',
    'hold',
    'release',
    'release-guard',
    'retry',
    'guard-tripped',
    'guard-calm',
  ]),
  what: text,
  why: z.string().exactOptional(),
  before: z.string().exactOptional(),
  after: z.string().exactOptional(),
});
