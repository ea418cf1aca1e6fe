import { Duration } from 'aws-cdk-lib';
import { MathExpression, Metric, Stats } from 'aws-cdk-lib/aws-cloudwatch';
import type { FargateService } from 'aws-cdk-lib/aws-ecs';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { CLUSTER_INDEX } from '#shared/state/dynamodb/table-definition.ts';
import {
  API_REFUSALS,
  CLOCK_SKEW,
  EVICTION_RETRIES,
  GIVEN_UP,
  GUARD_TRIPS,
  LAST_CONTACT_AGE,
  MESSAGES_FAILING,
  NOBODY_EVICTS,
  OUT_OF_REACH,
  OVER_BUDGET,
  POD_DELETION_DURATION,
  POD_DELETIONS,
  REFUSED_DELTAS,
  RIVALS,
  STUCK_PODS,
  TAKEOVERS_WITHHELD,
  UNSENT_DELTAS,
  UNWATCHED_CLUSTERS,
} from '#shared/telemetry/metrics.ts';
import type { ServiceFunction } from './service-function.ts';
import type { State } from './state.ts';
import type { Timers } from './timers.ts';

/** Short, so that what goes wrong shows within a minute or two. */
const period = Duration.minutes(1);

/*
 * None of them is metric math, and their labels are the dashboard's: an alarm on a labelled metric or on math is of
 * another form, which stand-ins for AWS do not know.
 */

/** What `evict`, `heartbeat` and the relay write into their logs. */
export function ownMetrics(namespace: string) {
  const metric = (metricName: string, statistic: string) =>
    new Metric({ namespace, metricName, statistic, period });
  return {
    podsDeleted: metric(POD_DELETIONS, Stats.SUM),
    /** Seconds after the deadline. */
    late: (statistic: string) => metric(POD_DELETION_DURATION, statistic),
    refusals: metric(API_REFUSALS, Stats.SUM),
    outOfReach: metric(OUT_OF_REACH, Stats.SUM),
    retries: metric(EVICTION_RETRIES, Stats.SUM),
    givenUp: metric(GIVEN_UP, Stats.SUM),
    rivals: metric(RIVALS, Stats.SUM),
    messagesFailing: metric(MESSAGES_FAILING, Stats.SUM),
    skew: metric(CLOCK_SKEW, Stats.MAXIMUM),
    refusedDeltas: metric(REFUSED_DELTAS, Stats.SUM),
    unsentDeltas: metric(UNSENT_DELTAS, Stats.SUM),
    unwatchedClusters: metric(UNWATCHED_CLUSTERS, Stats.MAXIMUM),
    lastContactAge: metric(LAST_CONTACT_AGE, Stats.MAXIMUM),
    nobodyEvicts: metric(NOBODY_EVICTS, Stats.MAXIMUM),
    overBudget: metric(OVER_BUDGET, Stats.MAXIMUM),
    guardTrips: metric(GUARD_TRIPS, Stats.MAXIMUM),
    takeoversWithheld: metric(TAKEOVERS_WITHHELD, Stats.MAXIMUM),
    stuckPods: metric(STUCK_PODS, Stats.MAXIMUM),
  };
}

/** What `evict` counts, for each cluster by itself; they are there with `taintward:metricsByCluster`. */
export function metricsByCluster(namespace: string) {
  const search = (metricName: string, statistic: string) =>
    new MathExpression({
      expression: `SEARCH('{${namespace},cluster} MetricName="${metricName}"', '${statistic}')`,
      label: '',
      period,
    });
  return {
    podsDeleted: search(POD_DELETIONS, Stats.SUM),
    late: search(POD_DELETION_DURATION, 'p99'),
    refusals: search(API_REFUSALS, Stats.SUM),
    outOfReach: search(OUT_OF_REACH, Stats.SUM),
    givenUp: search(GIVEN_UP, Stats.SUM),
    skew: search(CLOCK_SKEW, Stats.MAXIMUM),
  };
}

export const waiting = (queue: Queue): Metric =>
  queue.metricApproximateNumberOfMessagesVisible({ period, statistic: Stats.MAXIMUM });

/** The fewest messages that waited at any time. */
export const neverFewerWaiting = (queue: Queue): Metric =>
  queue.metricApproximateNumberOfMessagesVisible({ period, statistic: Stats.MINIMUM });

export const oldest = (queue: Queue): Metric =>
  queue.metricApproximateAgeOfOldestMessage({ period, statistic: Stats.MAXIMUM });

/** Calls that asked a queue for messages and found none: somebody asks. */
export const emptyReceives = (queue: Queue): Metric =>
  queue.metricNumberOfEmptyReceives({ period, statistic: Stats.SUM });

/** Invocations that crashed or timed out; what a handler copes with itself does not count. */
export const errors = ({ lambda }: ServiceFunction): Metric =>
  lambda.metricErrors({ period, statistic: Stats.SUM });

export const throttles = ({ lambda }: ServiceFunction): Metric =>
  lambda.metricThrottles({ period, statistic: Stats.SUM });

/** Invocations that Lambda refused as part of a loop; a function that allows loops has none. */
export const droppedAsLoops = ({ lambda }: ServiceFunction): Metric =>
  lambda.metric('RecursiveInvocationsDropped', { period, statistic: Stats.SUM });

/** Of a function that reads a stream: how old the last record of a batch was when the function got it. */
export const recordAge = ({ lambda }: ServiceFunction): Metric =>
  lambda.metric('IteratorAge', { period, statistic: Stats.MAXIMUM });

/** How many tasks of a service run: each tells its processor's load once a minute. */
export const runningTasks = (service: FargateService): Metric =>
  service.metricCpuUtilization({ period, statistic: Stats.SAMPLE_COUNT });

export const tableThrottles = ({ table }: State, kind: 'Read' | 'Write'): Metric =>
  table.metric(`${kind}ThrottleEvents`, { period, statistic: Stats.SUM });

/** The table's own metric knows nothing of its index: that one has a dimension more. */
export const indexThrottles = ({ table }: State, kind: 'Read' | 'Write'): Metric =>
  table.metric(`${kind}ThrottleEvents`, {
    period,
    statistic: Stats.SUM,
    dimensionsMap: { TableName: table.tableName, GlobalSecondaryIndexName: CLUSTER_INDEX },
  });

/** Of EventBridge Scheduler, about our schedules. */
export function scheduler(timers: Pick<Timers, 'groupName'>, metricName: string): Metric {
  return new Metric({
    namespace: 'AWS/Scheduler',
    metricName,
    dimensionsMap: { ScheduleGroup: timers.groupName },
    statistic: Stats.SUM,
    period,
  });
}
