import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import { type ClusterName, nodeKey } from '#shared/eviction/identity.ts';
import { probeRef } from '#shared/eviction/probe.ts';
import { parseStored } from '#shared/state/stored.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ProofStore } from '../proofs.ts';
import type { Key } from './dynamodb-item.ts';
import { RATE_PREFIX } from './dynamodb-permits.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';

/** Seconds for which an item is kept. A proof is useful for seconds only. */
const KEPT_SECONDS = 24 * 3600;
/** An API server's message can be long, and an item is charged by its size. */
const MAX_FAILURE_CHARACTERS = 500;

const proofItem = z.object({
  probeSentAt: z.int().exactOptional(),
  failure: z.string().exactOptional(),
  passes: z.int().default(0),
});
const traceItem = z.object({ probeSentAt: z.int() });

/** In the partition of the cluster's permits: `evict` may write there, the functions that decide may not. */
const proofKey = (cluster: ClusterName): Key => ({ pk: `${RATE_PREFIX}${cluster}`, sk: 'PROOF' });
/** In a node's partition, where the delta functions may write. */
const traceKey = (cluster: ClusterName): Key => ({ pk: nodeKey(probeRef(cluster)), sk: 'PROBE' });

export const dynamoDbProofs = (table: DynamoDbTable): ProofStore => ({
  async notedProbe(cluster, sentAt, now, failure) {
    const set = {
      probeSentAt: sentAt,
      failure: failure?.slice(0, MAX_FAILURE_CHARACTERS),
      ttl: ttlFrom(now),
    };
    await table.update({ key: proofKey(cluster), set });
  },

  async notedPass(cluster, now) {
    await table.update({ key: proofKey(cluster), set: { ttl: ttlFrom(now) }, add: { passes: 1 } });
  },

  async notedDelta(cluster, sentAt, now) {
    await table.update({
      key: traceKey(cluster),
      set: { probeSentAt: sentAt, ttl: ttlFrom(now) },
    });
  },

  async read(cluster) {
    const item = await table.get(proofKey(cluster));
    if (!item) return { passes: 0 };
    const { probeSentAt, failure, passes } = parseStored(proofItem, item, `proof of cluster ${cluster}`);
    if (probeSentAt === undefined) return { passes };
    return { passes, probe: { sentAt: probeSentAt, ...defined({ failure }) } };
  },

  async tracedAt(cluster) {
    const item = await table.get(traceKey(cluster));
    return item && parseStored(traceItem, item, `trace of the probe of cluster ${cluster}`).probeSentAt;
  },
});

const ttlFrom = (now: EpochMs): number => Math.ceil(now / 1000) + KEPT_SECONDS;
