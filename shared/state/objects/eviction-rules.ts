import * as z from 'zod';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Trip } from '#shared/eviction/policy.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import type { AppliedFile } from '#shared/state/policy-of-file.ts';
import type {
  AuditEntry,
  GuardState,
  OperatorControls,
  StoredFleetRules,
} from '#shared/state/rules-store.ts';
import { historyBefore, parseStored } from '#shared/state/stored.ts';
import {
  appliedFileSchema,
  auditSchema,
  guardStateOf,
  holdSchema,
  stopSchema,
  storedAudit,
  storedPolicySchema,
  tripsSchema,
} from '#shared/state/stored-rules.ts';
import { clusterKey, STATE_GROUP } from './node-eviction.ts';
import { pack, unpack } from './packed.ts';

export const EVICTION_RULES = 'evictionrules';

/** What is kept of the audit, packed: some hundred acts. */
const AUDIT_CHARS = 32 * 1024;

/** All that is kept of what governs a cluster; or, in the one of no cluster, all of them: the content of an `EvictionRules`. */
export interface KeptRules {
  readonly cluster: ClusterName | undefined;
  /** Of the object that was read; absent: there is none. */
  readonly resourceVersion?: string;
  readonly orders: OperatorControls;
  readonly guard: GuardState;
  readonly fleet: StoredFleetRules;
  /** Beside the orders, of which every release reads every field. */
  readonly appliedFile?: AppliedFile;
  /** Packed. */
  readonly audit?: string;
}

const revision = z.int().nonnegative();

const objectSchema = z.object({
  metadata: z.object({ resourceVersion: z.string().min(1) }),
  status: z.object({
    cluster: z.string().transform(clusterName).exactOptional(),
    orders: z.strictObject({
      revision,
      policy: storedPolicySchema.exactOptional(),
      stop: stopSchema.exactOptional(),
      holds: z.array(holdSchema),
    }),
    guard: z.strictObject({ revision, trips: tripsSchema }),
    fleet: z.strictObject({ revision, stop: stopSchema.exactOptional() }),
    appliedFile: appliedFileSchema.exactOptional(),
    audit: z.string().exactOptional(),
  }),
});

const whoseSchema = z.object({
  status: z.object({ cluster: z.string().transform(clusterName).exactOptional() }),
});

/** Of a cluster of which nothing was ever said. */
export const nothingSaid = (cluster: ClusterName | undefined): KeptRules => ({
  cluster,
  orders: { revision: 0, holds: [] },
  guard: { revision: 0, trips: [] },
  fleet: { fleetRevision: 0 },
});

/** The object of what concerns all clusters; the keys of clusters have no dots. */
const FLEET_NAME = 'all.clusters';

/** The name of the object that holds a cluster's rules; `undefined`: what concerns all of them. */
export const rulesName = (cluster: ClusterName | undefined): string =>
  cluster === undefined ? FLEET_NAME : clusterKey(cluster);

const namedSchema = z.object({ metadata: z.object({ name: z.string() }) });

/** The name of an object, also of one that cannot be read further. Throws `StoreError`. */
export const nameOfRules = (object: unknown): string =>
  parseStored(namedSchema, object, 'EvictionRules').metadata.name;

/** Whose rules an object holds, also one that cannot be read further; `undefined`: all clusters'. Throws `StoreError`. */
const clusterOfRules = (object: unknown): ClusterName | undefined =>
  parseStored(whoseSchema, object, 'EvictionRules').status.cluster;

/** Reads an `EvictionRules` to the last field. Throws `StoreError` for what is not understood: it may forbid something. */
export function readEvictionRules(object: unknown): KeptRules {
  const cluster = clusterOfRules(object);
  const { metadata, status } = parseStored(objectSchema, object, `rules of ${nameOf(cluster)}`);
  const { orders, guard, fleet, appliedFile, audit } = status;
  return {
    ...{ cluster, resourceVersion: metadata.resourceVersion, orders },
    guard: guardStateOf(guard.revision, guard.trips),
    fleet: { fleetRevision: fleet.revision, ...(fleet.stop ? { fleetStop: fleet.stop } : {}) },
    ...(appliedFile === undefined ? {} : { appliedFile }),
    ...(audit === undefined ? {} : { audit }),
  };
}

/** What is to be written of a guard: of trips, those that stand and those that were released. */
export type RulesToWrite = Omit<KeptRules, 'guard'> & {
  readonly guard: { readonly revision: number; readonly trips: readonly Trip[] };
};

/** The `EvictionRules` of that name that says all of it. */
export function evictionRules(
  { cluster, resourceVersion, orders, guard, fleet, appliedFile, audit }: RulesToWrite,
  name: string,
): KubernetesObject & { readonly status: object } {
  const { policy, stop, holds } = orders;
  const standing = guardStateOf(guard.revision, guard.trips).trips;
  const words = {
    mode: policy?.read.mode ?? DEFAULT_POLICY.mode,
    ...{ stopped: stop !== undefined, holds: holds.length, trips: standing.length },
  };
  return {
    apiVersion: STATE_GROUP,
    kind: 'EvictionRules',
    metadata: { name, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    status: {
      ...(cluster === undefined ? { stopped: fleet.fleetStop !== undefined } : { cluster, ...words }),
      orders: { revision: orders.revision, policy, stop, holds },
      guard,
      fleet: { revision: fleet.fleetRevision, stop: fleet.fleetStop },
      ...(appliedFile === undefined ? {} : { appliedFile }),
      ...(audit === undefined ? {} : { audit }),
    },
  };
}

/** Who did what, the oldest first. Throws `StoreError`. */
export function auditOf({ cluster, audit }: Pick<KeptRules, 'cluster' | 'audit'>): readonly AuditEntry[] {
  const what = `audit of ${nameOf(cluster)}`;
  return audit === undefined ? [] : parseStored(z.array(auditSchema), unpack(audit, what), what);
}

/** The audit with one more entry, packed; of what does not fit, or is older than so many days, the oldest is left out. */
export function withEntry(
  kept: Pick<KeptRules, 'cluster' | 'audit'>,
  entry: AuditEntry,
  historyDays: number,
): string {
  const before = historyBefore(entry.at, historyDays);
  let entries = [...auditOf(kept), entry].filter(({ at }) => at > before).map(storedAudit);
  let packed = pack(entries);
  while (packed.length > AUDIT_CHARS && entries.length > 1) {
    entries = entries.slice(Math.ceil(entries.length / 4));
    packed = pack(entries);
  }
  return packed;
}

const nameOf = (cluster: ClusterName | undefined): string =>
  cluster === undefined ? 'all clusters' : `cluster ${cluster}`;
