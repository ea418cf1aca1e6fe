/**
 * US dollars in us-east-1, November 2026, beyond free tiers, as AWS lists them: aws.amazon.com/SERVICE/pricing for sqs, dynamodb,
 * lambda, eventbridge, cloudwatch, fargate, vpc, guardduty and secrets-manager.
 */
export const PRICES = {
  sqsFifoPerMillion: 0.5,
  sqsStandardPerMillion: 0.4,
  dynamoDbWritesPerMillion: 0.625,
  dynamoDbReadsPerMillion: 0.125,
  lambdaRequestsPerMillion: 0.2,
  lambdaArmPerGbSecond: 0.0000133334,
  schedulerPerMillion: 1,
  logsPerGb: 0.5,
  /** Audit events of EKS clusters, the first 100 million of a month. */
  guardDutyPerMillion: 1.6,
  /** The price per month. */
  alarm: 0.1,
  /** The price per month of an alarm on alarms. */
  compositeAlarm: 0.5,
  /** The price per month; three per account are free. */
  dashboard: 3,
  /** The price of a month in which the metric has a value every hour; less in proportion. */
  metric: 0.3,
  fargateArmVcpuHour: 0.03238,
  fargateArmGbHour: 0.00356,
  publicAddressHour: 0.005,
  natGatewayHour: 0.045,
  natGatewayPerGb: 0.045,
} as const;

export const HOURS_A_MONTH = 730;
export const SECONDS_A_MONTH = HOURS_A_MONTH * 3600;

export const perMillion = (count: number, dollars: number): number => (count * dollars) / 1_000_000;
