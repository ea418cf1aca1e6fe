import * as z from 'zod';
import { type ClusterName, type PodUid, podUid } from '#shared/eviction/identity.ts';
import { grantPermits, PERMIT_LASTS_MS, type PermitLimit } from '#shared/eviction/permits.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Permits } from '../permits.ts';
import { RATE_PREFIX } from './dynamodb-rate-limiter.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';
import { takePermits } from './permit-item.ts';

/** Seconds for which an item is kept after its last permit lapsed, because clocks differ. */
const KEPT_SECONDS = 24 * 3600;

const permitsItem = z.object({
  revision: z.int().positive().exactOptional(),
  permits: z.array(z.object({ uid: z.string().transform(podUid), at: z.int() })).default([]),
});

/** Permits in one item for each workload, beside its cluster's `RATE` item. */
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
    const item = {
      ...{ key, ttl, schema: permitsItem, name: `permits of ${workload} in ${cluster}` },
      ...{ permitsOf: `${workload} in cluster ${cluster}`, follows: 'The eviction is retried.' },
    };
    return takePermits(this.#table, item, ({ permits: held }) => {
      const { permits, moments } = grantPermits(held, pods, limit, now);
      return moments.includes(now) ? { taken: moments, set: { permits } } : { taken: moments };
    });
  }
}
