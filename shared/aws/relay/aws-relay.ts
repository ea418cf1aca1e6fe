import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { STSClient } from '@aws-sdk/client-sts';
import { CLIENT_SETTINGS } from '#shared/access/client-settings.ts';
import type { deltaQueueVariables, endpointVariables, Variables } from '#shared/aws/environment.ts';
import { SqsSender } from '#shared/aws/sqs-sender.ts';
import { Relay } from '#shared/engine/watch/relay.ts';
import type { RelayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import type { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { allRulesReader } from '#shared/state/rules-store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { DeltaSender } from './delta-sender.ts';
import { ownSender } from './own-sender.ts';
import { ProbingProver } from './probing-prover.ts';

export interface AwsRelayDeps {
  readonly table: DynamoDbTable;
  readonly sqs: SQSClient;
  readonly nodeBudget: number;
  readonly metrics: RelayMetrics;
  readonly log: Log;
}

/** A relay of the deployed service, and what ends with it. */
export interface AwsRelay {
  readonly relay: Relay;
  /** Says what waits, gives the leases up and ends. */
  stop(): Promise<void>;
}

/** A relay with its state and queues on AWS, which follows nothing yet. Asks STS first who it is; throws as `ownSender` does. */
export async function openAwsRelay(
  queues: Variables<typeof deltaQueueVariables & typeof endpointVariables>,
  { table, sqs, nodeBudget, metrics, log }: AwsRelayDeps,
): Promise<AwsRelay> {
  const clock = systemClock;
  const sender = (queueUrl: string) => new SqsSender({ client: sqs, queueUrl });
  const nodeDeltas = sender(queues.NODE_DELTAS_URL);
  const rulesStore = new DynamoDbRulesStore(table);
  const rules = new RulesWatch({
    // How tolerations match decides here in which order what was held is told of, and nothing else.
    readAll: allRulesReader(rulesStore, { comparisonOperators: false }),
    clock,
    log,
  });
  const relay = new Relay({
    rules,
    rulesStore,
    leases: new DynamoDbLeases(table, {
      sender: await ownSender(new STSClient(CLIENT_SETTINGS), log, queues.ENDPOINT),
    }),
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
      ...{ nodeDeltas, clock },
      proofs: new DynamoDbProofs(table),
    }),
    clock,
    nodeBudget,
    log,
    metrics,
    // Hosts share names, and containers process ids: the name is for who reads it, the rest tells relays apart.
    holder: `${hostname()}/${randomUUID()}`,
  });
  return { relay, stop: () => relay.stop().then(() => rules.stop()) };
}
