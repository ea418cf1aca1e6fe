import type { AttributeValue, DynamoDBRecord } from 'aws-lambda';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { type Item, toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { scheduledItem } from '#shared/state/dynamodb/items.ts';
import { NOW } from '#test/contracts/partition-builders.ts';

let sequence = 0;

/** Returns a stream record of an eviction that its time to live removed. */
export function anExpiry(
  ref: NodeRef,
  eviction: EvictionRecord,
  fields: Partial<DynamoDBRecord> = {},
): DynamoDBRecord {
  sequence += 1;
  return {
    eventName: 'REMOVE',
    userIdentity: { type: 'Service', principalId: 'dynamodb.amazonaws.com' },
    dynamodb: {
      SequenceNumber: String(sequence),
      OldImage: imageOf(scheduledItem(ref, eviction, NOW)),
    },
    ...fields,
  };
}

/** Returns an item as the stream contains it. */
export const imageOf = (item: Item) => toAttributes(item) as Record<string, AttributeValue>;
