import { Alarm, ComparisonOperator, type IMetric, Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import { Construct } from 'constructs';
import { MAX_DELAY_SECONDS } from '#shared/queues/limits.ts';
import { alarmName } from '#shared/telemetry/alarm-name.ts';
import type { Config } from './config.ts';
import { ServiceDashboard } from './dashboard.ts';
import type { Deltas } from './deltas.ts';
import type { Functions } from './functions.ts';
import { errors, oldest, ownMetrics, scheduler, tableThrottles, throttles, waiting } from './metrics.ts';
import type { State } from './state.ts';
import type { Timers } from './timers.ts';

/** Minutes in a row that something must last before it is worth a call: it may heal by itself. */
const LASTING_MINUTES = 10;
/** Minutes in a row of what must not be: longer than a hand-over between relays, or one count that was missed. */
const SOME_MINUTES = 3;
/** Normally it is under a second; a minute late means that something is retried or throttled. */
const LATE_SECONDS = 60;
/** Clocks that are kept in step differ by milliseconds. */
const MAX_SKEW_SECONDS = 1;
/** A delta is handled at once; one that waits this long holds its node up. */
const OLDEST_DELTA_SECONDS = 300;
/** A message that waits for its moment may be this old, and then some. */
const OLDEST_DUE_SECONDS = MAX_DELAY_SECONDS + 600;

export interface MonitoringProps {
  readonly config: Config;
  readonly state: State;
  readonly deltas: Deltas;
  readonly timers: Timers;
  readonly functions: Functions;
}

interface AlarmSpec {
  readonly id: string;
  readonly name: string;
  /** What it means and what to do. */
  readonly says: string;
  readonly metric: IMetric;
  /** It rings at this value. */
  readonly threshold: number;
  /** For this many minutes in a row. */
  readonly minutes: number;
  /** Absent: no data is no news. */
  readonly whenMissing?: TreatMissingData;
}

/** What tells an operator that something is wrong, and where to look. */
export class Monitoring extends Construct {
  readonly dashboard: ServiceDashboard;
  readonly #props: MonitoringProps;
  readonly #topic: ITopic | undefined;

  constructor(scope: Construct, id: string, props: MonitoringProps) {
    super(scope, id);
    this.#props = props;
    const { alarmTopicArn } = props.config;
    this.#topic = alarmTopicArn === undefined ? undefined : Topic.fromTopicArn(this, 'Topic', alarmTopicArn);
    const alarms = [...this.#queueAlarms(), ...this.#serviceAlarms(), ...this.#platformAlarms()];
    this.dashboard = new ServiceDashboard(this, 'Dashboard', {
      ...props,
      alarms: alarms.map((alarm) => this.#alarm(alarm)),
    });
  }

  #queueAlarms(): readonly AlarmSpec[] {
    const { deltas, timers, functions } = this.#props;
    const queues = [deltas.nodes, deltas.pods, timers.due];
    const deadLetters = [...queues.map((each) => each.deadLetters), functions.expiryDeadLetters];
    return [
      ...deadLetters.map(({ name, queue }) => ({
        id: `DeadLetters-${name}`,
        name: `dead letters in ${name}`,
        says: 'Somebody gave up on these messages. Read the reason in their attributes or in the log, mend it, and redrive the queue: that is safe at any age.',
        metric: waiting(queue),
        threshold: 1,
        minutes: 1,
      })),
      ...queues.map(({ spec, queue }) => ({
        id: `Oldest-${spec.name}`,
        name: `messages wait in ${spec.name}`,
        says: 'Its function fails, is throttled, or has too little concurrency. See its log.',
        metric: oldest(queue),
        threshold: queue === timers.due.queue ? OLDEST_DUE_SECONDS : OLDEST_DELTA_SECONDS,
        minutes: SOME_MINUTES,
      })),
    ];
  }

  #serviceAlarms(): readonly AlarmSpec[] {
    const own = ownMetrics(this.#props.config.name);
    return [
      {
        id: 'UnwatchedClusters',
        name: 'clusters without a relay',
        says: 'No relay holds the lease of a registered cluster, so nobody notices its taints; timers go on. Start a relay, or see why it cannot reach the table. The log of heartbeat names the clusters.',
        metric: own.unwatchedClusters,
        threshold: 1,
        minutes: SOME_MINUTES,
        whenMissing: TreatMissingData.BREACHING,
      },
      {
        id: 'DeafClusters',
        name: 'clusters out of reach',
        says: 'A relay watches a registered cluster and has heard nothing from it for two minutes, so nobody notices its taints; timers go on. The log of heartbeat names the cluster and since when (cluster.deaf), that of the relay says why (relay.watch-failed): its network, its credentials, or its API server.',
        metric: own.deafClusters,
        threshold: 1,
        minutes: SOME_MINUTES,
      },
      {
        id: 'OverBudget',
        name: 'relays are over their budget',
        says: 'A relay follows more nodes than its memory is made for, because no other takes them: it may become slow, or run out of memory. Raise taintward:relayCount or taintward:relayMemoryMiB; start another relay of your own.',
        metric: own.overBudget,
        threshold: 1,
        minutes: LASTING_MINUTES,
      },
      {
        id: 'GuardTripped',
        name: 'guards hold evictions',
        says: 'So many nodes of a cluster, or of a zone, are down or were tainted by people that it may be a mistake, so their pods are not evicted. The log of the relay names cluster and scope (guard.tripped). See what is wrong with the nodes; should they really be gone, release the guard. It lets go by itself after five minutes with fewer than half as many.',
        metric: own.guardTrips,
        threshold: 1,
        minutes: 1,
      },
      {
        id: 'TakeoverWithheld',
        name: 'takeovers are not renewed',
        says: 'A cluster that is taken over is not told that Taintward evicts there, so its built-in controller begins again once the heartbeat has lapsed (90 s, unless set otherwise). The log of the relay names cluster and reason (takeover.withheld): policy paused or observing, no guard, taint keys not among the virtual ones, evictions overdue, clocks that differ, or rights that are missing.',
        metric: own.takeoversWithheld,
        threshold: 1,
        minutes: 1,
      },
      {
        id: 'RefusedDeltas',
        name: 'deltas are refused',
        says: 'A queue can never take what a relay tells of a node, so its pods are not evicted. The log of the relay says which node and why (relay.delta-refused): most likely its taints alone are larger than a message.',
        metric: own.refusedDeltas,
        threshold: 1,
        minutes: 1,
      },
      {
        id: 'LateEvictions',
        name: 'late evictions',
        says: `Pods were evicted more than ${LATE_SECONDS} s after they fell due. The log of evict says which (lateMs) and what was retried before.`,
        metric: own.late(Stats.MAXIMUM),
        threshold: LATE_SECONDS,
        minutes: 1,
      },
      {
        id: 'ApiRefusals',
        name: 'API servers refuse evictions',
        says: 'An API server keeps refusing, or does not answer, what evict asks. Nothing is lost: it is tried again for four days. The log of evict says which cluster and why.',
        metric: own.refusals,
        threshold: 1,
        minutes: LASTING_MINUTES,
      },
      {
        id: 'GivenUp',
        name: 'evictions are given up',
        says: 'Pods that must go were tried for four days, or their cluster is not registered any more. Their dead letters say which and why: once that is mended, redrive them; what is not registered needs to be registered again.',
        metric: own.givenUp,
        threshold: 1,
        minutes: 1,
      },
      {
        id: 'SharedClusters',
        name: 'clusters are shared',
        says: 'Another installation evicts in a cluster of this one, by rules of its own: what one holds back the other lets go. The log of evict names both (cluster.shared). End the other one, or remove the cluster from one of them.',
        metric: own.rivals,
        threshold: 1,
        minutes: 1,
      },
      {
        id: 'ClockSkew',
        name: 'clocks differ',
        says: `An API server's clock and that of evict differ by more than ${MAX_SKEW_SECONDS} s: countdowns may be that much off. See to the time synchronisation of the control plane.`,
        metric: own.skew,
        threshold: MAX_SKEW_SECONDS,
        minutes: SOME_MINUTES,
      },
    ];
  }

  #platformAlarms(): readonly AlarmSpec[] {
    const { functions, state, timers } = this.#props;
    return [
      ...functions.all.flatMap((fn) => [
        {
          id: `Errors-${fn.name}`,
          name: `${fn.name} fails`,
          says: 'Invocations crash or time out. What they were about comes again; the log of the function says why.',
          metric: errors(fn),
          threshold: 1,
          minutes: SOME_MINUTES,
        },
        {
          id: `Throttles-${fn.name}`,
          name: `${fn.name} is throttled`,
          says: "Raise the account's concurrent executions, or lower taintward:deltaConcurrency and taintward:evictConcurrency.",
          metric: throttles(fn),
          threshold: 1,
          minutes: SOME_MINUTES,
        },
      ]),
      ...(['Read', 'Write'] as const).map((kind) => ({
        id: `${kind}Throttles`,
        name: `the table throttles (${kind.toLowerCase()})`,
        says: "Requests are tried again, later. If it lasts, raise the account's quota for tables on demand.",
        metric: tableThrottles(state, kind),
        threshold: 1,
        minutes: SOME_MINUTES,
      })),
      {
        id: 'DroppedSchedules',
        name: 'schedules are dropped',
        says: "EventBridge Scheduler could not send to evictions-due. Those evictions happen when the next resync looks at them, some ten minutes late: see what keeps the schedules' role from sending.",
        metric: scheduler(timers, 'InvocationDroppedCount'),
        threshold: 1,
        minutes: 1,
      },
    ];
  }

  #alarm({ id, name, says, metric, threshold, minutes, whenMissing }: AlarmSpec): Alarm {
    const alarm = new Alarm(this, id, {
      alarmName: alarmName(this.#props.config.name, name),
      alarmDescription: says,
      metric,
      threshold,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: minutes,
      treatMissingData: whenMissing ?? TreatMissingData.NOT_BREACHING,
    });
    if (this.#topic) {
      const action = new SnsAction(this.#topic);
      alarm.addAlarmAction(action);
      alarm.addOkAction(action);
    }
    return alarm;
  }
}
