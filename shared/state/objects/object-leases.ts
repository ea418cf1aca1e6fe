import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';
import { faultsSchema } from '#shared/state/fault.ts';
import {
  acquisition,
  changedLease,
  isHeld,
  LEASE_TTL_MS,
  type Lease,
  type LeaseChange,
  type LeaseRecord,
  type LeaseReport,
  type LeaseRequest,
  type Leases,
  leaseFields,
  leaseRequestSchema,
  release,
  renewal,
  request,
  stuckSchema,
  tripProgressSchema,
} from '#shared/state/lease.ts';
import { parseStored, parseStoredText } from '#shared/state/stored.ts';
import type { KeysOf } from '#shared/text/schema-of.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { changeObject, orStoreError } from './change-object.ts';
import { clusterKey } from './node-eviction.ts';
import { pack, unpack } from './packed.ts';

export const LEASE_GROUP = 'coordination.k8s.io/v1';
export const LEASES = 'leases';

/** The annotation for the values that a Lease has no fields for. */
const REPORT = 'taintward.dev/report';
const STUCK = 'taintward.dev/stuck';
/** The annotation with the cluster's name. The Lease's own name has only a digest of names that are invalid there. */
const CLUSTER = 'taintward.dev/cluster';

const objectSchema = z.object({
  metadata: z.object({
    resourceVersion: z.string(),
    annotations: z.record(z.string(), z.string()).exactOptional(),
  }),
  spec: z
    .object({
      holderIdentity: z.string().nullish(),
      leaseTransitions: z.int().nullish(),
      acquireTime: z.string().nullish(),
    })
    .default({}),
});

const reportSchema = z.object({
  ...leaseFields,
  faults: faultsSchema.exactOptional(),
  tripProgress: tripProgressSchema.exactOptional(),
  bid: leaseRequestSchema.exactOptional(),
} satisfies KeysOf<Omit<LeaseRecord, 'cluster' | 'holder' | 'senders'>>);

export interface FoundLease {
  readonly resourceVersion?: string;
  readonly transitions: number;
  readonly acquiredAt?: string;
  /** Absent: the lease was never acquired, even if the object exists. */
  readonly record?: LeaseRecord;
  readonly stuck?: string;
}

/** Leases in the form of `coordination.k8s.io`, an annotation for what that lacks. Methods reject with `StoreError`. */
export class ObjectLeases implements Leases {
  readonly #objects: Objects;

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  async read(cluster: ClusterName): Promise<LeaseRecord | undefined> {
    return (await this.#found(cluster)).record;
  }

  async take(
    cluster: ClusterName,
    found: LeaseRecord | undefined,
    holder: string,
    now: EpochMs,
  ): Promise<Lease | undefined> {
    const taken = await this.#update(cluster, acquisition(found, holder, now), ({ transitions }) => ({
      transitions: transitions + 1,
      acquiredAt: microTime(now),
    }));
    return taken && { ...taken, holder };
  }

  async renew(lease: Lease, report: LeaseReport): Promise<Lease | undefined> {
    const renewed = await this.#update(lease.cluster, renewal(lease, report));
    return renewed && { ...renewed, holder: lease.holder };
  }

  async bid(lease: Lease, bid: LeaseRequest): Promise<void> {
    await this.#update(lease.cluster, request(lease, bid));
  }

  async reportStuck(lease: Lease, pods: readonly StuckPod[]): Promise<void> {
    await this.#change(lease.cluster, ({ record }) =>
      isHeld(record, lease) ? { stuck: pack(pods) } : undefined,
    );
  }

  async stuck(cluster: ClusterName): Promise<readonly StuckPod[]> {
    const { stuck } = await this.#found(cluster);
    const what = `stuck pods of cluster ${cluster}`;
    return stuck === undefined ? [] : parseStored(stuckSchema, unpack(stuck, what), what);
  }

  async release(lease: Lease): Promise<void> {
    await this.#update(lease.cluster, release(lease));
  }

  /** Resolves with every cluster that was ever followed, by name. Rejects with `StoreError`. */
  async clusters(): Promise<readonly ClusterName[]> {
    const objects = await orStoreError(Array.fromAsync(this.#objects.list()));
    return objects
      .map(clusterOf)
      .filter((name) => name !== undefined)
      .sort();
  }

  async #found(cluster: ClusterName): Promise<FoundLease> {
    return read(cluster, await orStoreError(this.#objects.get(leaseName(cluster))));
  }

  /** Resolves with the changed lease. `undefined`: it was lost. `beside`: returns other changes to the object. */
  async #update(
    cluster: ClusterName,
    change: LeaseChange,
    beside: (found: FoundLease) => Partial<FoundLease> = () => ({}),
  ): Promise<LeaseRecord | undefined> {
    let record: LeaseRecord | undefined;
    await this.#change(cluster, (found) => {
      record = changedLease(cluster, found.record, change);
      return record && { ...beside(found), record };
    });
    return record;
  }

  /** `decide`: returns the changed fields. `undefined`: nothing is written. */
  async #change(
    cluster: ClusterName,
    decide: (found: FoundLease) => Partial<FoundLease> | undefined,
  ): Promise<void> {
    await changeObject(this.#objects, leaseName(cluster), (object) => {
      const found = read(cluster, object);
      const change = decide(found);
      return change && leaseObject(cluster, { ...found, ...change });
    });
  }
}

export const leaseName = (cluster: ClusterName): string => `taintward-${clusterKey(cluster)}`;

function read(cluster: ClusterName, object: unknown): FoundLease {
  if (object === undefined) return { transitions: 0 };
  const what = `lease of cluster ${cluster}`;
  const { metadata, spec } = parseStored(objectSchema, object, what);
  const { [REPORT]: report, [STUCK]: stuck } = metadata.annotations ?? {};
  return {
    resourceVersion: metadata.resourceVersion,
    transitions: spec.leaseTransitions ?? 0,
    ...(spec.acquireTime ? { acquiredAt: spec.acquireTime } : {}),
    ...defined({ stuck }),
    ...(report === undefined
      ? {}
      : {
          record: {
            cluster,
            ...(spec.holderIdentity ? { holder: spec.holderIdentity } : {}),
            ...parseStoredText(reportSchema, report, what),
          },
        }),
  };
}

export function releasedLease(object: unknown): KubernetesObject | undefined {
  const name = clusterOf(object);
  if (name === undefined) return undefined;
  const { record: before, ...found } = read(name, object);
  const { holder } = before ?? {};
  const record = before && holder !== undefined && changedLease(name, before, release({ ...before, holder }));
  return record ? leaseObject(name, { ...found, record }) : undefined;
}

function clusterOf(object: unknown): ClusterName | undefined {
  const name = parseStored(objectSchema, object, 'lease').metadata.annotations?.[CLUSTER];
  return name === undefined ? undefined : clusterName(name);
}

export function leaseObject(
  cluster: ClusterName,
  { resourceVersion, record, transitions, acquiredAt, stuck }: FoundLease,
): KubernetesObject & { readonly spec: object } {
  const { cluster: _cluster, holder, senders: _senders, ...report } = record ?? { renewedAt: 0 };
  return {
    apiVersion: LEASE_GROUP,
    kind: 'Lease',
    metadata: {
      name: leaseName(cluster),
      ...defined({ resourceVersion }),
      annotations: {
        [CLUSTER]: cluster,
        ...(record ? { [REPORT]: JSON.stringify(report) } : {}),
        ...(stuck === undefined ? {} : { [STUCK]: stuck }),
      },
    },
    spec: {
      ...defined({ holderIdentity: holder }),
      leaseDurationSeconds: LEASE_TTL_MS / 1000,
      leaseTransitions: transitions,
      ...defined({ acquireTime: acquiredAt }),
      renewTime: microTime(report.renewedAt),
    },
  };
}

const microTime = (at: EpochMs): string => new Date(at).toISOString().replace('Z', '000Z');
