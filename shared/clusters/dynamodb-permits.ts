import * as z from 'zod';
import { type ClusterName, type EpochMs, type PodUid, podUid } from '#shared/eviction/identity.ts';
import { grantPermits, PERMIT_LASTS_MS, type PermitLimit } from '#shared/eviction/permits.ts';
import type { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import { StoreError } from '#shared/store/store.ts';
import { parseStored } from '#shared/store/stored.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import { RATE_PREFIX } from './dynamodb-rate-limiter.ts';
import type { Permits } from './permits.ts';

/** An item is kept for so long after its last permit has lapsed: clocks differ. */
const KEPT_SECONDS = 24 * 3600;
/** How often permits are asked for that others took at the same time: they cannot all be faster more often than there are permits. */
const MOST_TRIES = 30;
const BACKOFF: Backoff = { firstMs: 5, longestMs: 250 };

const permitsItem = z.object({
  revision: z.int().positive().exactOptional(),
  permits: z.array(z.object({ uid: z.string().transform(podUid), at: z.int() })).default([]),
});

/** Permits by one item of each workload, beside the turns of its cluster. */
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
    const key = { pk: `${RATE_PREFIX}${cluster}`, sk: `PERMITS#${workload}` };
    const ttl = Math.ceil((now + limit.windowMs + PERMIT_LASTS_MS) / 1000) + KEPT_SECONDS;
    for (let tries = 1; tries <= MOST_TRIES; tries++) {
      // Read by a write: who takes permits needs no right to read what is beside them.
      const item = await this.#table.update({ key, set: { ttl } });
      const { revision, permits: held } = parseStored(
        permitsItem,
        item,
        `permits of ${workload} in ${cluster}`,
      );
      const { permits, moments } = grantPermits(held, pods, limit, now);
      if (!moments.includes(now)) return moments;
      const set = { ttl, permits, revision: (revision ?? 0) + 1 };
      if (await this.#table.update({ key, set, expected: { revision } })) return moments;
      await pause(backoffMs(tries, BACKOFF));
    }
    throw new StoreError(
      `Others took permits of ${workload} in cluster ${cluster} in each of ${MOST_TRIES} attempts. The eviction is retried.`,
    );
  }
}
