import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Stop } from '#shared/eviction/policy.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { untilText } from '#shared/state/operator-controls.ts';
import type {
  AuditEntry,
  GuardState,
  OperatorControls,
  StoredFleetRules,
} from '#shared/state/rules-store.ts';
import { historyBefore, parseStored } from '#shared/state/stored.ts';
import {
  auditSchema,
  fleetRules,
  guardStateOf,
  NO_RULES,
  ordersFields,
  stopSchema,
  storedPolicy,
  storedTrips,
  tripsSchema,
} from '#shared/state/stored-rules.ts';
import { schemaOf } from '#shared/text/schema-of.ts';
import { clusterKey, STATE_GROUP } from './node-eviction.ts';
import { pack, unpack } from './packed.ts';

export const EVICTION_RULES = 'evictionrules';

/** Maximum of characters of the packed audit: some hundred entries. */
const AUDIT_CHARS = 32 * 1024;

export interface KeptRules {
  readonly cluster: ClusterName | undefined;
  readonly resourceVersion?: string;
  readonly orders: OperatorControls;
  readonly guard: GuardState;
  readonly fleet: StoredFleetRules;
  readonly audit?: string;
}

const revision = z.int().nonnegative();

const objectSchema = z.object({
  metadata: z.object({ resourceVersion: z.string().min(1) }),
  status: z.object({
    orders: z.strictObject({ revision, ...ordersFields }).apply(schemaOf<OperatorControls>()),
    guard: z.strictObject({ revision, trips: tripsSchema }),
    fleet: z.strictObject({ revision, stop: stopSchema.exactOptional() }),
    audit: z.string().exactOptional(),
  }),
});

const whoseSchema = z.object({
  status: z.object({ cluster: z.string().transform(clusterName).exactOptional() }),
});

export const noRules = (cluster: ClusterName | undefined): KeptRules => ({
  cluster,
  orders: NO_RULES.orders,
  guard: NO_RULES.guard,
  fleet: fleetRules(0, undefined),
});

/** The name of the object for all clusters. Keys of clusters have no dots. */
const FLEET_NAME = 'all.clusters';

export const rulesName = (cluster: ClusterName | undefined): string =>
  cluster === undefined ? FLEET_NAME : clusterKey(cluster);

const namedSchema = z.object({ metadata: z.object({ name: z.string() }) });

/** Returns the name of an object, even if the rest is unreadable. Throws `StoreError`. */
export const nameOfRules = (object: unknown): string =>
  parseStored(namedSchema, object, 'EvictionRules').metadata.name;

/** Parses an `EvictionRules` completely. Throws `StoreError` for unsupported content, which may forbid evictions. */
export function readEvictionRules(object: unknown): KeptRules {
  const { cluster } = parseStored(whoseSchema, object, 'EvictionRules').status;
  const { metadata, status } = parseStored(objectSchema, object, `rules of ${nameOf(cluster)}`);
  const { orders, guard, fleet, audit } = status;
  return {
    cluster,
    resourceVersion: metadata.resourceVersion,
    orders,
    guard: guardStateOf(guard.revision, guard.trips),
    fleet: fleetRules(fleet.revision, fleet.stop),
    ...defined({ audit }),
  };
}

export function evictionRules(
  { cluster, resourceVersion, orders, guard, fleet, audit }: KeptRules,
  name: string,
): KubernetesObject & { readonly status: object } {
  const { policy, stops, resumedFrom, holds } = orders;
  const words = {
    mode: policy?.read.mode ?? DEFAULT_POLICY.mode,
    stopped: stoppedText(stops[0]),
    holds: holds.length,
    trips: guard.trips.length,
  };
  return {
    apiVersion: STATE_GROUP,
    kind: 'EvictionRules',
    metadata: { name, ...defined({ resourceVersion }) },
    status: {
      ...(cluster === undefined ? { stopped: stoppedText(fleet.fleetStop) } : { cluster, ...words }),
      orders: { revision: orders.revision, policy: storedPolicy(policy), stops, resumedFrom, holds },
      guard: { revision: guard.revision, trips: storedTrips(guard) },
      fleet: { revision: fleet.fleetRevision, stop: fleet.fleetStop },
      ...defined({ audit }),
    },
  };
}

/** Nothing rewrites the object when a stop ends, so the text has the time. */
function stoppedText(longest: Stop | undefined): string {
  if (!longest) return 'no';
  return longest.until === undefined ? 'until resumed' : untilText(longest).trim();
}

export function auditOf({ cluster, audit }: Pick<KeptRules, 'cluster' | 'audit'>): readonly AuditEntry[] {
  const what = `audit of ${nameOf(cluster)}`;
  return audit === undefined ? [] : parseStored(z.array(auditSchema), unpack(audit, what), what);
}

/** Adds an entry to the packed audit. Omits those that are too old, and the oldest ones if there is no room. */
export function withEntry(
  kept: Pick<KeptRules, 'cluster' | 'audit'>,
  entry: AuditEntry,
  historyDays: number,
): string {
  const before = historyBefore(entry.at, historyDays);
  let entries = [...auditOf(kept), entry].filter(({ at }) => at > before);
  let packed = pack(entries);
  while (packed.length > AUDIT_CHARS && entries.length > 1) {
    entries = entries.slice(Math.ceil(entries.length / 4));
    packed = pack(entries);
  }
  return packed;
}

const nameOf = (cluster: ClusterName | undefined): string =>
  cluster === undefined ? 'all clusters' : `cluster ${cluster}`;
