import * as z from 'zod';
import { type ClusterName, type PodUid, podUid } from '#shared/eviction/identity.ts';
import { grantPermits, PERMIT_LASTS_MS, type PermitLimit } from '#shared/eviction/permits.ts';
import { type AskingPod, givePermits, type Pace, type Turn } from '#shared/eviction/rate.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Permits } from '../permits.ts';
import type { RateLimiter } from '../rate-limiter.ts';
import { parseStored } from '../stored.ts';
import { untilWritten } from '../until-written.ts';
import type { Item } from './dynamodb-item.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';

/** Permits have partitions of their own, because functions may not write to the partition of the cluster's rules. */
export const RATE_PREFIX = 'RATE#';

/**
 * Seconds for which an item is kept after its last need, as clocks differ. Then each rate allows its whole burst again.
 */
const KEPT_SECONDS = 24 * 3600;

const revision = z.int().positive().exactOptional();
const permitsItem = z.object({
  revision,
  permits: z.array(z.object({ uid: z.string().transform(podUid), at: z.int() })).default([]),
});
const bucket = z.object({ permits: z.number(), at: z.number(), takenTo: z.number() });
const rateItem = z.object({
  revision,
  given: z.object({ evictionRate: bucket.optional(), releaseRate: bucket.optional() }).optional(),
});

/** Permits at a cluster's rates in one item for each cluster, `RATE`. */
export class DynamoDbRateLimiter implements RateLimiter {
  readonly #table: DynamoDbTable;

  constructor(table: DynamoDbTable) {
    this.#table = table;
  }

  async take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    pace: Pace,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]> {
    const item = {
      cluster,
      sk: 'RATE',
      neededTo: now,
      schema: rateItem,
      name: `rate of cluster ${cluster}`,
      permitsOf: `cluster ${cluster}`,
      follows: 'The evictions are retried.',
    };
    return takePermits(this.#table, item, ({ given: stored = {} }) => {
      const { turns, given } = givePermits(stored, pods, pace, now);
      return { taken: turns, set: { given } };
    });
  }
}

/** Permits of workloads in one item for each workload, beside its cluster's `RATE` item. */
export class DynamoDbPermits implements Permits {
  readonly #table: DynamoDbTable;

  constructor(table: DynamoDbTable) {
    this.#table = table;
  }

  async take(
    cluster: ClusterName,
    workload: string,
    pods: readonly PodUid[],
    limit: PermitLimit,
    now: EpochMs,
  ): Promise<readonly EpochMs[]> {
    const neededTo = now + limit.windowMs + PERMIT_LASTS_MS;
    const item = {
      cluster,
      sk: `PERMITS#${workload}`,
      neededTo,
      schema: permitsItem,
      name: `permits of ${workload} in ${cluster}`,
      permitsOf: `${workload} in cluster ${cluster}`,
      follows: 'The eviction is retried.',
    };
    return takePermits(this.#table, item, ({ permits: held }) => {
      const { permits, moments } = grantPermits(held, pods, limit, now);
      return moments.includes(now) ? { taken: moments, set: { permits } } : { taken: moments };
    });
  }
}

interface PermitItem<Stored> {
  readonly cluster: ClusterName;
  readonly sk: string;
  readonly neededTo: EpochMs;
  readonly schema: z.ZodType<Stored>;
  readonly name: string;
  /** `permitsOf`: in errors, such as `cluster c1`. `follows`: a sentence for errors after too many conflicts. */
  readonly permitsOf: string;
  readonly follows: string;
}

/**
 * Takes permits by optimistic concurrency. `grant` derives them, and what to `set`, from the stored item, again after
 * each conflict. Without `set`, nothing is written.
 */
function takePermits<Stored extends { readonly revision?: number }, Taken>(
  table: DynamoDbTable,
  { cluster, sk, neededTo, schema, name, permitsOf, follows }: PermitItem<Stored>,
  grant: (stored: Stored) => { readonly taken: Taken; readonly set?: Item },
): Promise<Taken> {
  const key = { pk: `${RATE_PREFIX}${cluster}`, sk };
  const ttl = Math.ceil(neededTo / 1000) + KEPT_SECONDS;
  return untilWritten(
    async () => {
      // Read by a write: taking permits then needs no permission to read neighboring items.
      const stored = parseStored(schema, await table.update({ key, set: { ttl } }), name);
      const { taken, set } = grant(stored);
      if (!set) return { result: taken };
      const { revision } = stored;
      const next = { ...set, ttl, revision: (revision ?? 0) + 1 };
      return (await table.update({ key, set: next, expected: { revision } })) ? { result: taken } : undefined;
    },
    (tries) => `Others took permits of ${permitsOf} in each of ${tries} attempts. ${follows}`,
  );
}
