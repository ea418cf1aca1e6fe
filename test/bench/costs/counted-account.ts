import { type CreateScheduleCommand, SchedulerClient } from '@aws-sdk/client-scheduler';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { createHandler as createDeltaHandler } from '#functions/deltas/handler.ts';
import { createHandler as createEvictHandler } from '#functions/evict/handler.ts';
import { AwsTimers, SCHEDULE_LEAD_SECONDS } from '#shared/aws/aws-timers.ts';
import { encodeDelta, messageGroupId } from '#shared/aws/delta-message.ts';
import { settingAside } from '#shared/aws/due-message.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { onceASecond } from '#shared/state/lease.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { logTo } from '#shared/telemetry/log.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { CountedTable } from '#test/costs/counted-table.ts';
import { PRICES, perMillion } from '#test/costs/prices.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { enforced } from '#test/world/enforced-rules.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { NO_METRICS } from '#test/world/no-metrics.ts';
import { SendingView } from '#test/world/sending-view.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';

/** Each message is sent, received, and deleted. */
const REQUESTS_OF_A_MESSAGE = 3;
const NO_CONTEXT = {} as Context;

type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;

/** AWS calls, and their costs without computing time and logs. */
export interface Bill {
  readonly calls: number;
  readonly dollars: number;
}

/**
 * Counts the AWS requests of the deployed handlers with their AWS adapters, on one cluster in memory and a driven
 * clock.
 */
export class CountedAccount {
  readonly clock: DrivenClock;
  readonly cluster: FakeCluster;
  readonly view: SendingView;
  readonly #table: CountedTable;
  readonly #handlers: { readonly delta: Handler; readonly evict: Handler };
  readonly #counted = { fifo: 0, standard: 0, schedules: 0, invocations: 0 };
  #messages = 0;

  /** `rate`: the eviction rate of all pods, per second. */
  constructor(startAt: EpochMs, evictionRate?: number) {
    const clock = new DrivenClock(startAt);
    this.clock = clock;
    this.cluster = new FakeCluster(clock);
    this.view = new SendingView(clusterName('production-eu-west-1'), 1);
    this.#table = new CountedTable(() => clock.now());
    const table = new DynamoDbTable({ client: this.#table.client, tableName: 'taintward' });
    const dueQueue: QueueSender = {
      send: async (messages) => {
        for (const { body, delaySeconds = 0, groupId } of messages) {
          this.#due(body, clock.now() + delaySeconds * 1000, groupId);
        }
        return [];
      },
    };
    const scheduler = new SchedulerClient({ region: 'us-east-1' });
    // The overloads of `send`, some with callbacks, are not implemented, because nothing uses them.
    Object.assign(scheduler, { send: async (command: CreateScheduleCommand) => this.#schedule(command) });
    const all = enforced({ comparisonOperators: false });
    const rules = evictionRate === undefined ? all : { ...all, policy: { ...all.policy, evictionRate } };
    const nothing = { send: async () => [] };
    const leases = new DynamoDbLeases(table);
    const recentLease = onceASecond((cluster) => leases.read(cluster), clock);
    const common = {
      clock,
      log: logTo(() => undefined),
      store: new DynamoDbStore(table),
      timers: new AwsTimers({
        dueQueue,
        scheduler,
        clock,
        schedulesOf: async () => ({ groupName: 'taintward', roleArn: 'arn:role', dueQueueArn: 'arn:queue' }),
      }),
      rules: async () => rules,
      deadLetters: nothing,
      visibility: { retryIn: async () => undefined },
    };
    this.#handlers = {
      delta: createDeltaHandler({
        ...common,
        dueQueue,
        leaseEpoch: async (cluster) => (await recentLease(cluster))?.epoch,
      }),
      evict: createEvictHandler({
        ...common,
        setAside: settingAside(nothing),
        clusters: { api: async () => this.cluster },
        permits: dynamoDbPermits(table),
        metrics: NO_METRICS,
      }),
    };
  }

  /** Passes deltas to their handler, one message each. Throws when one fails. */
  async deliver(deltas: readonly Delta[]): Promise<void> {
    for (const delta of deltas) {
      this.#counted.fifo += REQUESTS_OF_A_MESSAGE;
      const groupId = messageGroupId(delta.ref);
      await this.#invoke(this.#handlers.delta, encodeDelta(delta), groupId);
    }
  }

  /** The costs so far. */
  get bill(): Bill {
    const { fifo, standard, schedules, invocations } = this.#counted;
    const { reads, writes } = this.#table.units;
    return {
      calls: this.#table.calls + fifo + standard + schedules,
      dollars:
        perMillion(fifo, PRICES.sqsFifoPerMillion) +
        perMillion(standard, PRICES.sqsStandardPerMillion) +
        perMillion(schedules, PRICES.schedulerPerMillion) +
        perMillion(invocations, PRICES.lambdaRequestsPerMillion) +
        perMillion(reads, PRICES.dynamoDbReadsPerMillion) +
        perMillion(writes, PRICES.dynamoDbWritesPerMillion),
    };
  }

  #due(body: string, at: EpochMs, groupId?: string): void {
    this.#counted.standard += REQUESTS_OF_A_MESSAGE;
    this.clock.setAlarm(at, () => this.#invoke(this.#handlers.evict, body, groupId));
  }

  /**
   * EventBridge Scheduler sends the message itself, which is no request of the account; receiving and deleting it are.
   */
  #schedule({ input: { ScheduleExpression = '', Target } }: CreateScheduleCommand): object {
    this.#counted.schedules += 1;
    this.#counted.standard -= 1;
    const at = Date.parse(`${ScheduleExpression.slice('at('.length, -1)}Z`);
    if (Number.isNaN(at))
      throw new Error(`No moment is ${ScheduleExpression}, ${SCHEDULE_LEAD_SECONDS} s early.`);
    this.#due(Target?.Input ?? '', at);
    return {};
  }

  async #invoke(handler: Handler, body: string, groupId: string | undefined): Promise<void> {
    this.#counted.invocations += 1;
    this.#messages += 1;
    const fields = { messageId: `m${this.#messages}`, ...(groupId === undefined ? {} : { groupId }) };
    const answer = await handler(sqsEvent(sqsRecord(body, fields)), NO_CONTEXT);
    if (answer?.batchItemFailures.length) throw new Error(`A message failed: ${body.slice(0, 200)}`);
  }
}
