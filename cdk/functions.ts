import { Duration } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import { FilterCriteria, FilterRule, MetricType, StartingPosition } from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import { Construct } from 'constructs';
import type { FunctionName } from '#deploy/build/bundle.ts';
import { DELTA_BATCH_SIZE } from '#functions/deltas/handler.ts';
import { EXPIRY_BATCH_SIZE, TTL_IDENTITY } from '#functions/expiry/handler.ts';
import { EVICT_BATCH_SIZE } from '#shared/aws/due-consumption.ts';
import type {
  clusterMetricVariables,
  historyVariables,
  matchingVariables,
  metricVariables,
  ValuesOf,
} from '#shared/aws/environment.ts';
import { EXPIRY_DEAD_LETTER_NAME } from '#shared/aws/queue-set.ts';
import { SCHEDULED_PREFIX } from '#shared/state/dynamodb/items.ts';
import type { Agents } from './agents.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { Config } from './config.ts';
import type { Deltas } from './deltas.ts';
import { setEndpoint, setInstallation } from './grantee.ts';
import type { Network } from './network.ts';
import type { Notices } from './notices.ts';
import { ServiceFunction } from './service-function.ts';
import { DeadLetterQueue, type ServiceQueue } from './service-queue.ts';
import type { State } from './state.ts';
import type { Timers } from './timers.ts';

/** The timeout of `expiry`, which writes to the table and sends to a queue for at most a hundred records. */
const EXPIRY_TIMEOUT_SECONDS = 60;
/** The stream keeps a record for a day; a record that `expiry` has not put back by then is a dead letter. */
export const EXPIRY_MAX_RECORD_AGE = Duration.hours(23);
const HEARTBEAT_TIMEOUT_SECONDS = 30;
const HEARTBEAT_PERIOD = Duration.minutes(1);

export interface FunctionsProps {
  readonly config: Config;
  readonly state: State;
  readonly deltas: Deltas;
  readonly timers: Timers;
  readonly agents: Agents;
  readonly clusters: ClusterAccess;
  readonly notices: Notices;
  /** The network from which `evict` reaches the clusters; absent: the internet. */
  readonly network?: Network;
}

/** The Lambda functions and their event sources. */
export class Functions extends Construct {
  readonly nodeDelta: ServiceFunction;
  readonly podDelta: ServiceFunction;
  readonly evict: ServiceFunction;
  readonly expiry: ServiceFunction;
  readonly expiryStreamUuid: string;
  readonly heartbeat: ServiceFunction;
  /** The dead letters of `expiry`: records that it could not read or put back. */
  readonly expiryDeadLetters: DeadLetterQueue;
  readonly #props: FunctionsProps;

  constructor(scope: Construct, id: string, props: FunctionsProps) {
    super(scope, id);
    this.#props = props;
    this.nodeDelta = this.#deltaFunction('NodeDelta', 'node-delta', props.deltas.nodes);
    this.podDelta = this.#deltaFunction('PodDelta', 'pod-delta', props.deltas.pods);
    this.evict = this.#evictFunction();
    this.expiryDeadLetters = new DeadLetterQueue(this, 'ExpiryDeadLetters', {
      name: EXPIRY_DEAD_LETTER_NAME,
      prefix: props.config.name,
      fifo: false,
    });
    [this.expiry, this.expiryStreamUuid] = this.#expiryFunction();
    this.heartbeat = this.#heartbeatFunction();
  }

  get all(): readonly ServiceFunction[] {
    return [this.nodeDelta, this.podDelta, this.evict, this.expiry, this.heartbeat];
  }

  #deltaFunction(id: string, name: FunctionName, source: ServiceQueue): ServiceFunction {
    const { config, state, timers, agents, notices } = this.#props;
    const fn = this.#function(
      id,
      name,
      source.spec.functionTimeoutSeconds,
      `Decides what falls due (${source.spec.name}).`,
    );
    state.bindPartitions(fn);
    timers.bindArm(fn);
    agents.bindArm(fn);
    notices.bind(fn);
    this.#setDeciding(fn);
    feed(fn, source, DELTA_BATCH_SIZE, config.concurrency);
    return fn;
  }

  #evictFunction(): ServiceFunction {
    const { config, state, timers, agents, clusters, notices } = this.#props;
    const { due } = timers;
    const fn = this.#function(
      'Evict',
      'evict',
      due.spec.functionTimeoutSeconds,
      'Evicts the due pods of a node.',
    );
    state.bindPartitions(fn);
    state.bindRates(fn);
    timers.bindArm(fn);
    agents.bindSend(fn);
    notices.bind(fn);
    clusters.bind(fn, 'evict');
    this.#setDeciding(fn);
    this.#setMetrics(fn);
    fn.setEnvironment({
      METRICS_BY_CLUSTER: String(config.metricsByCluster),
    } satisfies ValuesOf<typeof clusterMetricVariables>);
    setInstallation(fn, config);
    feed(fn, due, EVICT_BATCH_SIZE, config.concurrency);
    return fn;
  }

  #expiryFunction(): [ServiceFunction, streamUuid: string] {
    const { state, timers, agents } = this.#props;
    const fn = this.#function(
      'Expiry',
      'expiry',
      EXPIRY_TIMEOUT_SECONDS,
      'Turns missed evictions back into due work.',
    );
    state.bindPartitions(fn);
    timers.bindSend(fn);
    agents.bindSend(fn);
    this.expiryDeadLetters.bindSend(fn);
    const { eventSourceMappingId } = fn.lambda.addEventSourceMapping('Stream', {
      eventSourceArn: state.bindStream(fn),
      // Start at the oldest record, so that no record is missed while the event source is created.
      startingPosition: StartingPosition.TRIM_HORIZON,
      batchSize: EXPIRY_BATCH_SIZE,
      reportBatchItemFailures: true,
      bisectBatchOnError: true,
      maxRecordAge: EXPIRY_MAX_RECORD_AGE,
      onFailure: { bind: () => ({ destination: this.expiryDeadLetters.queue.queueArn }) },
      metricsConfig: { metrics: [MetricType.EVENT_COUNT] },
      filters: [
        FilterCriteria.filter({
          eventName: FilterRule.isEqual('REMOVE'),
          userIdentity: {
            type: FilterRule.isEqual(TTL_IDENTITY.type),
            principalId: FilterRule.isEqual(TTL_IDENTITY.principalId),
          },
          dynamodb: { OldImage: { sk: { S: FilterRule.beginsWith(SCHEDULED_PREFIX) } } },
        }),
      ],
    });
    return [fn, eventSourceMappingId];
  }

  #heartbeatFunction(): ServiceFunction {
    const fn = this.#function(
      'Heartbeat',
      'heartbeat',
      HEARTBEAT_TIMEOUT_SECONDS,
      'Counts the clusters whose lease no relay holds.',
    );
    this.#props.state.bindRegistry(fn);
    this.#setMetrics(fn);
    new Rule(this, 'EveryMinute', {
      description: `Calls ${fn.lambda.functionName}.`,
      schedule: Schedule.rate(HEARTBEAT_PERIOD),
      // The next call, a minute later, reports the same.
      targets: [new LambdaFunction(fn.lambda, { retryAttempts: 0 })],
    });
    return fn;
  }

  #function(id: string, name: FunctionName, timeoutSeconds: number, description: string): ServiceFunction {
    const { config, network } = this.#props;
    return new ServiceFunction(this, id, {
      name,
      description,
      timeoutSeconds,
      prefix: config.name,
      ...(network && name === 'evict' ? { network } : {}),
      // Only `evict` arms timers that lead back to itself. The chains of the delta functions and of `expiry` end at `evict`.
      // `evict` reaches them only by the table's stream, which carries no chain of invocations, and a day later at the earliest.
      wakesItself: name === 'evict',
    });
  }

  #setMetrics(fn: ServiceFunction): void {
    fn.setEnvironment({
      METRIC_NAMESPACE: this.#props.config.name,
    } satisfies ValuesOf<typeof metricVariables>);
  }

  #setDeciding(fn: ServiceFunction): void {
    const { config } = this.#props;
    fn.setEnvironment({
      HISTORY_DAYS: String(config.historyDays),
      COMPARISON_OPERATORS: String(config.comparisonOperators),
    } satisfies ValuesOf<typeof historyVariables & typeof matchingVariables>);
    setEndpoint(fn, config);
  }
}

/** A concurrency limit of the event source: a reserved concurrency would throttle, which uses up messages' receives. */
function feed(fn: ServiceFunction, source: ServiceQueue, batchSize: number, maxConcurrency: number): void {
  source.bindSource(fn);
  fn.lambda.addEventSource(
    new SqsEventSource(source.queue, { batchSize, maxConcurrency, reportBatchItemFailures: true }),
  );
}
