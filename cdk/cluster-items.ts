import { Stack } from 'aws-cdk-lib';
import type { tableVariables, ValuesOf } from '#shared/aws/environment.ts';
import { type ClusterName, nodeKey, nodeName } from '#shared/eviction/identity.ts';
import { CLUSTER_PREFIX } from '#shared/state/dynamodb/dynamodb-item.ts';
import { LEASE_PREFIX } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { RATE_PREFIX } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { FLEET_KEY } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { indexedUnder } from '#shared/state/dynamodb/items.ts';
import { CLUSTER_INDEX } from '#shared/state/dynamodb/table-definition.ts';
import { type Grantee, grant } from './grantee.ts';
import { dynamoDb, onlyKeys } from './state.ts';

/**
 * Partition keys of one cluster's agent as IAM patterns. The name contains no pattern characters
 * (`agentClusterSchema`), and no `#`, which ends names.
 */
export const clusterKeys = (cluster: ClusterName) => ({
  /** Table items: the cluster's nodes, rules, lease, and the proof that evictions work. */
  read: [
    nodeKey({ cluster, node: nodeName('*') }),
    `${CLUSTER_PREFIX}${cluster}`,
    `${LEASE_PREFIX}${cluster}`,
    `${RATE_PREFIX}${cluster}`,
    FLEET_KEY,
  ],
  /** Index items: the cluster's tainted nodes and its history. */
  found: indexedUnder(cluster).map((beginning) => `${beginning}*`),
  /** Complete items: observed nodes, scheduled evictions, and ended ones. */
  put: [nodeKey({ cluster, node: nodeName('*') })],
  /** Items updated by attribute: the lease, the guard's trips, permits, and the proof that evictions work. */
  updated: [
    nodeKey({ cluster, node: nodeName('*') }),
    `${LEASE_PREFIX}${cluster}`,
    `${RATE_PREFIX}${cluster}`,
  ],
});

/** The items of the agent's cluster, and no others. The history's retention is a tag of the table. */
export function bindItemsOf(cluster: ClusterName, agent: Grantee, tableName: string): void {
  agent.setEnvironment({ TABLE_NAME: tableName } satisfies ValuesOf<typeof tableVariables>);
  const table = Stack.of(agent).formatArn({
    service: 'dynamodb',
    resource: 'table',
    resourceName: tableName,
  });
  const index = `${table}/index/${CLUSTER_INDEX}`;
  const { read, found, put, updated } = clusterKeys(cluster);
  const bind = (actions: readonly string[], resource: string, keys?: readonly string[]) =>
    grant(agent, actions.map(dynamoDb), [resource], keys && onlyKeys(...keys));
  bind(['GetItem', 'BatchGetItem', 'Query'], table, read);
  bind(['Query'], index, found);
  bind(['PutItem', 'DeleteItem', 'BatchWriteItem'], table, put);
  bind(['UpdateItem'], table, updated);
  bind(['DescribeTable', 'ListTagsOfResource'], table);
}
