import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb';

/** The attribute that holds when DynamoDB may remove an item, in epoch seconds. */
export const TTL_ATTRIBUTE = 'ttl';

/** The table's tag that says for how many days history and audit are kept: to who writes there and is not deployed with it. */
export const HISTORY_DAYS_TAG = 'taintward:history-days';

/** The table's tag that says which release was deployed with it. */
export const RELEASE_TAG = 'taintward:release';

/** The sparse index: registrations; the tainted nodes of each cluster, and what ended there. */
export const CLUSTER_INDEX = 'by-cluster';

/** The table to create. Everything but the keys is read from the table itself, hence the index holds keys only. */
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
