import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb';
import { CLUSTER_INDEX } from '#shared/state/dynamodb/table-definition.ts';

/**
 * Returns the definition of the table to create. Everything but the keys is read from the table itself, so the index
 * holds only keys.
 */
export function tableDefinition(tableName: string): CreateTableCommandInput {
  const text = (name: string) => ({ AttributeName: name, AttributeType: 'S' }) as const;
  const keys = (hash: string, range: string) => [
    { AttributeName: hash, KeyType: 'HASH' as const },
    { AttributeName: range, KeyType: 'RANGE' as const },
  ];
  return {
    TableName: tableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: ['pk', 'sk', 'clusterKey', 'clusterSort'].map(text),
    KeySchema: keys('pk', 'sk'),
    GlobalSecondaryIndexes: [
      {
        IndexName: CLUSTER_INDEX,
        KeySchema: keys('clusterKey', 'clusterSort'),
        Projection: { ProjectionType: 'KEYS_ONLY' },
      },
    ],
  };
}
