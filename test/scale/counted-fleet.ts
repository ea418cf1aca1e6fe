import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { CreateScheduleCommand, type SchedulerClient } from '@aws-sdk/client-scheduler';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { Registry } from 'prom-client';
import { createHandler as createDeltaHandler } from '#functions/deltas/handler.ts';
import { createHandler as createEvictHandler } from '#functions/evict/handler.ts';
import { Outbox } from '#functions/watch-relay/outbox.ts';
import { Relay } from '#functions/watch-relay/relay.ts';
import { relayMetrics } from '#functions/watch-relay/relay-metrics.ts';
import { RulesWatch } from '#functions/watch-relay/rules-watch.ts';
import { DynamoDbLeases } from '#shared/clusters/dynamodb-leases.ts';
import { DynamoDbRateLimiter } from '#shared/clusters/dynamodb-rate-limiter.ts';
import { DynamoDbClusterRegistry } from '#shared/clusters/dynamodb-registry.ts';
import { DynamoDbRulebook } from '#shared/clusters/dynamodb-rulebook.ts';
import { onceASecond } from '#shared/clusters/lease.ts';
import { leaseSenders } from '#shared/clusters/lease-senders.ts';
import { Operator } from '#shared/clusters/operator.ts';
import { allRulesReader, rulesReader } from '#shared/clusters/rulebook.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { SqsVisibility } from '#shared/queues/sqs-visibility.ts';
import { DynamoDbHistory } from '#shared/store/dynamodb-history.ts';
import { DynamoDbStore } from '#shared/store/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import { Emf, emfEvictionMetrics } from '#shared/telemetry/emf.ts';
import { EventBus } from '#shared/telemetry/event-bus.ts';
import { jsonLog, logTo } from '#shared/telemetry/log.ts';
import { pause } from '#shared/time/pause.ts';
import { AwsTimers } from '#shared/timers/aws-timers.ts';
import { CountedTable, type Units } from '#test/costs/counted-table.ts';
import { itemBytes } from '#test/unit/store/item-bytes.ts';
import type { DrivenTimers } from '#test/world/driven-timers.ts';
import { sqsEvent } from '#test/world/sqs-event.ts';
import { CountedCluster, type Shape } from './counted-cluster.ts';
import { CountedSqs, type QueueCounts } from './counted-sqs.ts';
import { each } from './counts.ts';

const QUEUES = {
  nodeDeltas: 'https://sqs/taintward-node-deltas.fifo',
  podDeltas: 'https://sqs/taintward-pod-deltas.fifo',
  due: 'https://sqs/taintward-evictions-due',
  dead: 'https://sqs/taintward-dlq',
} as const;

/** All that evicts, whatever a cluster's guard would make of so many nodes at once. */
const POLICY = 'mode: enforce\nguard: off\n';

/** Until the relay has the leases, and nothing is left over from its start. */
const SETTLED_MS = 180_000;
const POLL_MS = 50;
/** Until what a node that is free of its taint brings about is over. */
export const CLEARED_MS = 60_000;
/** For this long the relay looks whether pods are gone that were evicted. */
export const AFTERMATH_MS = 90_000;

/** Kinds of partitions, by what writes them. */
export type Partition =
  | 'node'
  | 'cluster'
  | 'lease'
  | 'fleet'
  | 'index tainted'
  | 'index history'
  | 'index clusters'
  | 'index audit';

/** What was asked of AWS and of API servers. */
export interface Counts {
  readonly tableCalls: number;
  readonly reads: number;
  readonly writes: number;
  /** Of these, by where they went. */
  readonly at: Readonly<Partial<Record<Partition, Units>>>;
  readonly nodeDeltas: QueueCounts;
  readonly podDeltas: QueueCounts;
  readonly due: QueueCounts;
  readonly deltaInvocations: number;
  readonly evictInvocations: number;
  readonly schedules: number;
  /** Entries of PutEvents, where a bus is told. */
  readonly notices: number;
  readonly logBytes: number;
  readonly apiRequests: number;
  /** Bytes of all items of partitions of nodes. */
  readonly storedBytes: number;
}

/** What a fleet does from one moment to the next. */
export interface CountedPhases {
  /** So long in which nothing is tainted. */
  readonly idle: Counts;
  /** From the taint of all nodes until their pods are gone. */
  readonly tainted: Counts;
  /** Ten minutes in which the nodes, without pods by now, stay tainted. */
  readonly standing: Counts;
  /** All nodes are free of the taint. */
  readonly cleared: Counts;
}

/**
 * Runs the relay and the functions that are deployed over a fleet in memory in driven time, and counts what they ask for.
 * Each invocation has one message and a process of its own, as if no two of them met the same cluster: what a process keeps for a
 * moment helps nobody among a thousand clusters.
 */
export async function countFleet(
  time: DrivenTimers,
  { clusters, ...shape }: Shape & { readonly clusters: number },
): Promise<CountedPhases> {
  const fleet = new CountedFleet(clusters, shape);
  await fleet.start();
  await time.pass(SETTLED_MS);
  const between: Counts[] = [fleet.counts()];
  const phase = async (ms: number) => {
    await time.pass(ms);
    between.push(fleet.counts());
  };
  await phase(RESYNC_MS);
  fleet.setTainted(true);
  await phase(shape.tolerationSeconds * 1000 + AFTERMATH_MS);
  // What a list of ten minutes ago is told of again, whenever it was.
  await phase(RESYNC_MS);
  fleet.setTainted(false);
  await phase(CLEARED_MS);
  await fleet.stop(time);
  const [idle, tainted, standing, cleared] = between.slice(1).map((end, at) => minus(end, between[at]));
  if (!idle || !tainted || !standing || !cleared) throw new Error('a phase was not counted');
  return { idle, tainted, standing, cleared };
}

type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;

/** The service as it is deployed, over what counts. */
class CountedFleet {
  readonly #counted = new CountedTable(Date.now);
  readonly #table = new DynamoDbTable({ client: this.#counted.client, tableName: 'taintward' });
  readonly #sqs = new CountedSqs();
  readonly #clusters: ReadonlyMap<ClusterName, CountedCluster>;
  readonly #clock = { now: Date.now };
  readonly #stopping = new AbortController();
  readonly #invocations = { deltas: 0, evict: 0 };
  #schedules = 0;
  #notices = 0;
  #logBytes = 0;
  readonly #rules: RulesWatch;
  readonly #relay: Relay;

  constructor(clusters: number, shape: Shape) {
    this.#clusters = new Map(
      Array.from({ length: clusters }, (_, index) => [
        clusterName(`production-${index}`),
        new CountedCluster(index, shape),
      ]),
    );
    const clock = this.#clock;
    const log = logTo(() => undefined);
    const emf = new Emf({ namespace: 'taintward', clock, write: () => undefined });
    const metrics = relayMetrics(new Registry(), emf);
    const rulebook = new DynamoDbRulebook(this.#table);
    this.#rules = new RulesWatch({
      readAll: allRulesReader(rulebook, { comparisonOperators: false }),
      clock,
      log,
    });
    this.#relay = new Relay({
      ...{
        rules: this.#rules,
        rulebook,
        clock,
        log,
        metrics,
        holder: 'ip-10-0-0-1/relay',
        stopwatch: Date.now,
      },
      leases: new DynamoDbLeases(this.#table),
      store: new DynamoDbStore(this.#table),
      history: new DynamoDbHistory(this.#table),
      outbox: new Outbox({
        ...{ clock, log, metrics },
        nodeDeltas: this.#sender(QUEUES.nodeDeltas),
        podDeltas: this.#sender(QUEUES.podDeltas),
      }),
      nodeBudget: Number.POSITIVE_INFINITY,
    });
  }

  async start(): Promise<void> {
    const registry = new DynamoDbClusterRegistry(this.#table);
    const operator = new Operator({
      rulebook: new DynamoDbRulebook(this.#table),
      clock: this.#clock,
      who: 'anna',
    });
    for (const [name, cluster] of this.#clusters) {
      const access = { kind: 'eks', clusterName: name, region: 'eu-west-1' } as const;
      await registry.add({ name, access, addedAt: Date.now() });
      await operator.applyPolicy(name, POLICY);
      this.#relay.add(name, cluster);
    }
    const deltas = () => {
      this.#invocations.deltas += 1;
      return this.#deltaHandler();
    };
    void this.#serve(QUEUES.nodeDeltas, deltas);
    void this.#serve(QUEUES.podDeltas, deltas);
    void this.#serve(QUEUES.due, () => {
      this.#invocations.evict += 1;
      return this.#evictHandler();
    });
  }

  setTainted(tainted: boolean): void {
    for (const cluster of this.#clusters.values()) cluster.setTainted(tainted);
  }

  async stop(time: DrivenTimers): Promise<void> {
    this.#stopping.abort();
    const ended = Promise.all([this.#relay.stop(), this.#rules.stop()]);
    await time.pass(1_000);
    await ended;
  }

  counts(): Counts {
    const at: Partial<Record<Partition, Units>> = {};
    const add = (partition: Partition, { reads, writes }: Units) => {
      const { reads: knownReads = 0, writes: knownWrites = 0 } = at[partition] ?? {};
      at[partition] = { reads: knownReads + reads, writes: knownWrites + writes };
    };
    const { table, index } = this.#counted.loads;
    for (const [key, units] of table) add(partitionOf(key), units);
    for (const [key, units] of index) add(indexPartitionOf(key), units);
    const stored = [...this.#counted.items()].filter((item) => partitionOf(item['pk']?.S ?? '') === 'node');
    return {
      tableCalls: this.#counted.calls,
      ...this.#counted.units,
      at,
      nodeDeltas: this.#sqs.counts(QUEUES.nodeDeltas),
      podDeltas: this.#sqs.counts(QUEUES.podDeltas),
      due: this.#sqs.counts(QUEUES.due),
      deltaInvocations: this.#invocations.deltas,
      evictInvocations: this.#invocations.evict,
      schedules: this.#schedules,
      notices: this.#notices,
      logBytes: this.#logBytes,
      apiRequests: [...this.#clusters.values()].reduce((sum, { requests }) => sum + requests, 0),
      storedBytes: stored.reduce((sum, item) => sum + itemBytes(item), 0),
    };
  }

  /** Invokes a handler with each message that becomes visible, as an event source does. */
  async #serve(url: string, start: () => Handler): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      for (let batch = this.#sqs.receive(url, 1); batch.length > 0; batch = this.#sqs.receive(url, 1)) {
        const records = batch;
        void start()(sqsEvent(...records), {} as Context).then((response) => {
          const failed = new Set(response?.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
          this.#sqs.delete(
            url,
            records.map(({ messageId }) => messageId).filter((id) => !failed.has(id)),
          );
        });
      }
      await pause(POLL_MS, this.#stopping.signal);
    }
  }

  /** What `functions/deltas/lambda.ts` puts together. */
  #deltaHandler(): Handler {
    const leases = new DynamoDbLeases(this.#table);
    const recentLease = onceASecond((cluster) => leases.look(cluster), this.#clock);
    const common = this.#handlerParts();
    return createDeltaHandler({
      ...common,
      leaseEpoch: async (cluster) => (await recentLease(cluster))?.epoch,
      maySpeak: leaseSenders(leases, recentLease),
      dueQueue: this.#sender(QUEUES.due),
    });
  }

  /** What `functions/evict/lambda.ts` puts together. */
  #evictHandler(): Handler {
    const registry = new DynamoDbClusterRegistry(this.#table);
    const emf = new Emf({
      namespace: 'taintward',
      clock: this.#clock,
      write: (line) => this.#countLine(`${line}\n`),
    });
    return createEvictHandler({
      ...this.#handlerParts(),
      clusters: {
        api: async (name) => {
          await registry.get(name);
          const cluster = this.#clusters.get(name);
          if (!cluster) throw new Error(`nobody made cluster ${name}`);
          return cluster;
        },
      },
      rates: new DynamoDbRateLimiter(this.#table),
      metrics: emfEvictionMetrics(emf),
    });
  }

  #handlerParts() {
    const clock = this.#clock;
    const lines = jsonLog('info', { write: (line) => this.#countLine(line) });
    const client = new EventBridgeClient({ region: 'eu-west-1' });
    const bus = new EventBus({
      client: {
        send: async (command: { readonly input: { readonly Entries?: readonly unknown[] } }) => {
          this.#notices += command.input.Entries?.length ?? 0;
          return {};
        },
      } as unknown as typeof client,
      busName: 'ops',
      clock,
      log: lines,
    });
    const sqs = this.#sqs.client;
    return {
      store: new DynamoDbStore(this.#table),
      timers: new AwsTimers({
        dueQueue: this.#sender(QUEUES.due),
        scheduler: this.#scheduler(),
        ...{ groupName: 'taintward', roleArn: 'arn:role', dueQueueArn: 'arn:due', clock },
      }),
      deadLetters: this.#sender(QUEUES.dead),
      visibility: new SqsVisibility({ client: sqs, queueUrl: QUEUES.due, log: lines }),
      rules: rulesReader({
        rulebook: new DynamoDbRulebook(this.#table),
        matching: { comparisonOperators: false },
        clock,
      }),
      notices: bus,
      clock,
      log: bus.log,
    };
  }

  /** One-time schedules, which fire at their time and are gone. */
  #scheduler(): SchedulerClient {
    const send = async (command: unknown) => {
      if (!(command instanceof CreateScheduleCommand)) throw new Error('nobody counts that');
      this.#schedules += 1;
      const { ScheduleExpression = '', Target } = command.input;
      const at = Date.parse(`${ScheduleExpression.slice('at('.length, -1)}Z`);
      void pause(at - Date.now()).then(() => this.#sqs.deliver(QUEUES.due, Target?.Input ?? ''));
      return {};
    };
    return { send } as unknown as SchedulerClient;
  }

  #countLine(line: string): void {
    this.#logBytes += Buffer.byteLength(line);
  }

  #sender(queueUrl: string): SqsSender {
    return new SqsSender({ client: this.#sqs.client, queueUrl });
  }
}

function partitionOf(key: string): Partition {
  if (key === 'FLEET') return 'fleet';
  if (key.startsWith('LEASE#')) return 'lease';
  return key.startsWith('CLUSTER#') ? 'cluster' : 'node';
}

function indexPartitionOf(key: string): Partition {
  if (key.startsWith('TAINTED#')) return 'index tainted';
  if (key.startsWith('HISTORY#')) return 'index history';
  return key === 'AUDIT' ? 'index audit' : 'index clusters';
}

/** What was counted between two moments. */
const minus = (end: Counts, start: Counts | undefined): Counts =>
  start ? each(end, start, (a, b) => a - b) : end;
