import type { AttributeValue, DynamoDBRecord } from 'aws-lambda';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { evictionItem } from '#shared/store/items.ts';
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
      OldImage: evictionItem(ref, eviction, NOW) as Record<string, AttributeValue>,
    },
    ...fields,
  };
}
