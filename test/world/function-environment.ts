/**
 * Returns the environment in which the stack runs its functions, without the AWS SDK's. `queueUrl`: returns the URL of
 * a queue of the account 000000000000.
 */
export const functionEnvironment = (queueUrl: (name: string) => string) => ({
  TABLE_NAME: 'taintward',
  HISTORY_DAYS: '7',
  EVICTIONS_DUE_URL: queueUrl('evictions-due'),
  EVICTIONS_DUE_ARN: 'arn:aws:sqs:us-east-1:000000000000:evictions-due',
  DEAD_LETTER_QUEUE_URL: queueUrl('dead-letters'),
  SCHEDULE_GROUP_NAME: 'taintward',
  SCHEDULE_ROLE_ARN: 'arn:aws:iam::000000000000:role/schedules',
  AGENT_PREFIX: 'taintward-agent-',
  INSTALLATION_NAME: 'taintward',
  COMPARISON_OPERATORS: 'false',
  METRIC_NAMESPACE: 'Taintward',
  METRICS_BY_CLUSTER: 'false',
  CLUSTER_GRANTS: '{"both":[],"relay":[],"evict":[]}',
});
