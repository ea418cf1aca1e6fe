import * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { type AskingPod, givePermits, type Pace, type Turn } from '#shared/eviction/rate.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { RateLimiter } from '../rate-limiter.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';
import { takePermits } from './permit-item.ts';

/** After this time without a take, each limit allows its whole burst again, so the item isn't needed. */
const KEPT_SECONDS = 24 * 3600;

/** Permits have partitions of their own, because functions may not write to the partition of the cluster's rules. */
export const RATE_PREFIX = 'RATE#';

const bucket = z.object({ permits: z.number(), at: z.number(), takenTo: z.number() });
const givenItem = z.object({ rate: bucket.optional(), drain: bucket.optional() });
const rateItem = z.object({
  revision: z.int().positive().exactOptional(),
  given: givenItem.optional(),
  /** End of the turns that an earlier release reserved. Their pods were evicted without permits. */
  takenTo: z.int().optional(),
});

/** Permits in one item for each cluster, `RATE`. */
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
    const key = { pk: `${RATE_PREFIX}${cluster}`, sk: 'RATE' };
    const ttl = Math.ceil(now / 1000) + KEPT_SECONDS;
    const item = {
      ...{ key, ttl, schema: rateItem, name: `rate of cluster ${cluster}` },
      ...{ permitsOf: `cluster ${cluster}`, follows: 'The evictions are retried.' },
    };
    return takePermits(this.#table, item, ({ given: stored, takenTo = now }) => {
      const before = takenTo > now ? { rate: { permits: 0, at: now, takenTo } } : {};
      const { turns, given } = givePermits(stored ?? before, pods, pace, now);
      return { taken: turns, set: { given } };
    });
  }
}
