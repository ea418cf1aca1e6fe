import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConflictException } from '@aws-sdk/client-scheduler';
import fc from 'fast-check';
import {
  AwsTimers,
  LAST_SCHEDULABLE_AT,
  MAX_SCHEDULE_NAME_CHARACTERS,
  SCHEDULE_LEAD_SECONDS,
  SCHEDULE_PRECISION_SECONDS,
  scheduleName,
} from '#shared/aws/aws-timers.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { MAX_DELAY_SECONDS } from '#shared/aws/limits.ts';
import { messageFault } from '#shared/aws/sqs-message.ts';
import { TimerError } from '#shared/engine/timers.ts';
import { clusterName, type NodeRef, nodeName } from '#shared/eviction/identity.ts';
import { QueueError } from '#shared/state/sender.ts';
import { recordingSender } from './recording-sender.ts';
import { scriptedScheduler } from './scripted-scheduler.ts';

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0, 250);
const HOUR_MS = 3600 * 1000;
const ref: NodeRef = { cluster: clusterName('c1'), node: nodeName('n1') };

function armed(dueQueue = recordingSender(), { scheduler, created } = scriptedScheduler()) {
  const timers = new AwsTimers({
    dueQueue,
    scheduler,
    schedulesOf: async () => ({
      groupName: 'taintward',
      roleArn: 'arn:aws:iam::000000000000:role/scheduler',
      dueQueueArn: 'arn:aws:sqs:us-east-1:000000000000:evictions-due',
    }),
    clock: { now: () => NOW },
  });
  return { timers, created, messages: () => dueQueue.calls.flat() };
}

describe('AwsTimers', () => {
  test('delay a message by up to 900 s, rounded up to the second', async () => {
    const { timers, created, messages } = armed();
    await timers.arm(ref, [NOW + 1, NOW + 1500, NOW + 900_000]);
    assert.deepEqual(messages(), [
      { body: encodeDue({ ...ref, at: NOW + 1 }), groupId: ref.cluster, delaySeconds: 1 },
      { body: encodeDue({ ...ref, at: NOW + 1500 }), groupId: ref.cluster, delaySeconds: 2 },
      { body: encodeDue({ ...ref, at: NOW + 900_000 }), groupId: ref.cluster, delaySeconds: 900 },
    ]);
    assert.deepEqual(created, []);
  });

  test('use a group ID that SQS accepts for any length of cluster name', async () => {
    const { timers, messages } = armed();
    const longest = clusterName(`arn:aws:eks:ap-southeast-1:111122223333:cluster/${'c'.repeat(152)}`);
    await timers.arm({ ...ref, cluster: longest }, [NOW + 1]);
    const [message] = messages();
    assert.ok(message && messageFault(message) === undefined);
    await timers.arm({ ...ref, cluster: clusterName(`${longest}`.replace('eks', 'EKS')) }, [NOW + 1]);
    assert.notEqual(messages()[1]?.groupId, message.groupId);
  });

  test('send one message for times with the same delay, dated to the last time', async () => {
    const { timers, messages } = armed();
    await timers.arm(ref, [NOW + 2001, NOW + 2900, NOW + 2500]);
    assert.deepEqual(messages(), [
      { body: encodeDue({ ...ref, at: NOW + 2900 }), groupId: ref.cluster, delaySeconds: 3 },
    ]);
  });

  test('send one message for past times, without delay and dated now', async () => {
    const { timers, messages } = armed();
    await timers.arm(ref, [0, NOW - 1, NOW]);
    assert.deepEqual(messages(), [
      { body: encodeDue({ ...ref, at: NOW }), groupId: ref.cluster, delaySeconds: 0 },
    ]);
  });

  test('create a one-time schedule for later times, two minutes early', async () => {
    const { timers, created, messages } = armed();
    const at = Date.UTC(2026, 10, 21, 12, 30, 7);
    await timers.arm(ref, [at]);
    assert.deepEqual(created, [
      {
        Name: scheduleName(ref, at),
        GroupName: 'taintward',
        ScheduleExpression: 'at(2026-11-21T12:28:07)',
        ScheduleExpressionTimezone: 'UTC',
        FlexibleTimeWindow: { Mode: 'OFF' },
        ActionAfterCompletion: 'DELETE',
        Target: {
          Arn: 'arn:aws:sqs:us-east-1:000000000000:evictions-due',
          RoleArn: 'arn:aws:iam::000000000000:role/scheduler',
          Input: encodeDue({ ...ref, at }),
          RetryPolicy: { MaximumEventAgeInSeconds: 3600, MaximumRetryAttempts: 185 },
        },
      },
    ]);
    assert.deepEqual(messages(), []);
  });

  test('create one schedule per second, at the end of the second', async () => {
    const { timers, created } = armed();
    const second = Date.UTC(2026, 10, 21, 13);
    await timers.arm(ref, [second - 999, second - 1, second, second + 1]);
    assert.deepEqual(
      created.map(({ Target }) => Target?.Input),
      [encodeDue({ ...ref, at: second }), encodeDue({ ...ref, at: second + 1000 })],
    );
  });

  test('reuse a schedule that exists', async () => {
    const exists = scriptedScheduler(() => {
      throw new ConflictException({ message: 'Schedule already exists.', $metadata: {}, Message: undefined });
    });
    await armed(recordingSender(), exists).timers.arm(ref, [NOW + HOUR_MS]);
    assert.equal(exists.created.length, 1);
  });

  test('do not arm times that no schedule can have', async () => {
    const { timers, created, messages } = armed();
    await timers.arm(ref, [LAST_SCHEDULABLE_AT + 1, 8.64e15, Number.MAX_SAFE_INTEGER]);
    assert.deepEqual([created, messages()], [[], []]);
    await timers.arm(ref, [LAST_SCHEDULABLE_AT]);
    assert.equal(created[0]?.ScheduleExpression, 'at(9999-12-31T23:57:59)');
  });

  test('reject when a schedule fails, and arm the others nevertheless', async () => {
    const busy = scriptedScheduler(({ Name }) => {
      if (Name === scheduleName(ref, nextSecond(NOW + HOUR_MS))) throw new Error('Rate exceeded');
    });
    const { timers, created, messages } = armed(recordingSender(), busy);
    await assert.rejects(timers.arm(ref, [NOW + HOUR_MS, NOW, NOW + 2 * HOUR_MS]), (error) => {
      assert.ok(error instanceof TimerError);
      assert.match(error.message, /^node n1 of c1: a timer could not be armed: Rate exceeded; /);
      return true;
    });
    assert.equal(created.length, 2);
    assert.equal(messages().length, 1);
  });

  test('reject when evictions-due is unreachable, and when it rejects a message', async () => {
    const unreachable = recordingSender(() => {
      throw new QueueError('queue evictions-due could not be reached');
    });
    await assert.rejects(armed(unreachable).timers.arm(ref, [NOW]), TimerError);
    const refusing = recordingSender(() => [
      { index: 0, reason: 'InternalError: try again', permanent: false },
    ]);
    await assert.rejects(armed(refusing).timers.arm(ref, [NOW]), /InternalError: try again/);
  });

  test('are never early, for any times', async () => {
    const anyMoment = fc.oneof(
      fc.integer({ min: NOW - HOUR_MS, max: NOW + HOUR_MS }),
      fc.integer({ min: 0, max: LAST_SCHEDULABLE_AT }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(anyMoment, { maxLength: 20 }), async (times) => {
        const { timers, created, messages } = armed();
        await timers.arm(ref, times);
        for (const { body, delaySeconds = 0 } of messages()) {
          assert.ok(JSON.parse(body).at <= NOW + delaySeconds * 1000);
        }
        // A schedule's message arrives early, and is delayed again until its time.
        const bodies = [
          ...messages().map(({ body }) => body),
          ...created.map(({ Target }) => Target?.Input ?? ''),
        ];
        const moments = bodies.map((body): number => JSON.parse(body).at);
        for (const dueAt of times) {
          assert.ok(moments.some((at) => at >= dueAt && at - Math.max(dueAt, NOW) < 1000));
        }
      }),
    );
  });
});

describe('limits of EventBridge Scheduler', () => {
  test('a schedule arrives before its time although it has a precision of one minute', () => {
    assert.ok(SCHEDULE_LEAD_SECONDS > SCHEDULE_PRECISION_SECONDS);
    assert.ok(SCHEDULE_LEAD_SECONDS < MAX_DELAY_SECONDS);
  });

  test('a name is unique to the node and second, and valid for any node', () => {
    const at = nextSecond(NOW);
    assert.equal(scheduleName(ref, at), scheduleName({ ...ref }, at));
    const others = [scheduleName({ ...ref, node: nodeName('n2') }, at), scheduleName(ref, at + 1000)];
    assert.equal(new Set([...others, scheduleName(ref, at)]).size, 3);
    const long = scheduleName({ ...ref, node: nodeName('n'.repeat(253)) }, at);
    assert.match(long, /^[0-9a-zA-Z-_.]+$/);
    assert.ok(long.length <= MAX_SCHEDULE_NAME_CHARACTERS);
  });
});

function nextSecond(at: number): number {
  return Math.ceil(at / 1000) * 1000;
}
