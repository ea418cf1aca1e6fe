import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb';

/** The attribute with the time from which DynamoDB may remove an item, in epoch seconds. */
export const TTL_ATTRIBUTE = 'ttl';

/**
 * The table's tag for the days for which history and audit are kept. Writers that are not deployed with the table
 * read it.
 */
export const HISTORY_DAYS_TAG = 'taintward:history-days';

/** The table's tag for the release that was deployed with it. */
export const RELEASE_TAG = 'taintward:release';

/** The sparse index of registrations, audit entries, and each cluster's tainted nodes and history. */
export const CLUSTER_INDEX = 'by-cluster';

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
