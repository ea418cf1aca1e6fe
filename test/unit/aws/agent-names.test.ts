import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  agentClusterSchema,
  agentDueUrl,
  agentNames,
  agentSchedules,
  agentsPrefix,
} from '#shared/aws/agent-names.ts';
import { agentIdSchema, clusterNameSchema } from '#shared/state/registry.ts';

const PREFIX = agentsPrefix('taintward');

test('names the resources of an agent by installation and ID, and IAM roles also by region', () => {
  assert.deepEqual(agentNames(PREFIX, 'edge-1', 'eu-west-1'), {
    prefix: 'taintward-agent-edge-1',
    dueQueue: 'taintward-agent-edge-1-evictions-due',
    dueDeadLetters: 'taintward-agent-edge-1-evictions-due-dlq',
    scheduleGroup: 'taintward-agent-edge-1',
    scheduleRole: 'taintward-agent-edge-1-schedules-eu-west-1',
    role: 'taintward-agent-edge-1-eu-west-1',
  });
});

test('places the queue of an agent beside the queue of the installation', () => {
  for (const [own, agents] of [
    [
      'https://sqs.eu-west-1.amazonaws.com/123456789012/taintward-evictions-due',
      'https://sqs.eu-west-1.amazonaws.com/123456789012/taintward-agent-edge-1-evictions-due',
    ],
    [
      'http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/taintward-evictions-due',
      'http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/taintward-agent-edge-1-evictions-due',
    ],
  ] as const) {
    assert.equal(agentDueUrl(own, PREFIX, 'edge-1'), agents);
  }
});

test('sends schedules of an agent to its queue, with its group and role, in the same partition, region and account', () => {
  assert.deepEqual(
    agentSchedules('arn:aws-cn:sqs:cn-north-1:123456789012:taintward-evictions-due', PREFIX, 'edge-1'),
    {
      dueQueueArn: 'arn:aws-cn:sqs:cn-north-1:123456789012:taintward-agent-edge-1-evictions-due',
      groupName: 'taintward-agent-edge-1',
      roleArn: 'arn:aws-cn:iam::123456789012:role/taintward-agent-edge-1-schedules-cn-north-1',
    },
  );
});

test('accepts only IDs that are valid in every name', () => {
  for (const id of ['a', 'edge-1', 'a'.repeat(21)]) assert.ok(agentIdSchema.safeParse(id).success, id);
  for (const id of ['', 'Edge', '1a', '-a', 'a_b', 'a.b', 'a'.repeat(22)])
    assert.ok(!agentIdSchema.safeParse(id).success, id);
});

test('rejects cluster names for an agent that are IAM patterns, begin like index keys, or exceed an SQS group ID', () => {
  for (const name of [
    'prod*',
    '*',
    'pro?',
    'a$',
    `\${aws:username}`,
    'TAINTED',
    'HISTORY',
    'c'.repeat(129),
  ]) {
    assert.ok(clusterNameSchema.safeParse(name).success, name);
    assert.ok(!agentClusterSchema.safeParse(name).success, name);
  }
  for (const name of ['prod', 'arn:aws:eks:eu-west-1:123456789012:cluster/prod', 'TAINTED-2', 'admin@prod'])
    assert.ok(agentClusterSchema.safeParse(name).success, name);
});
