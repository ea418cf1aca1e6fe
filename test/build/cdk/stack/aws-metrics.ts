/** A metric that an AWS service writes by itself, under exactly these dimensions. */
interface AwsMetric {
  readonly dimensions: readonly string[];
  readonly statistics: readonly string[];
}

/** What a service writes, as far as the stack reads it, and the page of AWS that says so (read in November 2026). */
interface AwsNamespace {
  readonly source: string;
  readonly metrics: Readonly<Record<string, readonly AwsMetric[]>>;
}

const byQueue: readonly AwsMetric[] = [
  { dimensions: ['QueueName'], statistics: ['Average', 'Minimum', 'Maximum', 'Sum', 'SampleCount'] },
];
const byFunction = (...statistics: readonly string[]): readonly AwsMetric[] => [
  { dimensions: ['FunctionName'], statistics },
];
const ofTable: AwsMetric = { dimensions: ['TableName'], statistics: ['Sum', 'SampleCount'] };
/** What the table's own metric does not count. */
const ofIndex: AwsMetric = {
  dimensions: ['GlobalSecondaryIndexName', 'TableName'],
  statistics: ['Sum', 'SampleCount'],
};
const byScheduleGroup: readonly AwsMetric[] = [{ dimensions: ['ScheduleGroup'], statistics: ['Sum'] }];

/**
 * All metrics of AWS that alarms and dashboard may read. An alarm on a metric with a dimension too few or too many is
 * never refused and never rings.
 */
export const AWS_METRICS: Readonly<Record<string, AwsNamespace>> = {
  'AWS/SQS': {
    source:
      'https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html',
    metrics: {
      // Once a minute while the queue holds anything, or was called within six hours.
      ApproximateNumberOfMessagesVisible: byQueue,
      ApproximateAgeOfOldestMessage: byQueue,
      NumberOfEmptyReceives: byQueue,
    },
  },
  'AWS/Lambda': {
    source: 'https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html',
    metrics: {
      Invocations: byFunction('Sum'),
      Errors: byFunction('Sum'),
      Throttles: byFunction('Sum'),
      // Only where a function does not allow loops.
      RecursiveInvocationsDropped: byFunction('Sum'),
      // Of a stream's records, when the function gets them.
      IteratorAge: byFunction('Average', 'Maximum'),
      Duration: byFunction('Average', 'Maximum', 'p99'),
    },
  },
  'AWS/ECS': {
    source: 'https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service_utilization.html',
    metrics: {
      // One sample a minute of each task that runs.
      CPUUtilization: [{ dimensions: ['ClusterName', 'ServiceName'], statistics: ['SampleCount'] }],
    },
  },
  'AWS/DynamoDB': {
    source: 'https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html',
    metrics: {
      ReadThrottleEvents: [ofTable, ofIndex],
      WriteThrottleEvents: [ofTable, ofIndex],
      ConsumedReadCapacityUnits: [{ ...ofTable, statistics: ['Sum', 'Average', 'Minimum', 'Maximum'] }],
      ConsumedWriteCapacityUnits: [{ ...ofTable, statistics: ['Sum', 'Average', 'Minimum', 'Maximum'] }],
    },
  },
  'AWS/Scheduler': {
    source: 'https://docs.aws.amazon.com/scheduler/latest/UserGuide/monitoring-cloudwatch.html',
    metrics: {
      InvocationAttemptCount: byScheduleGroup,
      TargetErrorThrottledCount: byScheduleGroup,
      // When the retry policy of a schedule is exhausted, and not before.
      InvocationDroppedCount: byScheduleGroup,
    },
  },
};
