import * as z from 'zod';
import { type Permits, permitItem } from '../permits.ts';
import { parseStored } from '../stored.ts';
import { untilWritten } from '../until-written.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';

/** Permits have partitions of their own, because functions may not write to the partition of the cluster's rules. */
export const RATE_PREFIX = 'RATE#';

/** Seconds for which an item is kept after its last need, as clocks differ. */
const KEPT_SECONDS = 24 * 3600;

const itemSchema = z.object({
  revision: z.int().positive().exactOptional(),
  permits: z.unknown().optional(),
});

/** Permits at a cluster's rates in one item, `RATE`, and those of workloads in one item for each beside it. */
export const dynamoDbPermits = (table: DynamoDbTable): Permits => ({
  take(cluster, pods, limit, now) {
    const { key: sk, neededTo, grant } = permitItem(pods, limit, now);
    const key = { pk: `${RATE_PREFIX}${cluster}`, sk };
    const ttl = Math.ceil(neededTo / 1000) + KEPT_SECONDS;
    return untilWritten(
      async () => {
        // Read by a write: taking permits then needs no permission to read neighboring items.
        const item = await table.update({ key, set: { ttl } });
        const { revision, permits: stored } = parseStored(itemSchema, item, `${sk} of cluster ${cluster}`);
        const { turns, permits } = grant(stored);
        if (!permits) return { result: turns };
        const set = { permits, ttl, revision: (revision ?? 0) + 1 };
        return (await table.update({ key, set, expected: { revision } })) && { result: turns };
      },
      (tries) =>
        `Others took permits (${sk}) of cluster ${cluster} in each of ${tries} attempts. The evictions are retried.`,
    );
  },
});
