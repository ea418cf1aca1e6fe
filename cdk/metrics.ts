import { Duration } from 'aws-cdk-lib';
import { MathExpression, Metric, Stats } from 'aws-cdk-lib/aws-cloudwatch';
import type { FargateService } from 'aws-cdk-lib/aws-ecs';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { CLUSTER_INDEX } from '#shared/state/dynamodb/table-definition.ts';
import * as names from '#shared/telemetry/metrics.ts';
import type { ServiceFunction } from './service-function.ts';
import type { State } from './state.ts';
import type { Timers } from './timers.ts';

/** A short period, so that failures appear within a minute or two. */
const period = Duration.minutes(1);

/*
 * None of these metrics uses metric math, and their labels are the dashboard's. Alarms on a labeled metric or on math have
 * another form, which emulators of AWS do not support.
 */

/** The metrics that `evict`, `heartbeat` and the relay write into their logs. */
export function ownMetrics(namespace: string) {
  const metric = (metricName: string, statistic: string) =>
    new Metric({ namespace, metricName, statistic, period });
  return {
    podsDeleted: metric(names.POD_DELETIONS, Stats.SUM),
    /** Seconds after the deadline. */
    late: (statistic: string) => metric(names.POD_DELETION_DURATION, statistic),
    refusals: metric(names.API_REFUSALS, Stats.SUM),
    outOfReach: metric(names.OUT_OF_REACH, Stats.SUM),
    retries: metric(names.EVICTION_RETRIES, Stats.SUM),
    givenUp: metric(names.GIVEN_UP, Stats.SUM),
    rivals: metric(names.RIVALS, Stats.SUM),
    messagesFailing: metric(names.MESSAGES_FAILING, Stats.SUM),
    skew: metric(names.CLOCK_SKEW, Stats.MAXIMUM),
    rejectedDeltas: metric(names.REFUSED_DELTAS, Stats.SUM),
    unsentDeltas: metric(names.UNSENT_DELTAS, Stats.SUM),
    unwatchedClusters: metric(names.UNWATCHED_CLUSTERS, Stats.MAXIMUM),
    lastContactAge: metric(names.LAST_CONTACT_AGE, Stats.MAXIMUM),
    nobodyEvicts: metric(names.NOBODY_EVICTS, Stats.MAXIMUM),
    overBudget: metric(names.OVER_BUDGET, Stats.MAXIMUM),
    guardTrips: metric(names.GUARD_TRIPS, Stats.MAXIMUM),
    takeoversWithheld: metric(names.TAKEOVERS_WITHHELD, Stats.MAXIMUM),
    stuckPods: metric(names.STUCK_PODS, Stats.MAXIMUM),
  };
}

/** The metrics of `evict` for each cluster; they exist with `taintward:metricsByCluster`. */
export function metricsByCluster(namespace: string) {
  const search = (metricName: string, statistic: string) =>
    new MathExpression({
      expression: `SEARCH('{${namespace},cluster} MetricName="${metricName}"', '${statistic}')`,
      label: '',
      period,
    });
  return {
    podsDeleted: search(names.POD_DELETIONS, Stats.SUM),
    late: search(names.POD_DELETION_DURATION, 'p99'),
    refusals: search(names.API_REFUSALS, Stats.SUM),
    outOfReach: search(names.OUT_OF_REACH, Stats.SUM),
    givenUp: search(names.GIVEN_UP, Stats.SUM),
    skew: search(names.CLOCK_SKEW, Stats.MAXIMUM),
  };
}

export const waiting = (queue: Queue): Metric =>
  queue.metricApproximateNumberOfMessagesVisible({ period, statistic: Stats.MAXIMUM });

/** The minimum number of waiting messages. */
export const neverFewerWaiting = (queue: Queue): Metric =>
  queue.metricApproximateNumberOfMessagesVisible({ period, statistic: Stats.MINIMUM });

export const oldest = (queue: Queue): Metric =>
  queue.metricApproximateAgeOfOldestMessage({ period, statistic: Stats.MAXIMUM });

/** Receive calls that found no message; they show that a process polls the queue. */
export const emptyReceives = (queue: Queue): Metric =>
  queue.metricNumberOfEmptyReceives({ period, statistic: Stats.SUM });

/** Invocations that crashed or timed out. Failures that a handler copes with itself do not count. */
export const errors = ({ lambda }: ServiceFunction): Metric =>
  lambda.metricErrors({ period, statistic: Stats.SUM });

export const throttles = ({ lambda }: ServiceFunction): Metric =>
  lambda.metricThrottles({ period, statistic: Stats.SUM });

/** Invocations that Lambda dropped as part of a loop; a function that allows loops has none. */
export const droppedAsLoops = ({ lambda }: ServiceFunction): Metric =>
  lambda.metric('RecursiveInvocationsDropped', { period, statistic: Stats.SUM });

/** The age of the last record of a batch when a function that reads a stream received it. */
export const recordAge = ({ lambda }: ServiceFunction): Metric =>
  lambda.metric('IteratorAge', { period, statistic: Stats.MAXIMUM });

/** The number of polls of a stream for a function, whether they find records or not. A disabled event source has none. */
export const streamPolls = (uuid: string): Metric =>
  new Metric({
    namespace: 'AWS/Lambda',
    metricName: 'PolledEventCount',
    dimensionsMap: { EventSourceMappingUUID: uuid },
    statistic: Stats.SAMPLE_COUNT,
    period,
  });

/** The number of running tasks of a service: each task reports its processor load once a minute. */
export const runningTasks = (service: FargateService): Metric =>
  service.metricCpuUtilization({ period, statistic: Stats.SAMPLE_COUNT });

/** The memory of the fullest task, in percent. */
export const memoryUtilization = (service: FargateService): Metric =>
  service.metricMemoryUtilization({ period, statistic: Stats.MAXIMUM });

export const tableThrottles = ({ table }: State, kind: 'Read' | 'Write'): Metric =>
  table.metric(`${kind}ThrottleEvents`, { period, statistic: Stats.SUM });

/** The table's own metric excludes its index, whose metric has one more dimension. */
export const indexThrottles = ({ table }: State, kind: 'Read' | 'Write'): Metric =>
  table.metric(`${kind}ThrottleEvents`, {
    period,
    statistic: Stats.SUM,
    dimensionsMap: { TableName: table.tableName, GlobalSecondaryIndexName: CLUSTER_INDEX },
  });

/** A metric of EventBridge Scheduler for our schedules. */
export function scheduler(timers: Pick<Timers, 'groupName'>, metricName: string): Metric {
  return new Metric({
    namespace: 'AWS/Scheduler',
    metricName,
    dimensionsMap: { ScheduleGroup: timers.groupName },
    statistic: Stats.SUM,
    period,
  });
}
