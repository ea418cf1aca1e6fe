import * as z from 'zod';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { type AskingPod, givePermits, type Pace, type Turn } from '#shared/eviction/rate.ts';
import type { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import { StoreError } from '#shared/store/store.ts';
import { parseStored } from '#shared/store/stored.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import type { RateLimiter } from './rate-limiter.ts';

/** An item of which nobody takes for so long says nothing: each limit allows its whole burst again. */
const KEPT_SECONDS = 24 * 3600;
/** How often permits are asked for that others took at the same time. */
const MOST_TRIES = 30;
const BACKOFF: Backoff = { firstMs: 5, longestMs: 250 };

/** Permits have partitions of their own: functions may not write to that of what governs the cluster. */
export const RATE_PREFIX = 'RATE#';

const bucket = z.object({ permits: z.number(), at: z.number(), takenTo: z.number() });
const given = z.object({ rate: bucket.optional(), drain: bucket.optional() });
const rateItem = z.object({
  revision: z.int().positive().exactOptional(),
  given: given.optional(),
  /** Up to when an earlier release gave out turns, in which pods went without permits. */
  takenTo: z.int().optional(),
});

/** Permits by one item of each cluster, `RATE`. */
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
    for (let tries = 1; tries <= MOST_TRIES; tries++) {
      // Read by a write: who takes permits needs no right to read what is beside them.
      const item = await this.#table.update({ key, set: { ttl } });
      const {
        revision,
        takenTo = now,
        ...stored
      } = parseStored(rateItem, item, `rate of cluster ${cluster}`);
      const before = takenTo > now ? { rate: { permits: 0, at: now, takenTo } } : {};
      const after = givePermits(stored.given ?? before, pods, pace, now);
      const set = { ttl, given: after.given, revision: (revision ?? 0) + 1 };
      if (await this.#table.update({ key, set, expected: { revision } })) return after.turns;
      await pause(backoffMs(tries, BACKOFF));
    }
    throw new StoreError(
      `Others took permits of cluster ${cluster} in each of ${MOST_TRIES} attempts. The evictions are retried.`,
    );
  }
}
