import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type GetScheduleOutput, ResourceNotFoundException } from '@aws-sdk/client-scheduler';
import { dueAt, sendDue } from '#test/localstack/schedules.ts';

const AT = Date.parse('2026-11-24T08:00:00Z');
const QUEUE = 'arn:aws:sqs:us-east-1:000000000000:taintward-evictions-due';

const schedule = (more: GetScheduleOutput = {}): GetScheduleOutput => ({
  Name: 'one',
  GroupName: 'taintward',
  State: 'ENABLED',
  ScheduleExpression: 'at(2026-11-24T08:00:00)',
  ActionAfterCompletion: 'DELETE',
  Target: { Arn: QUEUE, RoleArn: 'arn:aws:iam::000000000000:role/r', Input: 'look' },
  ...more,
});

/** LocalStack with these schedules, and a record of the changes to them. */
function localStack(...held: readonly GetScheduleOutput[]) {
  const changes: unknown[] = [];
  const find = (name: unknown) => held.find(({ Name }) => Name === name);
  const send = async (command: { readonly input: Record<string, unknown> }) => {
    const { input } = command;
    const { name: what } = command.constructor;
    if (what === 'ListSchedulesCommand') return { Schedules: [...held, { Name: 'gone' }] };
    if (what === 'GetQueueUrlCommand') return { QueueUrl: `http://localhost/${input['QueueName']}` };
    if (what !== 'GetScheduleCommand') return changes.push([what, input]);
    const found = find(input['Name']);
    if (found) return found;
    throw new ResourceNotFoundException({ message: 'gone', Message: 'gone', $metadata: {} });
  };
  return { clients: { scheduler: { send }, sqs: { send } } as never, changes };
}

describe('due schedules on LocalStack', () => {
  test('are sent at their time and removed', async () => {
    const { clients, changes } = localStack(schedule());
    await sendDue(clients, AT - 1);
    assert.deepEqual(changes, []);
    await sendDue(clients, AT);
    assert.deepEqual(changes, [
      ['DeleteScheduleCommand', { Name: 'one', GroupName: 'taintward' }],
      ['SendMessageCommand', { QueueUrl: 'http://localhost/taintward-evictions-due', MessageBody: 'look' }],
    ]);
  });

  test('are sent with the message group of their target', async () => {
    const target = { Arn: QUEUE, RoleArn: 'r', Input: 'look', SqsParameters: { MessageGroupId: 'prod' } };
    const { clients, changes } = localStack(schedule({ Target: target }));
    await sendDue(clients, AT);
    assert.match(JSON.stringify(changes), /"MessageGroupId":"prod"/);
  });

  test('are skipped if they are disabled or recurring', () => {
    assert.equal(dueAt(schedule()), AT);
    assert.equal(dueAt(schedule({ State: 'DISABLED' })), undefined);
    assert.equal(dueAt(schedule({ ScheduleExpression: 'rate(1 minute)' })), undefined);
  });
});
