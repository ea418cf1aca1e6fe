import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { CLIENT_SETTINGS } from '#shared/access/client-settings.ts';
import {
  type deltaQueueVariables,
  EnvironmentError,
  type endpointVariables,
  type Variables,
} from '#shared/aws/environment.ts';
import { senderOf } from '#shared/aws/lease-senders.ts';
import { type Endpoint, LOCALSTACK_ACCOUNT, notForAccount } from '#shared/aws/localstack.ts';
import { sqsSender } from '#shared/aws/sqs-sender.ts';
import { Relay } from '#shared/engine/watch/relay.ts';
import type { RelayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import type { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import type { LeaseReader, LeaseRecord } from '#shared/state/lease.ts';
import type { ClusterRegistry } from '#shared/state/registry.ts';
import { allRulesReader } from '#shared/state/rules-store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { cached } from '#shared/time/cache.ts';
import { systemClock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { DeltaSender } from './delta-sender.ts';
import { ProbingProver } from './probing-prover.ts';

/** Time for which clusters that are claimed share a read. */
const FRESH_MS = 1_000;

export interface AwsRelayDeps {
  readonly table: DynamoDbTable;
  readonly sqs: SQSClient;
  /** Absent: this process may read no registration but its own. */
  readonly registry?: Pick<ClusterRegistry, 'list'>;
  readonly nodeBudget: number;
  readonly metrics: RelayMetrics;
  readonly log: Log;
}

/**
 * A relay without clusters. Asks STS for its identity first; rejects as `ownSender` does. `stop` sends pending deltas,
 * releases the leases, and stops the relay.
 */
export async function openAwsRelay(
  queues: Variables<typeof deltaQueueVariables & typeof endpointVariables>,
  { table, sqs, registry, nodeBudget, metrics, log }: AwsRelayDeps,
): Promise<{ readonly relay: Relay; stop(): Promise<void> }> {
  const clock = systemClock;
  const sender = (queueUrl: string) => sqsSender(sqs, queueUrl);
  const nodeDeltas = sender(queues.NODE_DELTAS_URL);
  const leases = new DynamoDbLeases(table, {
    sender: await ownSender(new STSClient(CLIENT_SETTINGS), log, queues.ENDPOINT),
  });
  const rulesStore = new DynamoDbRulesStore(table);
  const rules = new RulesWatch({
    // Here, the way tolerations match only decides the order in which released pods are sent.
    readAll: allRulesReader(rulesStore, { comparisonOperators: false }),
    clock,
    log,
  });
  const relay = new Relay({
    rules,
    rulesStore,
    leases,
    ...(registry ? { otherLeases: otherLeases(registry, leases) } : {}),
    store: new DynamoDbStore(table),
    history: new DynamoDbHistory(table),
    outbox: new DeltaSender({
      nodeDeltas,
      podDeltas: sender(queues.POD_DELTAS_URL),
      clock,
      log,
      metrics,
    }),
    prover: new ProbingProver({
      nodeDeltas,
      clock,
      proofs: dynamoDbProofs(table),
    }),
    clock,
    nodeBudget,
    log,
    metrics,
    // Hosts share names, and containers share process IDs. The hostname is for people; the UUID distinguishes relays.
    holder: `${hostname()}/${randomUUID()}`,
  });
  return { relay, stop: () => relay.stop().then(() => rules.stop()) };
}

/** Leases of the other registered clusters. A relay's clusters share reads: a large fleet claims simultaneously. */
export function otherLeases(registry: Pick<ClusterRegistry, 'list'>, leases: Pick<LeaseReader, 'readAll'>) {
  const read = async () => leases.readAll((await registry.list()).clusters.map(({ name }) => name));
  const recent = cached(10_000, read, systemClock);
  const fresh = cached(FRESH_MS, read, systemClock);
  return async (cluster: ClusterName, isFresh: boolean): Promise<readonly LeaseRecord[]> => {
    // By then, every reused read began after the call.
    if (isFresh) await pause(FRESH_MS);
    return (await (isFresh ? fresh : recent)('')).filter((lease) => lease.cluster !== cluster);
  };
}

/**
 * The sender that queues report for this process, by STS, which answers every caller; on LocalStack, the account.
 * `undefined`, with a warning: STS did not answer, so every sender is accepted. Rejects with `EnvironmentError` when
 * `endpoint` is LocalStack but the account is another.
 */
export async function ownSender(
  client: Pick<STSClient, 'send'>,
  log: Log,
  endpoint?: Endpoint,
): Promise<string | undefined> {
  try {
    const { UserId, Account = '' } = await client.send(new GetCallerIdentityCommand());
    if (endpoint !== undefined && Account !== LOCALSTACK_ACCOUNT) {
      throw new EnvironmentError(
        `The environment variable ENDPOINT cannot be used (${notForAccount(Account)}): unset it.`,
      );
    }
    if (UserId) return endpoint === undefined ? senderOf(UserId) : Account;
    throw new Error('STS returned no user ID');
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    log.warn('relay.identity-unknown', { error });
    return undefined;
  }
}
