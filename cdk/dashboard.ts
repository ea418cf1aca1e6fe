import { Duration } from 'aws-cdk-lib';
import {
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type IAlarm,
  type IWidget,
  LogQueryVisualizationType,
  LogQueryWidget,
  type MathExpression,
  type Metric,
  Stats,
  TextWidget,
} from 'aws-cdk-lib/aws-cloudwatch';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { LogEvent } from '#shared/telemetry/log-events.ts';
import { accountWideName } from './account-wide-name.ts';
import type { AlarmedProps } from './alarms.ts';
import {
  errors,
  indexThrottles,
  metricsByCluster,
  oldest,
  ownMetrics,
  scheduler,
  tableThrottles,
  waiting,
} from './metrics.ts';
import type { ServiceFunction } from './service-function.ts';

const EVENTS_BY_CLUSTER: readonly LogEvent[] = [
  'eviction.scheduled',
  'eviction.blocked',
  'eviction.held',
  'eviction.would-evict',
  'eviction.canceled',
  'pod.evicted',
  'eviction.failed',
];
const DONE: LogEvent = 'pod.evicted';
const RETRIED: LogEvent = 'eviction.retrying';

/**
 * The tables by cluster. They read the log and not metrics: metrics for each cluster would cost more than the rest of the
 * service.
 */
export const BY_CLUSTER_QUERIES: readonly { readonly title: string; readonly lines: readonly string[] }[] = [
  {
    title: 'Evictions by cluster and event',
    lines: [
      'fields cluster, event',
      `filter event in [${EVENTS_BY_CLUSTER.map((event) => `"${event}"`).join(', ')}]`,
      'stats count(*) as evictions by cluster, event',
      'sort cluster asc, event asc',
    ],
  },
  {
    title: 'Eviction delay by cluster (ms)',
    lines: [
      `filter event = "${DONE}"`,
      'stats count(*) as evictions, pct(delayMs, 50) as p50, pct(delayMs, 99) as p99, max(delayMs) as longest by cluster',
      'sort longest desc',
    ],
  },
  {
    title: 'Retries by cluster and node',
    lines: [
      `filter event = "${RETRIED}"`,
      'stats count(*) as retries, max(attempts) as consecutive, latest(error) as lastError by cluster, node',
      'sort retries desc',
    ],
  },
];

/** Widths and heights in grid units; a row has 24. */
const HALF = 12;
const THIRD = 8;
const HEIGHT = 6;

export interface ServiceDashboardProps extends AlarmedProps {
  readonly alarms: readonly IAlarm[];
}

/** The whole service on one page, in the order in which data travels. */
export class ServiceDashboard extends Construct {
  readonly name: string;

  constructor(scope: Construct, id: string, props: ServiceDashboardProps) {
    super(scope, id);
    this.name = accountWideName(this, props.config.name);
    new Dashboard(this, 'Dashboard', {
      dashboardName: this.name,
      defaultInterval: Duration.hours(3),
      widgets: [
        [
          new TextWidget({
            width: 24,
            height: 1,
            markdown: `# ${props.config.name}: NoExecute taint eviction`,
          }),
        ],
        [new AlarmStatusWidget({ title: 'Alarms', width: 24, height: 4, alarms: [...props.alarms] })],
        evictions(props),
        clusters(props),
        byCluster(props),
        ...(props.config.metricsByCluster ? graphsByCluster(props) : []),
        queues(props),
        functions(props),
        platform(props),
      ],
    });
  }
}

function evictions({ config }: ServiceDashboardProps): IWidget[] {
  const own = ownMetrics(config.name);
  return [
    graph('Evictions a minute', { evicted: own.podsDeleted }),
    graph('Seconds after the deadline', {
      p50: own.late('p50'),
      p99: own.late('p99'),
      longest: own.late(Stats.MAXIMUM),
    }),
    graph('Errors', {
      'eviction request errors': own.refusals,
      'unreachable API servers': own.outOfReach,
      'retried nodes': own.retries,
      'failed evictions': own.givenUp,
      'messages failing repeatedly': own.messagesFailing,
      'pods stuck terminating': own.stuckPods,
    }),
  ];
}

function clusters({ config }: ServiceDashboardProps): IWidget[] {
  const own = ownMetrics(config.name);
  const trouble = {
    'clusters without a relay': own.unwatchedClusters,
    'clusters without an eviction controller': own.nobodyEvicts,
    'guard trips': own.guardTrips,
    'suspended takeover heartbeats': own.takeoversWithheld,
    'conflicting installations': own.rivals,
    'rejected deltas': own.rejectedDeltas,
    'failed attempts to send a delta': own.unsentDeltas,
    'nodes over the capacity of a relay': own.overBudget,
  };
  const seconds = { 'longest time since last contact': own.lastContactAge, 'clock skew': own.skew };
  return [graph('Clusters and relays', trouble, HALF), graph('Clusters, seconds', seconds, HALF)];
}

function byCluster({ functions: { all } }: ServiceDashboardProps): IWidget[] {
  const telling = all.filter(({ name }) => ['node-delta', 'pod-delta', 'evict'].includes(name));
  return BY_CLUSTER_QUERIES.map(
    ({ title, lines }) =>
      new LogQueryWidget({
        title,
        logGroupNames: telling.map(({ lambda }) => lambda.logGroup.logGroupName),
        view: LogQueryVisualizationType.TABLE,
        queryLines: [...lines],
        width: THIRD,
        height: HEIGHT,
      }),
  );
}

function graphsByCluster({ config }: ServiceDashboardProps): IWidget[][] {
  const byCluster = metricsByCluster(config.name);
  const lines = (title: string, found: MathExpression) =>
    new GraphWidget({ title: `${title}, by cluster`, left: [found], width: THIRD, height: HEIGHT });
  return [
    [
      lines('Evictions a minute', byCluster.podsDeleted),
      lines('Seconds after the deadline, p99', byCluster.late),
      lines('Failed evictions', byCluster.givenUp),
    ],
    [
      lines('Eviction request errors', byCluster.refusals),
      lines('Unreachable API servers', byCluster.outOfReach),
      lines('Clock skew, s', byCluster.skew),
    ],
  ];
}

function queues({ deltas, timers, functions: { expiryDeadLetters } }: ServiceDashboardProps): IWidget[] {
  const all = [deltas.nodes, deltas.pods, timers.due];
  const dead = [...all.map(({ deadLetters }) => deadLetters), expiryDeadLetters];
  const queueGraph = (title: string, metric: (queue: Queue) => Metric) =>
    graph(title, Object.fromEntries(all.map(({ spec, queue }) => [spec.name, metric(queue)])));
  return [
    queueGraph('Messages waiting', waiting),
    queueGraph('Age of the oldest message, seconds', oldest),
    graph('Dead letters', Object.fromEntries(dead.map(({ name, queue }) => [name, waiting(queue)]))),
  ];
}

function functions({ functions: { all } }: ServiceDashboardProps): IWidget[] {
  const functionGraph = (title: string, metric: (fn: ServiceFunction) => Metric) =>
    graph(title, Object.fromEntries(all.map((fn) => [fn.name, metric(fn)])));
  return [
    functionGraph('Invocations', ({ lambda }) => lambda.metricInvocations()),
    functionGraph('p99 of the duration, ms', ({ lambda }) => lambda.metricDuration({ statistic: 'p99' })),
    functionGraph('Crashed or timed out', errors),
  ];
}

function platform({ state, timers }: ServiceDashboardProps): IWidget[] {
  return [
    graph('Table: units used', {
      read: state.table.metricConsumedReadCapacityUnits(),
      written: state.table.metricConsumedWriteCapacityUnits(),
    }),
    graph('Table: throttled requests', {
      reads: tableThrottles(state, 'Read'),
      writes: tableThrottles(state, 'Write'),
      'reads of its index': indexThrottles(state, 'Read'),
      'writes of its index': indexThrottles(state, 'Write'),
    }),
    graph('Schedules', {
      fired: scheduler(timers, 'InvocationAttemptCount'),
      throttled: scheduler(timers, 'TargetErrorThrottledCount'),
      dropped: scheduler(timers, 'InvocationDroppedCount'),
    }),
  ];
}

function graph(title: string, metrics: Readonly<Record<string, Metric>>, width: number = THIRD): GraphWidget {
  const left = Object.entries(metrics).map(([label, metric]) => metric.with({ label }));
  return new GraphWidget({ title, left, width, height: HEIGHT });
}
