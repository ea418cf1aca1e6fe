import { Stack } from 'aws-cdk-lib';
import { Grant } from 'aws-cdk-lib/aws-iam';
import type { tableVariables, ValuesOf } from '#shared/aws/environment.ts';
import { type ClusterName, nodeKey, nodeName } from '#shared/eviction/identity.ts';
import { LEASE_PREFIX } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { RATE_PREFIX } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { CLUSTER_PREFIX, FLEET_KEY } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { indexedUnder } from '#shared/state/dynamodb/items.ts';
import { CLUSTER_INDEX } from '#shared/state/dynamodb/table-definition.ts';
import type { Grantee } from './grantee.ts';
import { onlyKeys } from './state.ts';

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
  const grant = (actions: readonly string[], resource: string, keys?: readonly string[]) =>
    Grant.addToPrincipal({
      grantee: agent,
      actions: actions.map((action) => `dynamodb:${action}`),
      resourceArns: [resource],
      ...(keys ? { conditions: onlyKeys(...keys) } : {}),
    });
  grant(['GetItem', 'BatchGetItem', 'Query'], table, read);
  grant(['Query'], index, found);
  grant(['PutItem', 'DeleteItem', 'BatchWriteItem'], table, put);
  grant(['UpdateItem'], table, updated);
  grant(['DescribeTable', 'ListTagsOfResource'], table);
}
