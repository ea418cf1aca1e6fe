import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord } from 'aws-lambda';
import * as z from 'zod';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { fromAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { parseScheduledItem, refOfItem, SCHEDULED_PREFIX } from '#shared/state/dynamodb/items.ts';
import { readAs } from '#shared/text/read-as.ts';

/** A pending eviction that its time to live removed. */
export interface ExpiredRecord {
  readonly ref: NodeRef;
  readonly eviction: EvictionRecord;
  readonly source: DynamoDBRecord;
}

/** The identity that removes items whose time to live ended. */
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
 * Reads a record of the table's stream. Returns `undefined` unless it is the expiry of a pending eviction.
 * Ignored are other changes, manual deletions, and the expiry of ended or failed evictions. Throws
 * `StoreError` if the record is unreadable.
 */
export function expiredRecord(source: DynamoDBRecord): ExpiredRecord | undefined {
  if (!readAs(expiry, source).success) return undefined;
  const item = fromAttributes((source.dynamodb?.OldImage ?? {}) as Record<string, AttributeValue>);
  const eviction = parseScheduledItem(item);
  return eviction.gaveUpAt === undefined ? { ref: refOfItem(item), eviction, source } : undefined;
}
