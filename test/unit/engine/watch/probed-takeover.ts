import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { createHandler as createDeltaHandler } from '#functions/deltas/handler.ts';
import { createHandler as createEvictHandler, forwardToAgent } from '#functions/evict/handler.ts';
import { agentOf as agentBy, recentRegistrations } from '#shared/access/agent-of.ts';
import { AwsTimers } from '#shared/aws/aws-timers.ts';
import { settingAside } from '#shared/aws/due-message.ts';
import { routedSender } from '#shared/aws/due-queues.ts';
import { ProbingProver } from '#shared/aws/relay/probing-prover.ts';
import { NotedProofs } from '#shared/engine/evict/proofs.ts';
import { keepTakeover } from '#shared/engine/watch/takeover-heartbeat.ts';
import type { Policy, Rules } from '#shared/eviction/policy.ts';
import type { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { EmbeddedPermits } from '#shared/state/embedded-permits.ts';
import { onceASecond } from '#shared/state/lease.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import { rulesReader } from '#shared/state/rules-store.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { scriptedScheduler } from '#test/unit/aws/scripted-scheduler.ts';
import { ref, rules } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { NO_METRICS } from '#test/world/no-metrics.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';

export const LAPSE_MS = 90_000;
export const START = Date.UTC(2026, 0, 1);
const { cluster: CLUSTER } = ref;

type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;

/** A queue that feeds a function, which takes a while. The messages of a dead function stay in the queue. */
class FeedingQueue implements QueueSender {
  readonly #handler: () => Handler;
  readonly #waiting: OutgoingMessage[] = [];
  isDead = false;
  refuses = false;
  takesMs = 200;
  sent = 0;
  /** The number of redelivered messages. */
  failed = 0;

  constructor(handler: () => Handler) {
    this.#handler = handler;
  }

  async send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]> {
    if (this.refuses) return messages.map((_, index) => ({ index, reason: 'throttled', permanent: false }));
    this.sent += messages.length;
    for (const message of messages) setTimeout(() => void this.#feed(message), this.takesMs);
    return [];
  }

  revive(): void {
    this.isDead = false;
    for (const message of this.#waiting.splice(0)) void this.#feed(message);
  }

  async #feed(message: OutgoingMessage): Promise<void> {
    if (this.isDead) {
      this.#waiting.push(message);
      return;
    }
    const { body, groupId } = message;
    const record = sqsRecord(body, groupId === undefined ? {} : { groupId });
    const answer = await this.#handler()(sqsEvent(record), {} as Context);
    this.failed += answer?.batchItemFailures.length ?? 0;
  }
}

/**
 * A cluster with a takeover, with the relay's heartbeat and both functions as on AWS. `counted`: a table from
 * which the functions also read the rules and the lease; absent: the test sets these.
 */
export function probedTakeover(context: Pick<TestContext, 'mock' | 'after'>, counted?: DynamoDBClient) {
  const time = driveTimers(context, START);
  const clock = { now: Date.now };
  const cluster = new FakeCluster(clock);
  cluster.skewMs = 0;
  cluster.putTakeover([NODE_UNREACHABLE], LAPSE_MS);
  const policy: Policy = { ...rules.policy, treatAsNoExecute: [NODE_UNREACHABLE] };
  const given = {
    rules: { ...rules, policy } as Rules,
    rulesError: undefined as Error | undefined,
    leaseError: undefined as Error | undefined,
    /** The error with which the API server answers `evict`; absent: it succeeds. */
    refusal: undefined as ApiError | undefined,
    /** The callers whose calls of the table fail. */
    refused: new Set<'deltas' | 'evict' | 'relay'>(),
  };
  const fake = new FakeDynamoDb(clock);
  const tableOf = (who: 'deltas' | 'evict' | 'relay') =>
    new DynamoDbTable({
      client:
        counted ??
        fakeClient(async (command) => {
          if (given.refused.has(who)) throw new Error('ProvisionedThroughputExceeded');
          return fake.perform(command);
        }),
      tableName: 't',
    });
  const log = recordingLog();
  const deadLetters = new ScriptedQueue();
  const readRules = async () => {
    if (given.rulesError) throw given.rulesError;
    return given.rules;
  };
  const rulesOf = (who: 'deltas' | 'evict') =>
    counted
      ? rulesReader({ rulesStore: new DynamoDbRulesStore(tableOf(who)), matching: rules.matching, clock })
      : readRules;
  const leases = new DynamoDbLeases(tableOf('deltas'));
  const leaseOf = onceASecond((cluster) => leases.read(cluster), clock);
  const ports = { clock, log, deadLetters, visibility: { retryIn: async () => undefined } };
  const dueQueue = new FeedingQueue(() => evict);
  const agentOf = (who: 'deltas' | 'evict') =>
    agentBy(recentRegistrations(new DynamoDbClusterRegistry(tableOf(who)), clock));
  const queues = { own: dueQueue, ofAgent: () => dueQueue };
  const timers = new AwsTimers({
    dueQueue: counted ? routedSender(queues, agentOf('deltas')) : dueQueue,
    scheduler: scriptedScheduler().scheduler,
    clock,
    schedulesOf: () => assert.fail('a probe took a schedule'),
  });
  const deltas = createDeltaHandler({
    ...ports,
    timers,
    dueQueue,
    rules: rulesOf('deltas'),
    store: new DynamoDbStore(tableOf('deltas')),
    trace: dynamoDbProofs(tableOf('deltas')),
    leaseEpoch: async (cluster) => {
      if (given.leaseError) throw given.leaseError;
      return counted ? (await leaseOf(cluster))?.epoch : 1;
    },
  });
  const evict = createEvictHandler({
    ...ports,
    timers,
    rules: rulesOf('evict'),
    metrics: NO_METRICS,
    setAside: settingAside(ports.deadLetters),
    store: new DynamoDbStore(tableOf('evict')),
    ...(counted
      ? { sendOn: forwardToAgent({ ofAgent: () => dueQueue }, { agentOf: agentOf('evict'), log }) }
      : {}),
    clusters: {
      api: async () => {
        if (given.refusal) throw given.refusal;
        return cluster;
      },
    },
    permits: new EmbeddedPermits(Date.now, objectPermits(new FakeObjects())),
    proofs: new NotedProofs({ notes: dynamoDbProofs(tableOf('evict')), clock, log }),
  });
  const nodeDeltas = new FeedingQueue(() => deltas);
  const prover = new ProbingProver({
    nodeDeltas,
    clock,
    proofs: dynamoDbProofs(tableOf('relay')),
  });
  const stopping = new AbortController();
  const kept = keepTakeover(
    CLUSTER,
    {
      api: cluster,
      clock,
      log,
      policy: () => given.rules.policy,
      connectionState: () => 'live',
      holdsLease: () => true,
      whyStalled: async () => undefined,
      prove: (signal) => prover.prove(CLUSTER, signal),
      onState: () => undefined,
    },
    stopping.signal,
  );
  context.after(async () => {
    stopping.abort();
    await kept;
  });
  /**
   * Reports whether the built-in controller's taint is admitted now, so that the built-in controller evicts.
   */
  const isLetIn = () =>
    !cluster.keepsOut({ key: NODE_UNREACHABLE, effect: 'NoExecute', timeAdded: Date.now() });
  const suspensions = () =>
    log.lines
      .filter(({ event }) => event === 'takeover.heartbeat-suspended')
      .map(({ fields }) => String(fields['reason']));
  return { time, cluster, given, nodeDeltas, dueQueue, deadLetters, fake, log, isLetIn, suspensions };
}

export type ProbedTakeover = ReturnType<typeof probedTakeover>;
