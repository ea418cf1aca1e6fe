import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb';

/** The attribute that holds when DynamoDB may remove an item, in epoch seconds. */
export const TTL_ATTRIBUTE = 'ttl';

/** The sparse index: scheduled records by their moment, tainted nodes by their cluster. */
export const DUE_INDEX = 'due';

/** The one table. Everything but the keys is read from the table itself, hence the index holds keys only. */
export function tableDefinition(tableName: string): CreateTableCommandInput {
  return {
    TableName: tableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [
      { AttributeName: 'pk', AttributeType: 'S' },
      { AttributeName: 'sk', AttributeType: 'S' },
      { AttributeName: 'duePk', AttributeType: 'S' },
      { AttributeName: 'dueSk', AttributeType: 'S' },
    ],
    KeySchema: [
      { AttributeName: 'pk', KeyType: 'HASH' },
      { AttributeName: 'sk', KeyType: 'RANGE' },
    ],
    GlobalSecondaryIndexes: [
      {
        IndexName: DUE_INDEX,
        KeySchema: [
          { AttributeName: 'duePk', KeyType: 'HASH' },
          { AttributeName: 'dueSk', KeyType: 'RANGE' },
        ],
        Projection: { ProjectionType: 'KEYS_ONLY' },
      },
    ],
  };
}
