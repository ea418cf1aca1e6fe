import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type * as z from 'zod';
import {
  agentEnvironment,
  deltaEnvironment,
  EnvironmentError,
  evictEnvironment,
  readEnvironment,
} from '#shared/aws/environment.ts';

const url = 'https://sqs.us-east-1.amazonaws.com/q';
const GIVEN = {
  TABLE_NAME: 'taintward',
  HISTORY_DAYS: '7',
  SOURCE_QUEUE_URL: url,
  DEAD_LETTER_QUEUE_URL: url,
  EVICTIONS_DUE_URL: url,
  AGENT_PREFIX: 'taintward-agent-',
  SCHEDULE_GROUP_NAME: 'taintward',
  SCHEDULE_ROLE_ARN: 'arn:aws:iam::000000000000:role/schedules',
  COMPARISON_OPERATORS: 'false',
  METRIC_NAMESPACE: 'taintward',
  METRICS_BY_CLUSTER: 'false',
  INSTALLATION_NAME: 'taintward',
  CLUSTER_GRANTS: '{"both":[],"relay":[],"evict":[]}',
  AGENT: 'edge-1',
  CLUSTER: 'prod',
  NODE_DELTAS_URL: url,
  POD_DELTAS_URL: url,
};
const inAccount = (account: string) => ({
  ...GIVEN,
  EVICTIONS_DUE_ARN: `arn:aws:sqs:us-east-1:${account}:taintward-evictions-due`,
});

describe('a setting for LocalStack', () => {
  const readers: readonly (readonly [string, z.ZodType<{ ENDPOINT?: string }>])[] = [
    ['the functions of deltas', deltaEnvironment],
    ['evict', evictEnvironment],
    ['an agent', agentEnvironment],
  ];
  for (const [who, schema] of readers) {
    test(`is rejected by ${who} in a real account`, () => {
      assert.throws(
        () => readEnvironment(schema, { ...inAccount('123456789012'), ENDPOINT: 'localstack' }),
        (error) => {
          assert.ok(error instanceof EnvironmentError);
          const reason = 'localstack is for account 000000000000 alone, and this is account 123456789012';
          assert.ok(
            error.message.startsWith(`The environment variable ENDPOINT cannot be used (${reason}): `),
          );
          return true;
        },
      );
      assert.equal('ENDPOINT' in readEnvironment(schema, inAccount('123456789012')), false);
    });

    test(`is accepted by ${who} in the account of LocalStack`, () => {
      const read = readEnvironment(schema, { ...inAccount('000000000000'), ENDPOINT: 'localstack' });
      assert.equal(read.ENDPOINT, 'localstack');
    });
  }
});
