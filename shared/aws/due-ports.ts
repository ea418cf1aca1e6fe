import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Connect } from '#shared/access/connect.ts';
import { registeredClusters } from '#shared/access/registered-clusters.ts';
import { checkedAccess } from '#shared/engine/evict/checked-access.ts';
import { NotedProofs } from '#shared/engine/evict/proofs.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { dynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import type { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { onceASecond } from '#shared/state/lease.ts';
import type { ClusterRegistry } from '#shared/state/registry.ts';
import type { DueDeps } from './due-consumption.ts';
import { settingAside } from './due-message.ts';
import type {
  deadLetterVariables,
  historyVariables,
  installationVariables,
  Variables,
} from './environment.ts';
import { sqsSender } from './sqs-sender.ts';
import { sqsVisibility } from './sqs-visibility.ts';

/** The dependencies that differ between `evict` and agents. */
export interface DuePortsDeps
  extends Pick<DueDeps, 'rules' | 'timers' | 'metrics' | 'laterEvents' | 'clock' | 'log'> {
  /** Required here: a cluster may have an agent, and only that agent may evict its pods. */
  readonly sendOn: NonNullable<DueDeps['sendOn']>;
  readonly table: DynamoDbTable;
  readonly sqs: SQSClient;
  /** The queue from which the messages are received. */
  readonly queueUrl: string;
  readonly registry: Pick<ClusterRegistry, 'get'>;
  readonly connect: Connect;
}

/** Returns the ports of due messages, with their state and queues on AWS: for the deployed `evict` and for agents. */
export function duePorts(
  environment: Variables<typeof historyVariables & typeof installationVariables & typeof deadLetterVariables>,
  { table, sqs, queueUrl, registry, connect, ...deps }: DuePortsDeps,
) {
  const { rules, clock, log } = deps;
  const clusters = registeredClusters({
    registry,
    connect,
    clock,
    installation: environment.INSTALLATION_NAME,
  });
  const leases = new DynamoDbLeases(table);
  const lease = onceASecond((cluster) => leases.read(cluster), clock);
  const deadLetters = sqsSender(sqs, environment.DEAD_LETTER_QUEUE_URL);
  return {
    ...deps,
    store: new DynamoDbStore(table, { historyDays: environment.HISTORY_DAYS }),
    clusters: checkedAccess({ clusters, lease, rules, clock, log }),
    visibility: sqsVisibility(sqs, queueUrl, log),
    deadLetters,
    setAside: settingAside(deadLetters),
    permits: dynamoDbPermits(table),
    proofs: new NotedProofs({ notes: dynamoDbProofs(table), clock, log }),
  };
}
