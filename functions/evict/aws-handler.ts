import type { SQSClient } from '@aws-sdk/client-sqs';
import type {
  deadLetterVariables,
  historyVariables,
  installationVariables,
  matchingVariables,
  Variables,
} from '#shared/aws/environment.ts';
import type { Connect } from '#shared/clusters/connect.ts';
import { DynamoDbPermits } from '#shared/clusters/dynamodb-permits.ts';
import { DynamoDbProofs } from '#shared/clusters/dynamodb-proofs.ts';
import { DynamoDbRateLimiter } from '#shared/clusters/dynamodb-rate-limiter.ts';
import { DynamoDbRulebook } from '#shared/clusters/dynamodb-rulebook.ts';
import { RegisteredClusters } from '#shared/clusters/registered-clusters.ts';
import type { ClusterRegistry } from '#shared/clusters/registry.ts';
import { rulesReader } from '#shared/clusters/rulebook.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { SqsVisibility } from '#shared/queues/sqs-visibility.ts';
import { renewable } from '#shared/renewable.ts';
import { DynamoDbStore } from '#shared/store/dynamodb-store.ts';
import type { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import { CheckedAccess } from './checked-access.ts';
import { createHandler, type EvictHandlerDeps } from './handler.ts';
import { NotedProofs } from './noted-proofs.ts';

/** What of it is told by the environment. */
type AwsEnvironment = Variables<typeof historyVariables> &
  Variables<typeof matchingVariables> &
  Variables<typeof installationVariables> &
  Variables<typeof deadLetterVariables>;

/** What differs between who carries out what is due, and where. */
export interface AwsHandlerDeps
  extends Pick<
    EvictHandlerDeps,
    'timers' | 'metrics' | 'notices' | 'laterEvents' | 'invoked' | 'clock' | 'log'
  > {
  /** Required here: a cluster may have an agent, and its pods must not be evicted from anywhere else. */
  readonly sendOn: NonNullable<EvictHandlerDeps['sendOn']>;
  readonly table: DynamoDbTable;
  readonly sqs: SQSClient;
  /** Where the messages come from. */
  readonly queueUrl: string;
  readonly registry: Pick<ClusterRegistry, 'get'>;
  readonly connect: Connect;
}

/** The handler of what is due, with its state and queues on AWS: that of the deployed `evict`, and of agents. */
export function createAwsHandler(
  environment: AwsEnvironment,
  { table, sqs, queueUrl, registry, connect, ...deps }: AwsHandlerDeps,
) {
  const { clock, log, invoked } = deps;
  const rulebook = new DynamoDbRulebook(table);
  const matching = { comparisonOperators: environment.COMPARISON_OPERATORS };
  const rules = renewable(() => rulesReader({ rulebook, matching, clock }));
  const clusters = new RegisteredClusters({
    ...{ registry, connect, clock },
    installation: environment.INSTALLATION_NAME,
  });
  return createHandler({
    ...deps,
    store: new DynamoDbStore(table, { historyDays: environment.HISTORY_DAYS }),
    clusters: new CheckedAccess({ clusters, rules: rules.call, clock, log }),
    visibility: new SqsVisibility({ client: sqs, queueUrl, log }),
    deadLetters: new SqsSender({ client: sqs, queueUrl: environment.DEAD_LETTER_QUEUE_URL }),
    rates: new DynamoDbRateLimiter(table),
    permits: new DynamoDbPermits(table),
    proofs: new NotedProofs({ notes: new DynamoDbProofs(table), clock, log }),
    rules: rules.call,
    ...(invoked && {
      invoked: () => {
        invoked();
        rules.renew();
      },
    }),
  });
}
