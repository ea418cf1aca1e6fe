import * as z from 'zod';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import { claimOf, TURNS_AHEAD_MS, turnsOf } from '#shared/eviction/rate.ts';
import type { DynamoDbTable, Item } from '#shared/store/dynamodb-table.ts';
import { parseStored } from '#shared/store/stored.ts';
import type { RateLimiter } from './rate-limiter.ts';

/** An item that nobody takes turns from for so long has nothing to say; far longer than turns are given out ahead. */
const KEPT_SECONDS = 24 * 3600;

/** Turns have partitions of their own: functions may not write to that of what governs the cluster. */
export const RATE_PREFIX = 'RATE#';

const rateItem = z.object({ takenTo: z.int() });

/**
 * Turns by one item of each cluster, `RATE`, which says up to when they were given out. A process that remembers that
 * well enough takes them by one call.
 */
export class DynamoDbRateLimiter implements RateLimiter {
  readonly #table: DynamoDbTable;
  /** What this process knows of each cluster's item: it only ever grows. */
  readonly #takenTo = new Map<ClusterName, EpochMs>();

  constructor(table: DynamoDbTable) {
    this.#table = table;
  }

  async take(cluster: ClusterName, pods: number, rate: number, now: EpochMs): Promise<readonly EpochMs[]> {
    const key = { pk: `${RATE_PREFIX}${cluster}`, sk: 'RATE' };
    const claim = claimOf(pods, rate);
    const ttl = Math.ceil(now / 1000) + KEPT_SECONDS;
    const add = () =>
      this.#table.update({
        key,
        set: { ttl },
        add: { takenTo: claim.takesMs },
        within: { takenTo: [now, now + TURNS_AHEAD_MS] },
      });
    const begin = () =>
      this.#table.update({ key, set: { ttl, takenTo: now + claim.takesMs }, below: { takenTo: now } });
    const known = this.#takenTo.get(cluster) ?? 0;
    if (known > now + TURNS_AHEAD_MS) return [];
    const [first, second] = known > now ? [add, begin] : [begin, add];
    // Somebody may begin or come to the end of what is given out between the two; then the pods ask again later.
    const item = (await first()) ?? (await second());
    if (!item) return [];
    const takenTo = this.#learn(cluster, item);
    return turnsOf(claim, takenTo - claim.takesMs, now);
  }

  #learn(cluster: ClusterName, item: Item): EpochMs {
    const { takenTo } = parseStored(rateItem, item, `rate of cluster ${cluster}`);
    this.#takenTo.set(cluster, takenTo);
    return takenTo;
  }
}
