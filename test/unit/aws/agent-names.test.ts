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

test('all that an agent has is named by the installation and its ID, and of IAM by the region, too', () => {
  assert.deepEqual(agentNames(PREFIX, 'edge-1', 'eu-west-1'), {
    prefix: 'taintward-agent-edge-1',
    dueQueue: 'taintward-agent-edge-1-evictions-due',
    dueDeadLetters: 'taintward-agent-edge-1-evictions-due-dlq',
    scheduleGroup: 'taintward-agent-edge-1',
    scheduleRole: 'taintward-agent-edge-1-schedules-eu-west-1',
    role: 'taintward-agent-edge-1-eu-west-1',
  });
});

test("an agent's queue lies beside the installation's own, wherever that is", () => {
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

test('schedules of an agent send to its queue, in its group and by its role, in the same partition, region and account', () => {
  assert.deepEqual(
    agentSchedules('arn:aws-cn:sqs:cn-north-1:123456789012:taintward-evictions-due', PREFIX, 'edge-1'),
    {
      dueQueueArn: 'arn:aws-cn:sqs:cn-north-1:123456789012:taintward-agent-edge-1-evictions-due',
      groupName: 'taintward-agent-edge-1',
      roleArn: 'arn:aws-cn:iam::123456789012:role/taintward-agent-edge-1-schedules-cn-north-1',
    },
  );
});

test('an ID is a part of names everywhere', () => {
  for (const id of ['a', 'edge-1', 'a'.repeat(21)]) assert.ok(agentIdSchema.safeParse(id).success, id);
  for (const id of ['', 'Edge', '1a', '-a', 'a_b', 'a.b', 'a'.repeat(22)])
    assert.ok(!agentIdSchema.safeParse(id).success, id);
});

test('a name that IAM takes for a pattern, that keys of the index begin with, or that is longer than a group of SQS, is none of a cluster for an agent', () => {
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
