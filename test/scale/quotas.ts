/** A limit that AWS or Kubernetes sets, and the page that says so. */
export interface Quota {
  readonly value: number;
  readonly source: string;
}

const AWS = 'https://docs.aws.amazon.com';
const sqs = `${AWS}/AWSSimpleQueueService/latest/SQSDeveloperGuide`;
const dynamoDb = `${AWS}/amazondynamodb/latest/developerguide`;

/** When the pages were read that {@link QUOTAS} name. */
export const LOOKED_UP_ON = '2026-11-22';

/** Defaults in a large region (us-east-1, eu-west-1); most can be raised on request, and small regions have less. */
export const QUOTAS = {
  /** Calls a second of each action on a FIFO queue in high-throughput mode; 2,400 in the smallest regions. */
  fifoCalls: { value: 70_000, source: `${sqs}/quotas-messages.html` },
  /** Calls a second of each action for one message group. */
  fifoGroupCalls: { value: 300, source: `${sqs}/high-throughput-fifo.html` },
  /** Messages of a FIFO queue that were received and not deleted. */
  fifoInFlight: { value: 120_000, source: `${sqs}/quotas-fifo.html` },
  /** Messages of a standard queue, likewise. */
  standardInFlight: { value: 120_000, source: `${sqs}/quotas-queues.html` },
  /** Write units a second of a new table on demand, and read units. */
  newTableWrites: { value: 4_000, source: `${dynamoDb}/warm-throughput-scenarios.html` },
  newTableReads: { value: 12_000, source: `${dynamoDb}/warm-throughput-scenarios.html` },
  /** Of any table on demand, and of each index. */
  tableUnits: { value: 40_000, source: `${dynamoDb}/ServiceQuotas.html` },
  /** Of one partition, and so of one key; never more. */
  partitionWrites: { value: 1_000, source: `${dynamoDb}/bp-partition-key-design.html` },
  partitionReads: { value: 3_000, source: `${dynamoDb}/bp-partition-key-design.html` },
  /** Invocations at a time, of all functions of an account in a region. */
  lambdaConcurrency: { value: 1_000, source: `${AWS}/lambda/latest/dg/gettingstarted-limits.html` },
  /** Batches of a queue that are handled at a time. */
  eventSourceConcurrency: { value: 1_250, source: `${AWS}/lambda/latest/dg/services-sqs-scaling.html` },
  /** By how many that grows in a minute. */
  eventSourceGrowth: { value: 300, source: `${AWS}/lambda/latest/dg/services-sqs-scaling.html` },
  /** CreateSchedule a second; 250 in small regions. */
  createSchedule: { value: 5_000, source: `${AWS}/scheduler/latest/UserGuide/scheduler-quotas.html` },
  /** Schedules that fire in a second. */
  schedulesFired: { value: 1_000, source: `${AWS}/scheduler/latest/UserGuide/scheduler-quotas.html` },
  schedules: { value: 10_000_000, source: `${AWS}/scheduler/latest/UserGuide/scheduler-quotas.html` },
  /** PutEvents a second. */
  putEvents: { value: 10_000, source: `${AWS}/eventbridge/latest/userguide/eb-quota.html` },
  /** Reads of secrets a second. */
  getSecretValue: {
    value: 10_000,
    source: `${AWS}/secretsmanager/latest/userguide/reference_limits.html`,
  },
  /** Files and sockets that a task on Fargate may have open. */
  openFiles: { value: 65_535, source: `${AWS}/AmazonECS/latest/APIReference/API_Ulimit.html` },
  /** Requests at a time that an API server takes by default: 400 that read and 200 that write. */
  apiServerInFlight: {
    value: 600,
    source: 'https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/',
  },
  /** Nodes a second that the node controller taints as unreachable in one zone of a cluster. */
  nodeEvictionRate: {
    value: 0.1,
    source: 'https://kubernetes.io/docs/concepts/architecture/nodes/#rate-limits-on-eviction',
  },
} as const satisfies Readonly<Record<string, Quota>>;

/** Memory and CPU that a task on Fargate can have: for each CPU in 1/1024 the least and most MiB, in steps of 1024 from there. */
export const FARGATE_SIZES = [
  { cpu: 256, memory: [512, 1_024, 2_048] },
  { cpu: 512, memory: [1_024, 2_048, 3_072, 4_096] },
  { cpu: 1_024, memory: Array.from({ length: 7 }, (_, gib) => (gib + 2) * 1_024) },
  { cpu: 2_048, memory: Array.from({ length: 13 }, (_, gib) => (gib + 4) * 1_024) },
] as const;
