import { Duration } from 'aws-cdk-lib';
import { type Metric, Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { MAX_DELAY_SECONDS } from '#shared/aws/limits.ts';
import { CONDITIONS, type Condition, type ConditionType, LATE_MS } from '#shared/conditions/conditions.ts';
import type { Config } from './config.ts';
import type { Deltas } from './deltas.ts';
import type { Functions } from './functions.ts';
import {
  droppedAsLoops,
  emptyReceives,
  errors,
  indexThrottles,
  memoryUtilization,
  neverFewerWaiting,
  oldest,
  ownMetrics,
  recordAge,
  runningTasks,
  scheduler,
  streamPolls,
  tableThrottles,
  throttles,
  waiting,
} from './metrics.ts';
import type { FargateRelay } from './relay.ts';
import type { DeadLetterQueue, ServiceQueue } from './service-queue.ts';
import type { State } from './state.ts';
import type { Timers } from './timers.ts';

/** The condition under which an alarm fires: `points` of the last `outOf` data points reach the threshold. */
interface Lasting {
  readonly points: number;
  readonly outOf: number;
  /** The period of the metric, if not its own period of one minute. */
  readonly period?: Duration;
}

/** For states that must not last: longer than a lease hand-over between relays, or one missed count. */
export const SOME_MINUTES: Lasting = { points: 3, outOf: 3 };
/** For values that are measured continuously and may recover without action. */
export const LASTING: Lasting = { points: 10, outOf: 10 };
/** For failures of single attempts: SQS redelivers a message that crashed its function after minutes. */
export const NOW_AND_THEN: Lasting = { points: 3, outOf: 30 };
/**
 * For failures of attempts that are retried at least every five minutes: at least one in each 10-minute period while the failure
 * lasts.
 */
export const AT_EACH_TRY: Lasting = { points: 2, outOf: 2, period: Duration.minutes(10) };

/** For values that a busy minute may exceed: five minutes in a row are a failure. */
export const MINUTES_ON_END: Lasting = { points: 5, outOf: 5 };
/** For values that alternate, as while a task starts and fails repeatedly. A replaced task is back in two minutes. */
export const HALF_THE_TIME: Lasting = { points: 5, outOf: 10 };

/** The normal delay is below one second; a delay of a minute means retries or throttling. */
export const LATE_SECONDS = LATE_MS / 1000;
/** The maximum clock skew: synchronized clocks differ by milliseconds. */
export const MAX_SKEW_SECONDS = 1;
/** An API server sends a bookmark every minute; within this time, another relay has tried to connect as well. */
export const DISCONNECTED_SECONDS = 300;
/** A delta is handled immediately; a delta that waits this long delays its node. */
export const OLDEST_DELTA_SECONDS = 300;
/** A waiting message may reach the maximum delay of the queue, plus some minutes. */
export const OLDEST_DUE_SECONDS = MAX_DELAY_SECONDS + 600;
/** Lambda reads the stream immediately. The records in the stream are already a day late. */
export const OLDEST_RECORD_MS = 15 * 60_000;
/** Lambda polls the stream several times a second. The release checklist confirms that polls that find nothing count. */
export const UNREAD_MINUTES = 15;
export const FULL_PERCENT = 85;
/** An agent polls continuously: no message for this long means that more evictions are due than it can carry out. */
export const SILENT_MINUTES = 15;

export interface AlarmSpec {
  /** The heading in docs/how-to/runbooks.md, which describes the meaning and the remediation. */
  readonly title: string;
  /** The resource that the alarm is for, for example a queue or a function. */
  readonly of?: string;
  /** The description in one sentence. */
  readonly sentence: string;
  /** Absent: a warning. */
  readonly severity?: Condition['severity'];
  readonly metric: Metric;
  /** The alarm fires at or above this value (default: 1), */
  readonly threshold?: number;
  /** or, with this property, below the value. */
  readonly below?: true;
  /** Absent: it fires immediately, because a single occurrence is a failure. */
  readonly lasting?: Lasting;
  /** The treatment of missing data; absent: missing data does not count as a failure. */
  readonly whenMissing?: TreatMissingData;
}

export interface AlarmedProps {
  readonly config: Config;
  readonly state: State;
  readonly deltas: Deltas;
  readonly timers: Timers;
  readonly functions: Functions;
  /** Absent: the user runs the relays. */
  readonly relay?: FargateRelay;
}

/** Returns all alarms, the most urgent first. */
export const alarmSpecs = (props: AlarmedProps): readonly AlarmSpec[] => [
  ...clusterAlarms(props),
  ...evictionAlarms(props),
  ...queueAlarms(props),
  ...platformAlarms(props),
];

const CRITICAL = { severity: 'critical' } as const;

const conditionAlarm = (type: ConditionType): Pick<AlarmSpec, 'title' | 'sentence' | 'severity'> => ({
  title: CONDITIONS[type].runbook ?? type,
  sentence: CONDITIONS[type].meaning,
  severity: CONDITIONS[type].severity,
});

type Timed = Pick<Timers, 'due' | 'groupName'>;

/** Returns the alarms of one agent, by its ID. Metrics of relays and of `evict` are in the agent's own log and metrics. */
export function agentAlarmSpecs(agent: string, timers: Timed): readonly AlarmSpec[] {
  const { queue, deadLetters } = timers.due;
  const subject = `agent ${agent}`;
  return [
    {
      title: 'Agent silent',
      of: subject,
      ...CRITICAL,
      sentence: `An agent has not emptied its queue for ${SILENT_MINUTES} minutes. Either it does not run, so nothing is evicted in its cluster, or it is overloaded.`,
      metric: emptyReceives(queue),
      below: true,
      lasting: { points: 1, outOf: 1, period: Duration.minutes(SILENT_MINUTES) },
      whenMissing: TreatMissingData.BREACHING,
    },
    { ...deadLetterAlarm(deadLetters), of: subject },
    { ...dueAlarm(timers), of: subject },
    { ...droppedAlarm(timers), of: subject },
  ];
}

function clusterAlarms({ config, relay }: AlarmedProps): readonly AlarmSpec[] {
  const own = ownMetrics(config.name);
  return [
    ...(relay ? relayAlarms(relay, config) : []),
    {
      ...conditionAlarm('lease-expired'),
      metric: own.unwatchedClusters,
      lasting: SOME_MINUTES,
      whenMissing: TreatMissingData.BREACHING,
    },
    { ...conditionAlarm('disconnected'), metric: own.lastContactAge, threshold: DISCONNECTED_SECONDS },
    { ...conditionAlarm('no-eviction-controller'), metric: own.nobodyEvicts, lasting: SOME_MINUTES },
    { ...conditionAlarm('guard-tripped'), metric: own.guardTrips },
    { ...conditionAlarm('heartbeat-suspended'), metric: own.takeoversWithheld },
    {
      title: 'Deltas rejected',
      ...CRITICAL,
      sentence: 'A queue rejects a delta of a node permanently, so pods of the node are not evicted.',
      metric: own.rejectedDeltas,
    },
    { ...conditionAlarm('queue-failing'), metric: own.unsentDeltas, lasting: SOME_MINUTES },
    {
      ...conditionAlarm('clocks-differ'),
      // Evictions are held only beyond 30 s.
      severity: 'warning',
      sentence: `The clock of an API server differs by more than ${MAX_SKEW_SECONDS} s, so deadlines may be off by as much.`,
      metric: own.skew,
      threshold: MAX_SKEW_SECONDS,
      lasting: SOME_MINUTES,
    },
    {
      title: 'Relay over capacity',
      sentence:
        'A relay exceeds its capacity because no other relay is available. It may become slow, or run out of memory.',
      metric: own.overBudget,
      lasting: LASTING,
    },
  ];
}

const relayAlarms = ({ service }: FargateRelay, { relayCount }: Config): readonly AlarmSpec[] => [
  // Only this alarm detects a standby that never starts.
  {
    title: 'Relays missing',
    sentence: `Fewer than ${relayCount} relays run, so too few are on standby: tasks do not start, or fail repeatedly.`,
    metric: runningTasks(service),
    threshold: relayCount,
    below: true,
    lasting: HALF_THE_TIME,
    whenMissing: TreatMissingData.BREACHING,
  },
  {
    title: 'Relay memory low',
    sentence: `A relay uses ${FULL_PERCENT}% of its memory or more. If it runs out, ECS replaces it, and its clusters move to another relay.`,
    metric: memoryUtilization(service),
    threshold: FULL_PERCENT,
    lasting: LASTING,
  },
];

function evictionAlarms({ config }: AlarmedProps): readonly AlarmSpec[] {
  const own = ownMetrics(config.name);
  return [
    {
      ...conditionAlarm('delayed'),
      sentence: `Pods were evicted more than ${LATE_SECONDS} s after their deadline.`,
      metric: own.late(Stats.MAXIMUM),
      threshold: LATE_SECONDS,
    },
    { ...conditionAlarm('api-server-unreachable'), metric: own.outOfReach, lasting: AT_EACH_TRY },
    {
      title: 'Eviction requests failing',
      sentence:
        'An API server repeatedly rejects requests of evict, or does not answer them. They are retried until the giveUpAfter of the policy.',
      metric: own.refusals,
      lasting: AT_EACH_TRY,
    },
    { ...conditionAlarm('failed'), metric: own.givenUp },
    { ...conditionAlarm('stuck-terminating'), metric: own.stuckPods, lasting: LASTING },
    // Two regions may manage a cluster on purpose.
    { ...conditionAlarm('conflicting-installation'), severity: 'warning', metric: own.rivals },
  ];
}

function queueAlarms({ config, deltas, timers, functions }: AlarmedProps): readonly AlarmSpec[] {
  const ofDeltas = [deltas.nodes, deltas.pods];
  const deadLetters = [...ofDeltas, timers.due].map((each) => each.deadLetters);
  return [
    ...[...deadLetters, functions.expiryDeadLetters].map(deadLetterAlarm),
    ...ofDeltas.map((each) => ({ ...oldestAlarm(each, OLDEST_DELTA_SECONDS), ...CRITICAL })),
    dueAlarm(timers),
    {
      title: 'Due messages not processed',
      ...CRITICAL,
      sentence:
        'Due messages have waited in evictions-due for five minutes without a break. Evictions are delayed: evict does not run, or has too little concurrency.',
      metric: neverFewerWaiting(timers.due.queue),
      lasting: MINUTES_ON_END,
    },
    {
      title: 'Messages failing repeatedly',
      sentence:
        'Messages of evictions-due fail although they were received three times or more. The age of the oldest message does not count them.',
      metric: ownMetrics(config.name).messagesFailing,
      lasting: AT_EACH_TRY,
    },
  ];
}

const deadLetterAlarm = ({ name, queue }: DeadLetterQueue): AlarmSpec => ({
  ...conditionAlarm('dead-letters'),
  of: name,
  metric: waiting(queue),
});

const oldestAlarm = ({ spec, queue }: ServiceQueue, threshold: number): AlarmSpec => ({
  title: 'Queue backlog',
  of: spec.name,
  sentence: 'The consumer of this queue fails, is throttled, or has too little concurrency.',
  metric: oldest(queue),
  threshold,
  lasting: SOME_MINUTES,
});

const dueAlarm = ({ due }: Timed): AlarmSpec => oldestAlarm(due, OLDEST_DUE_SECONDS);

const droppedAlarm = (timers: Timed): AlarmSpec => ({
  title: 'Schedules dropped',
  sentence:
    'EventBridge Scheduler could not send to evictions-due for an hour. The next resync, within ten minutes, evaluates those evictions.',
  metric: scheduler(timers, 'InvocationDroppedCount'),
});

function platformAlarms({ functions, state, timers }: AlarmedProps): readonly AlarmSpec[] {
  const kinds = ['Read', 'Write'] as const;
  return [
    ...functions.all.flatMap((fn) => [
      {
        title: 'Function errors',
        of: fn.name,
        sentence: 'Invocations crash or time out. SQS redelivers the messages of failed invocations.',
        metric: errors(fn),
        lasting: NOW_AND_THEN,
      },
      {
        title: 'Functions throttled',
        of: fn.name,
        sentence: 'The account has too little Lambda concurrency.',
        metric: throttles(fn),
        lasting: NOW_AND_THEN,
      },
      {
        title: 'Function stopped as loop',
        of: fn.name,
        sentence:
          'Lambda treats a chain of invocations as an unwanted loop, and drops the next one. Retried evictions end there.',
        metric: droppedAsLoops(fn),
      },
    ]),
    ...kinds.flatMap((kind) => [
      {
        title: 'Table throttled',
        of: `${kind.toLowerCase()}s`,
        sentence: 'DynamoDB throttles requests. They are retried later.',
        metric: tableThrottles(state, kind),
        lasting: NOW_AND_THEN,
      },
      {
        title: 'Table throttled',
        of: `${kind.toLowerCase()}s of its index`,
        sentence:
          'DynamoDB throttles requests to the index. While it throttles writes of the index, it also throttles those of the table.',
        metric: indexThrottles(state, kind),
        lasting: NOW_AND_THEN,
      },
    ]),
    droppedAlarm(timers),
    {
      title: 'Stream delayed',
      sentence: `A record of the table's stream reached expiry ${OLDEST_RECORD_MS / 60_000} minutes late or more. Missed evictions are recovered late, and after a day never.`,
      metric: recordAge(functions.expiry),
      threshold: OLDEST_RECORD_MS,
    },
    {
      title: 'Stream not read',
      sentence: `Lambda has not polled the table's stream for ${UNREAD_MINUTES} minutes: the event source of expiry is disabled or missing. Missed evictions are not recovered.`,
      metric: streamPolls(functions.expiryStreamUuid),
      below: true,
      lasting: { points: 1, outOf: 1, period: Duration.minutes(UNREAD_MINUTES) },
      whenMissing: TreatMissingData.BREACHING,
    },
  ];
}
