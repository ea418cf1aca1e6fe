/** A metric that an AWS service writes by itself, under exactly these dimensions. */
interface AwsMetric {
  readonly dimensions: readonly string[];
  readonly statistics: readonly string[];
}

/** The metrics of a service that the stack reads, and the AWS page that documents them (read in November 2026). */
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
/** Metrics of the index, which the table's own metric does not include. */
const ofIndex: AwsMetric = {
  dimensions: ['GlobalSecondaryIndexName', 'TableName'],
  statistics: ['Sum', 'SampleCount'],
};
const byScheduleGroup: readonly AwsMetric[] = [{ dimensions: ['ScheduleGroup'], statistics: ['Sum'] }];

/**
 * All AWS metrics that alarms and dashboard may read. CloudWatch accepts an alarm on a metric with a dimension too few
 * or too many, but such an alarm never fires.
 */
export const AWS_METRICS: Readonly<Record<string, AwsNamespace>> = {
  'AWS/SQS': {
    source:
      'https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html',
    metrics: {
      // Written once a minute while the queue contains messages, or was called within six hours.
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
      // Written only where a function does not allow loops.
      RecursiveInvocationsDropped: byFunction('Sum'),
      // With metrics of the event source. A poll that finds no record counts as 0; a disabled event source writes nothing.
      PolledEventCount: [{ dimensions: ['EventSourceMappingUUID'], statistics: ['Sum', 'SampleCount'] }],
      // The age of a stream's records when the function receives them.
      IteratorAge: byFunction('Average', 'Maximum'),
      Duration: byFunction('Average', 'Maximum', 'p99'),
    },
  },
  'AWS/ECS': {
    source: 'https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service_utilization.html',
    metrics: {
      // One sample a minute for each running task.
      CPUUtilization: [{ dimensions: ['ClusterName', 'ServiceName'], statistics: ['SampleCount'] }],
      MemoryUtilization: [{ dimensions: ['ClusterName', 'ServiceName'], statistics: ['Maximum'] }],
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
      // Written when the retry policy of a schedule is exhausted, and not before.
      InvocationDroppedCount: byScheduleGroup,
    },
  },
};
