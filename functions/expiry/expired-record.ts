import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord } from 'aws-lambda';
import * as z from 'zod';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { fromAttributes } from '#shared/state/dynamodb/dynamodb-table.ts';
import { parseScheduledItem, refOfItem, SCHEDULED_PREFIX } from '#shared/state/dynamodb/items.ts';
import { readAs } from '#shared/text/read-as.ts';

/** An eviction that was removed by its time to live before it happened. */
export interface ExpiredRecord {
  readonly ref: NodeRef;
  readonly eviction: EvictionRecord;
  /** The stream record that tells of it. */
  readonly source: DynamoDBRecord;
}

/** Who removes items whose time to live is over. */
export const TTL_IDENTITY = { type: 'Service', principalId: 'dynamodb.amazonaws.com' } as const;

const expiry = z.object({
  eventName: z.literal('REMOVE'),
  userIdentity: z.object({
    type: z.literal(TTL_IDENTITY.type),
    principalId: z.literal(TTL_IDENTITY.principalId),
  }),
  dynamodb: z.object({
    OldImage: z.object({
      sk: z.object({ S: z.string().startsWith(SCHEDULED_PREFIX) }),
    }),
  }),
});

/**
 * Reads a record of the table's stream. `undefined` for everything that is not the expiry of a scheduled eviction:
 * other changes, the expiry of what has ended or was given up, and what a hand deleted. Throws `StoreError` for one
 * nobody can read.
 */
export function expiredRecord(source: DynamoDBRecord): ExpiredRecord | undefined {
  if (!readAs(expiry, source).success) return undefined;
  const item = fromAttributes((source.dynamodb?.OldImage ?? {}) as Record<string, AttributeValue>);
  const eviction = parseScheduledItem(item);
  return eviction.gaveUpAt === undefined ? { ref: refOfItem(item), eviction, source } : undefined;
}
