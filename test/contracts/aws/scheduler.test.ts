import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import {
  CreateScheduleGroupCommand,
  DeleteScheduleGroupCommand,
  GetScheduleCommand,
  ListSchedulesCommand,
  ResourceNotFoundException,
  SchedulerClient,
} from '@aws-sdk/client-scheduler';
import { SQSClient } from '@aws-sdk/client-sqs';
import { AwsTimers, SCHEDULE_LEAD_SECONDS, scheduleName } from '#shared/aws/aws-timers.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';
import { sqsSender } from '#shared/aws/sqs-sender.ts';
import { type Clock, systemClock } from '#shared/time/clock.ts';
import { awsClientConfig, awsEndpoint } from '#test/aws/endpoint.ts';
import { skippedOnLocalStack } from '#test/aws/localstack.ts';
import { consume, countsOf, untilEmpty } from '#test/aws/received.ts';
import { createQueue, queueArn } from '#test/aws/sqs-queues.ts';
import { eventually } from '../eventually.ts';
import { aRef } from '../partition-builders.ts';
import { timersContract } from '../timers-contract.ts';

/** Opens a queue, a schedule group, and timers on both that use the given clock. */
async function openScheduler() {
  const endpoint = await awsEndpoint();
  const client = new SQSClient({ ...awsClientConfig(endpoint.url), useQueueUrlAsEndpoint: false });
  const scheduler = new SchedulerClient(awsClientConfig(endpoint.url));
  const groupName = `test-${randomUUID()}`;
  await scheduler.send(new CreateScheduleGroupCommand({ Name: groupName }));
  const { url: dueQueueUrl } = await createQueue(client, QUEUES.evictionsDue, `${randomUUID()}-`);
  const dueQueueArn = await queueArn(client, dueQueueUrl);
  const dueQueue = sqsSender(client, dueQueueUrl);
  const roleArn = 'arn:aws:iam::000000000000:role/scheduler';
  const timersBy = (clock: Clock) =>
    new AwsTimers({
      dueQueue,
      scheduler,
      schedulesOf: async () => ({ groupName, roleArn, dueQueueArn }),
      clock,
    });
  const close = async () => {
    await scheduler.send(new DeleteScheduleGroupCommand({ Name: groupName }));
    scheduler.destroy();
    client.destroy();
    await endpoint.close();
  };
  return { url: endpoint.url, client, scheduler, groupName, dueQueueUrl, dueQueueArn, timersBy, close };
}

timersContract('AwsTimers', async () => {
  const { client, dueQueueUrl, timersBy, close } = await openScheduler();
  return {
    timers: timersBy(systemClock),
    nextMessage: async () => (await consume(client, dueQueueUrl, 1))[0] ?? '',
    noneLeft: () => untilEmpty(client, dueQueueUrl),
    close,
  };
});

describe('EventBridge Scheduler', () => {
  let world: Awaited<ReturnType<typeof openScheduler>>;
  before(async () => {
    world = await openScheduler();
  });
  after(() => world.close());
  const scheduleOf = (name: string) =>
    world.scheduler.send(new GetScheduleCommand({ Name: name, GroupName: world.groupName }));

  test('holds a timer beyond the maximum message delay once, with a schedule two minutes early', async () => {
    const ref = aRef();
    const at = Math.ceil(Date.now() / 1000) * 1000 + 3_600_000;
    const timers = world.timersBy(systemClock);
    await timers.arm(ref, [at - 1, at]);
    await timers.arm(ref, [at]);
    const schedule = await scheduleOf(scheduleName(ref, at));
    const aim = new Date(at - 120_000).toISOString().replace('.000Z', '');
    assert.equal(schedule.ScheduleExpression, `at(${aim})`);
    assert.equal(schedule.ScheduleExpressionTimezone, 'UTC');
    assert.equal(schedule.FlexibleTimeWindow?.Mode, 'OFF');
    assert.equal(schedule.ActionAfterCompletion, 'DELETE');
    assert.equal(schedule.Target?.Arn, world.dueQueueArn);
    assert.equal(schedule.Target?.Input, encodeDue({ ...ref, at }));
    const { Schedules = [] } = await world.scheduler.send(
      new ListSchedulesCommand({ GroupName: world.groupName }),
    );
    assert.equal(Schedules.length, 1);
    assert.equal((await countsOf(world.client, world.dueQueueUrl)).delayed, 0);
  });

  test('sends the message at the scheduled time, not before, and then removes the schedule', async (t) => {
    if (await skippedOnLocalStack(t, world.url, 'scheduler')) return;
    const ref = aRef();
    // With a clock that is far enough behind, the timer uses a schedule that is due soon.
    const behind: Clock = { now: () => Date.now() - 900_000 };
    const aimAt = Math.ceil(Date.now() / 1000) * 1000 + 2000;
    const at = aimAt + SCHEDULE_LEAD_SECONDS * 1000;
    await world.timersBy(behind).arm(ref, [at]);
    assert.equal((await scheduleOf(scheduleName(ref, at))).Name, scheduleName(ref, at));
    assert.deepEqual(await consume(world.client, world.dueQueueUrl, 1), [encodeDue({ ...ref, at })]);
    assert.ok(Date.now() >= aimAt, 'the schedule fired early');
    await eventually(() => assert.rejects(scheduleOf(scheduleName(ref, at)), ResourceNotFoundException));
  });
});
