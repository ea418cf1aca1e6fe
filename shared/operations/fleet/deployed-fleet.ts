import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { SQSClient } from '@aws-sdk/client-sqs';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { AccessError } from '#shared/access/access-error.ts';
import { agentOf, recentRegistrations } from '#shared/access/agent-of.ts';
import { CLIENT_SETTINGS, INVOCATION_SETTINGS, SQS_SETTINGS } from '#shared/access/client-settings.ts';
import type { Connect } from '#shared/access/connect.ts';
import { agentsPrefix } from '#shared/aws/agent-names.ts';
import { routedSender, sqsDueQueues } from '#shared/aws/due-queues.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { Clock } from '#shared/time/clock.ts';
import { askEvict } from './access-check.ts';
import { AwsAccount } from './aws-account.ts';
import { type Fleet, FleetError } from './fleet.ts';
import { liveCluster } from './live-cluster.ts';
import { SqsQueues } from './sqs-queues.ts';

/** The actor is the caller's AWS identity, whose credentials also reach clusters by their registered access. */
export function deployedFleet(
  tableName: string,
  { clock, connect }: { readonly clock: Clock; readonly connect: Connect },
): Fleet {
  const dynamoDb = new DynamoDBClient(CLIENT_SETTINGS);
  const sqs = new SQSClient(SQS_SETTINGS);
  const lambda = new LambdaClient(CLIENT_SETTINGS);
  const cloudWatch = new CloudWatchClient(CLIENT_SETTINGS);
  const table = new DynamoDbTable({ client: dynamoDb, tableName });
  const registry = new DynamoDbClusterRegistry(table);
  const rulesStore = new DynamoDbRulesStore(table);
  const agents = async () => {
    const { clusters } = await registry.list();
    return [...new Set(clusters.flatMap(({ access }) => (access.kind === 'agent' ? [access.agent] : [])))];
  };
  const queues = new SqsQueues({ client: sqs, prefix: tableName, agents });
  return {
    kind: 'deployed',
    where: `table ${tableName}`,
    region: () => dynamoDb.config.region(),
    rulesStore,
    registry,
    store: new DynamoDbStore(table),
    history: new DynamoDbHistory(table),
    leases: new DynamoDbLeases(table),
    async checkAccess(question) {
      const patient = new LambdaClient(INVOCATION_SETTINGS);
      return askEvict(patient, `${tableName}-evict`, question).finally(() => patient.destroy());
    },
    hasAgent: (agent) => queues.hasAgent(agent),
    deadLetters: queues,
    account: new AwsAccount({ dynamoDb, lambda, cloudWatch, table, tableName }),
    backlog: () => queues.backlog(),
    service: async () => undefined,
    clusters: async () => (await registry.list()).clusters.map(({ name }) => name),
    manages: async (cluster) => (await registry.get(cluster)) !== undefined,
    async cluster(name) {
      const registered = await registry.get(name);
      if (registered) return liveCluster(byService(connect(registered, 'relay')), clock);
      throw new FleetError(`Cluster "${name}" not found. Run "taintward clusters list".`);
    },
    operator: async () => ({ rulesStore, clock, actor: await callerIdentity() }),
    async dueQueue() {
      const EVICTIONS_DUE_URL = await queues.url(QUEUES.evictionsDue.name);
      const due = sqsDueQueues({ EVICTIONS_DUE_URL, AGENT_PREFIX: agentsPrefix(tableName) }, sqs);
      return routedSender(due, agentOf(recentRegistrations(registry, clock)));
    },
    close() {
      for (const client of [dynamoDb, sqs, lambda, cloudWatch]) client.destroy();
    },
  };
}

/** Advice for a denied call: the relay lacks permissions that only operators need. */
const SERVICE_CREDENTIALS =
  'these are the credentials of the service; to use your own, specify --context NAME';

/** `host` is a getter because it may become known later. */
const byService = (connection: Connection): Connection => ({
  get host() {
    return connection.host;
  },
  requestOptions: () =>
    connection.requestOptions().catch((error: unknown) => {
      if (!(error instanceof AccessError)) throw error;
      throw new AccessError(`${error.message.replace(/; grant it$/, '')}; ${SERVICE_CREDENTIALS}`);
    }),
  forgetCredentials: () => connection.forgetCredentials?.(),
  whenForbidden: SERVICE_CREDENTIALS,
});

async function callerIdentity(): Promise<string> {
  try {
    const { Arn } = await new STSClient(CLIENT_SETTINGS).send(new GetCallerIdentityCommand());
    if (Arn) return Arn;
    throw new Error('STS returned no ARN');
  } catch (error) {
    const reason = errorMessage(error);
    throw new FleetError(
      `Your AWS identity, which the audit log requires, is unknown (${reason}). Check credentials and network.`,
    );
  }
}
