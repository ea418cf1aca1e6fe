import { Duration } from 'aws-cdk-lib';
import { type Metric, Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { MAX_DELAY_SECONDS } from '#shared/aws/limits.ts';
import type { Config } from './config.ts';
import type { Deltas } from './deltas.ts';
import type { Functions } from './functions.ts';
import {
  droppedAsLoops,
  emptyReceives,
  errors,
  indexThrottles,
  neverFewerWaiting,
  oldest,
  ownMetrics,
  recordAge,
  runningTasks,
  scheduler,
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

/** Fires immediately, because a single occurrence is a failure. */
const ONCE: Lasting = { points: 1, outOf: 1 };
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
export const LATE_SECONDS = 60;
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
/** An agent polls continuously: no message for this long means that more evictions are due than it can carry out. */
export const SILENT_MINUTES = 15;

export interface AlarmSpec {
  readonly id: string;
  /** The heading in docs/how-to/runbooks.md, which describes the meaning and the remediation. */
  readonly title: string;
  /** The resource that the alarm is for, for example a queue or a function. */
  readonly of?: string;
  /** The description in one sentence. */
  readonly sentence: string;
  readonly metric: Metric;
  /** The alarm fires at or above this value, */
  readonly threshold: number;
  /** or, with this property, below the value. */
  readonly below?: true;
  readonly lasting: Lasting;
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

/** A part that has a queue of due messages, and schedules. */
type Timed = Pick<Timers, 'due' | 'groupName'>;

/** Returns the alarms of one agent, by its ID. Metrics of relays and of `evict` are in the agent's own log and metrics. */
export function agentAlarmSpecs(agent: string, timers: Timed): readonly AlarmSpec[] {
  const { queue, deadLetters } = timers.due;
  const subject = `agent ${agent}`;
  return [
    {
      id: 'Silent',
      title: 'Agent silent',
      of: subject,
      sentence: `An agent has not emptied its queue for ${SILENT_MINUTES} minutes. Either it does not run, so nothing is evicted in its cluster, or it is overloaded.`,
      metric: emptyReceives(queue),
      threshold: 1,
      below: true,
      lasting: { points: 1, outOf: 1, period: Duration.minutes(SILENT_MINUTES) },
      whenMissing: TreatMissingData.BREACHING,
    },
    { ...deadLetterAlarm(deadLetters), id: 'DeadLetters', of: subject },
    { ...dueAlarm(timers), id: 'Oldest', of: subject },
    { ...droppedAlarm(timers), of: subject },
  ];
}

function clusterAlarms({ config, relay }: AlarmedProps): readonly AlarmSpec[] {
  const own = ownMetrics(config.name);
  return [
    ...(relay ? [missingRelays(relay, config)] : []),
    {
      id: 'UnwatchedClusters',
      title: 'Cluster without relay',
      sentence:
        'No relay holds the lease of a registered cluster, so its taints are not noticed; timers continue. Or the function heartbeat fails.',
      metric: own.unwatchedClusters,
      threshold: 1,
      lasting: SOME_MINUTES,
      whenMissing: TreatMissingData.BREACHING,
    },
    {
      id: 'UnheardClusters',
      title: 'Cluster unreachable',
      sentence: `No relay has had contact with a registered cluster for ${DISCONNECTED_SECONDS} s, so its taints are not noticed; timers continue.`,
      metric: own.lastContactAge,
      threshold: DISCONNECTED_SECONDS,
      lasting: ONCE,
    },
    {
      id: 'NobodyEvicts',
      title: 'No eviction controller',
      sentence:
        'Pods are more than ten minutes overdue. The built-in controller of their cluster does not evict, and the policy forbids Taintward to evict.',
      metric: own.nobodyEvicts,
      threshold: 1,
      lasting: SOME_MINUTES,
    },
    {
      id: 'GuardTripped',
      title: 'Guard tripped',
      sentence:
        'Many nodes of a cluster or zone are down, or have custom taints. This may be a mistake, so their pods are not evicted.',
      metric: own.guardTrips,
      threshold: 1,
      lasting: ONCE,
    },
    {
      id: 'TakeoverWithheld',
      title: 'Takeover heartbeat suspended',
      sentence:
        'The takeover heartbeat of a cluster is suspended. After its timeout, the built-in controller evicts there.',
      metric: own.takeoversWithheld,
      threshold: 1,
      lasting: ONCE,
    },
    {
      id: 'RefusedDeltas',
      title: 'Deltas rejected',
      sentence: 'A queue rejects a delta of a node permanently, so pods of the node are not evicted.',
      metric: own.rejectedDeltas,
      threshold: 1,
      lasting: ONCE,
    },
    {
      id: 'UnsentDeltas',
      title: 'Delta sending failing',
      sentence: 'Relays fail to send deltas to a queue, so no new eviction is scheduled; timers continue.',
      metric: own.unsentDeltas,
      threshold: 1,
      lasting: SOME_MINUTES,
    },
    {
      id: 'ClockSkew',
      title: 'Clock skew',
      sentence: `The clock of an API server differs by more than ${MAX_SKEW_SECONDS} s, so deadlines may be off by as much.`,
      metric: own.skew,
      threshold: MAX_SKEW_SECONDS,
      lasting: SOME_MINUTES,
    },
    {
      id: 'OverBudget',
      title: 'Relay over capacity',
      sentence:
        'A relay exceeds its capacity because no other relay is available. It may become slow, or run out of memory.',
      metric: own.overBudget,
      threshold: 1,
      lasting: LASTING,
    },
  ];
}

/** Only this alarm detects a standby that never starts. */
const missingRelays = ({ service }: FargateRelay, { relayCount }: Config): AlarmSpec => ({
  id: 'MissingRelays',
  title: 'Relays missing',
  sentence: `Fewer than ${relayCount} relays run, so too few are on standby: tasks do not start, or fail repeatedly.`,
  metric: runningTasks(service),
  threshold: relayCount,
  below: true,
  lasting: HALF_THE_TIME,
  whenMissing: TreatMissingData.BREACHING,
});

function evictionAlarms({ config }: AlarmedProps): readonly AlarmSpec[] {
  const own = ownMetrics(config.name);
  return [
    {
      id: 'LateEvictions',
      title: 'Evictions delayed',
      sentence: `Pods were evicted more than ${LATE_SECONDS} s after their deadline.`,
      metric: own.late(Stats.MAXIMUM),
      threshold: LATE_SECONDS,
      lasting: ONCE,
    },
    {
      id: 'ApiServersSilent',
      title: 'API server unreachable',
      sentence: 'An API server did not answer several calls of evict in a row, so its due evictions wait.',
      metric: own.outOfReach,
      threshold: 1,
      lasting: AT_EACH_TRY,
    },
    {
      id: 'ApiRefusals',
      title: 'Eviction requests failing',
      sentence:
        'An API server repeatedly rejects requests of evict, or does not answer them. They are retried until the giveUpAfter of the policy.',
      metric: own.refusals,
      threshold: 1,
      lasting: AT_EACH_TRY,
    },
    {
      id: 'GivenUp',
      title: 'Evictions failed',
      sentence:
        'Evictions failed for the whole giveUpAfter of their policy, or their cluster was removed from the registry.',
      metric: own.givenUp,
      threshold: 1,
      lasting: ONCE,
    },
    {
      id: 'StuckPods',
      title: 'Pods stuck terminating',
      sentence: 'Evicted pods are stuck terminating for more than a minute after their grace period.',
      metric: own.stuckPods,
      threshold: 1,
      lasting: LASTING,
    },
    {
      id: 'SharedClusters',
      title: 'Conflicting installation',
      sentence:
        'Another installation evicts in a cluster of this one, by its own rules. It ignores the holds of this one.',
      metric: own.rivals,
      threshold: 1,
      lasting: ONCE,
    },
  ];
}

function queueAlarms({ config, deltas, timers, functions }: AlarmedProps): readonly AlarmSpec[] {
  const ofDeltas = [deltas.nodes, deltas.pods];
  const deadLetters = [...ofDeltas, timers.due].map((each) => each.deadLetters);
  return [
    ...[...deadLetters, functions.expiryDeadLetters].map(deadLetterAlarm),
    ...ofDeltas.map((each) => oldestAlarm(each, OLDEST_DELTA_SECONDS)),
    dueAlarm(timers),
    {
      id: 'Untaken',
      title: 'Due messages not processed',
      sentence:
        'Due messages have waited in evictions-due for five minutes without a break. Evictions are delayed: evict does not run, or has too little concurrency.',
      metric: neverFewerWaiting(timers.due.queue),
      threshold: 1,
      lasting: MINUTES_ON_END,
    },
    {
      id: 'MessagesFailing',
      title: 'Messages failing repeatedly',
      sentence:
        'Messages of evictions-due fail although they were received three times or more. The age of the oldest message does not count them.',
      metric: ownMetrics(config.name).messagesFailing,
      threshold: 1,
      lasting: AT_EACH_TRY,
    },
  ];
}

const deadLetterAlarm = ({ name, queue }: DeadLetterQueue): AlarmSpec => ({
  id: `DeadLetters-${name}`,
  title: 'Dead letters',
  of: name,
  sentence: 'Messages could not be processed. A redrive is safe at any age.',
  metric: waiting(queue),
  threshold: 1,
  lasting: ONCE,
});

const oldestAlarm = ({ spec, queue }: ServiceQueue, threshold: number): AlarmSpec => ({
  id: `Oldest-${spec.name}`,
  title: 'Queue backlog',
  of: spec.name,
  sentence: 'The consumer of this queue fails, is throttled, or has too little concurrency.',
  metric: oldest(queue),
  threshold,
  lasting: SOME_MINUTES,
});

const dueAlarm = ({ due }: Timed): AlarmSpec => oldestAlarm(due, OLDEST_DUE_SECONDS);

const droppedAlarm = (timers: Timed): AlarmSpec => ({
  id: 'DroppedSchedules',
  title: 'Schedules dropped',
  sentence:
    'EventBridge Scheduler could not send to evictions-due for an hour. The next resync, within ten minutes, evaluates those evictions.',
  metric: scheduler(timers, 'InvocationDroppedCount'),
  threshold: 1,
  lasting: ONCE,
});

function platformAlarms({ functions, state, timers }: AlarmedProps): readonly AlarmSpec[] {
  const kinds = ['Read', 'Write'] as const;
  return [
    ...functions.all.flatMap((fn) => [
      {
        id: `Errors-${fn.name}`,
        title: 'Function errors',
        of: fn.name,
        sentence: 'Invocations crash or time out. SQS redelivers the messages of failed invocations.',
        metric: errors(fn),
        threshold: 1,
        lasting: NOW_AND_THEN,
      },
      {
        id: `Throttles-${fn.name}`,
        title: 'Functions throttled',
        of: fn.name,
        sentence: 'The account has too little Lambda concurrency.',
        metric: throttles(fn),
        threshold: 1,
        lasting: NOW_AND_THEN,
      },
      {
        id: `Loops-${fn.name}`,
        title: 'Function stopped as loop',
        of: fn.name,
        sentence:
          'Lambda treats a chain of invocations as an unwanted loop, and drops the next one. Retried evictions end there.',
        metric: droppedAsLoops(fn),
        threshold: 1,
        lasting: ONCE,
      },
    ]),
    ...kinds.flatMap((kind) => [
      {
        id: `${kind}Throttles`,
        title: 'Table throttled',
        of: `${kind.toLowerCase()}s`,
        sentence: 'DynamoDB throttles requests. They are retried later.',
        metric: tableThrottles(state, kind),
        threshold: 1,
        lasting: NOW_AND_THEN,
      },
      {
        id: `Index${kind}Throttles`,
        title: 'Table throttled',
        of: `${kind.toLowerCase()}s of its index`,
        sentence:
          'DynamoDB throttles requests to the index. While it throttles writes of the index, it also throttles those of the table.',
        metric: indexThrottles(state, kind),
        threshold: 1,
        lasting: NOW_AND_THEN,
      },
    ]),
    droppedAlarm(timers),
    {
      id: 'StreamBehind',
      title: 'Stream delayed',
      sentence: `A record of the table's stream reached expiry ${OLDEST_RECORD_MS / 60_000} minutes late or more. Missed evictions are recovered late, and after a day never.`,
      metric: recordAge(functions.expiry),
      threshold: OLDEST_RECORD_MS,
      lasting: ONCE,
    },
  ];
}
