import type { AttributeValue, DynamoDBRecord } from 'aws-lambda';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { type Item, toAttributes } from '#shared/state/dynamodb/dynamodb-table.ts';
import { scheduledItem } from '#shared/state/dynamodb/items.ts';
import { NOW } from '#test/contracts/partition-builders.ts';

let sequence = 0;

/** A change of the table as its stream tells it: an eviction that was removed by its time to live. */
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

/** An item as the stream shows it. */
export const imageOf = (item: Item) => toAttributes(item) as Record<string, AttributeValue>;
