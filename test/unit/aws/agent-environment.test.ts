import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agentEnvironment, EnvironmentError, readEnvironment } from '#shared/aws/environment.ts';

const GOOD = {
  AGENT: 'edge-1',
  CLUSTER: 'closed',
  TABLE_NAME: 'tw',
  HISTORY_DAYS: '7',
  NODE_DELTAS_URL: 'https://sqs.eu-west-1.amazonaws.com/123456789012/tw-node-deltas.fifo',
  POD_DELTAS_URL: 'https://sqs.eu-west-1.amazonaws.com/123456789012/tw-pod-deltas.fifo',
  EVICTIONS_DUE_URL: 'https://sqs.eu-west-1.amazonaws.com/123456789012/tw-agent-edge-1-evictions-due',
  EVICTIONS_DUE_ARN: 'arn:aws:sqs:eu-west-1:123456789012:tw-agent-edge-1-evictions-due',
  SCHEDULE_GROUP_NAME: 'tw-agent-edge-1',
  SCHEDULE_ROLE_ARN: 'arn:aws:iam::123456789012:role/tw-agent-edge-1-schedules-eu-west-1',
  DEAD_LETTER_QUEUE_URL: 'https://sqs.eu-west-1.amazonaws.com/123456789012/tw-agent-edge-1-evictions-due-dlq',
  COMPARISON_OPERATORS: 'false',
  INSTALLATION_NAME: 'tw.eu-west-1.123456789012',
};

test("reads the environment of the agent's stack and serves probes on the port of the chart", () => {
  assert.deepEqual(readEnvironment(agentEnvironment, GOOD), {
    ...GOOD,
    HISTORY_DAYS: 7,
    COMPARISON_OPERATORS: false,
    PROBE_HOST: '0.0.0.0',
    PROBE_PORT: 8080,
  });
});

test("rejects a missing variable and a cluster name that the agent's permissions can't express", () => {
  const refused = (change: Readonly<Record<string, string | undefined>>, message: RegExp) =>
    assert.throws(
      () => readEnvironment(agentEnvironment, { ...GOOD, ...change }),
      (error) => error instanceof EnvironmentError && message.test(error.message),
    );
  for (const name of Object.keys(GOOD))
    refused({ [name]: undefined }, new RegExp(`variable ${name} is not set`));
  refused({ AGENT: 'Edge' }, /variable AGENT cannot be used \(must be like edge-1/);
  refused({ CLUSTER: 'prod*' }, /variable CLUSTER cannot be used \(must not have \*/);
});
