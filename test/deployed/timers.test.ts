import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  GetScheduleCommand,
  ResourceNotFoundException,
  UpdateScheduleCommand,
} from '@aws-sdk/client-scheduler';
import { SCHEDULE_LEAD_SECONDS, scheduleName } from '#shared/aws/aws-timers.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { MAX_DELAY_SECONDS } from '#shared/aws/limits.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { evictedOnTime, momentComes } from '#test/cluster/rig/on-time.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { deployed } from './rig/deployed-stage.ts';
import { refOf } from './rig/stored-state.ts';

test("a timer beyond 15 minutes is a schedule two minutes early, whose message gets the exact delay and its cluster's group; an earlier deadline is met", async (t) => {
  const { alpha, scheduler, state, queues, raw, deployment, account } = deployed();
  const { cluster } = alpha;
  await deployed().withRelays(1);
  const node = await cluster.addNode('long');
  // Enough more than the maximum delay to exceed it even when a busy machine handles the delta late.
  const seconds = MAX_DELAY_SECONDS + 8;
  const pod = await cluster.addPod(node, 'long', { tolerations: [tolerates('x', seconds)] });
  const tainted = await cluster.taint(node, { key: 'x' });
  const { dueAt } = await state.scheduled('alpha', pod);
  assert.ok(dueAt >= tainted.requestedAt + seconds * 1000);

  const environment = await raw.environment(deployment.functionName('node-delta'));
  const ref = refOf('alpha', node);
  const at = Math.ceil(dueAt / 1000) * 1000;
  const named = { Name: scheduleName(ref, at), GroupName: environment['SCHEDULE_GROUP_NAME'] };
  // Timers are armed once the record is stored.
  const { Target, FlexibleTimeWindow, ...schedule } = await until('its schedule is made', () =>
    scheduler.send(new GetScheduleCommand(named)).catch((error: unknown) => {
      if (!(error instanceof ResourceNotFoundException)) throw error;
      return undefined;
    }),
  );
  const early = new Date(at - SCHEDULE_LEAD_SECONDS * 1000).toISOString().slice(0, 19);
  assert.equal(schedule.ScheduleExpression, `at(${early})`);
  assert.equal(schedule.ScheduleExpressionTimezone, 'UTC');
  assert.equal(schedule.ActionAfterCompletion, 'DELETE');
  assert.equal(FlexibleTimeWindow?.Mode, 'OFF');
  assert.equal(Target?.Arn, environment['EVICTIONS_DUE_ARN']);
  assert.equal(Target?.RoleArn, environment['SCHEDULE_ROLE_ARN']);
  assert.equal(Target?.Input, encodeDue({ ...ref, at }));

  // The test does not wait 13 minutes: the rest now fits into a delay, so the schedule is set to fire immediately.
  await momentComes(at - MAX_DELAY_SECONDS * 1000);
  const before = await queues.evictionsDue.depth();
  const movedAt = Date.now();
  const soon = new Date(movedAt + 1_000).toISOString().slice(0, 19);
  await scheduler.send(
    new UpdateScheduleCommand({
      ...named,
      ScheduleExpression: `at(${soon})`,
      FlexibleTimeWindow,
      Target,
      ActionAfterCompletion: 'DELETE',
    }),
  );
  const sentOn = () =>
    account.functionsTap
      ?.since(movedAt)
      .filter(({ operation, body }) => operation === 'SendMessageBatch' && body.includes('"DelaySeconds"'));
  await until('the message is sent on, to wait for the rest', async () => {
    const { visible, inFlight, delayed } = await queues.evictionsDue.depth();
    const waits = visible === 0 && inFlight === before.inFlight && delayed > before.delayed;
    return waits && sentOn()?.length !== 0;
  });
  assertUntouched(pod);
  await assert.rejects(scheduler.send(new GetScheduleCommand(named)), { name: 'ResourceNotFoundException' });
  const sent = sentOn() ?? [];
  const waits = sent.flatMap(({ at: sentAt, body }) =>
    JSON.parse(body).Entries.map((entry: { DelaySeconds: number; MessageGroupId?: string }) => ({
      restMs: at - sentAt,
      waitMs: entry.DelaySeconds * 1000,
      group: entry.MessageGroupId,
    })),
  );
  for (const { restMs, waitMs, group } of waits) {
    // The delay is in whole seconds of the rest at the time when the function requested its client.
    assert.ok(waitMs >= restMs && waitMs < restMs + 60_000, `${waitMs} ms, ${restMs} ms left`);
    assert.equal(group, 'alpha');
  }
  assert.equal(waits.length, account.functionsTap ? 1 : 0);

  await cluster.tolerate(pod, (present) =>
    present.map((each) => (each.key === 'x' ? { ...each, tolerationSeconds: 1 } : each)),
  );
  await until('the pod goes', () => pod.evictedAt);
  t.diagnostic(`the schedule's message came ${sent[0] ? sent[0].at - movedAt : '?'} ms after it was due`);
});

test('the record’s time to live replaces a lost timer, and a removal by hand does not', async (t) => {
  const { alpha, state, queues, raw, deployment } = deployed();
  const { cluster } = alpha;
  await deployed().withRelays(1);
  const node = await cluster.addNode('timer-lost');
  const pod = await cluster.addPod(node, 'timer-lost', { tolerations: [tolerates('x', 8)] });
  await queues.evictionsDue.purge();
  const tainted = await cluster.taint(node, { key: 'x' });
  const { dueAt } = await state.scheduled('alpha', pod);
  await until('its timer is armed', async () => (await queues.evictionsDue.depth()).delayed > 0);
  await queues.evictionsDue.purge();

  await momentComes(dueAt + 3_000);
  assertUntouched(pod);
  const removal = await state.expire('alpha', pod);
  await momentComes(Date.now() + 3_000);
  assert.equal(await state.record('alpha', pod), undefined, 'what a hand removed is not put back');
  assertUntouched(pod);

  const answer = await raw.invoke(deployment.functionName('expiry'), removal);
  assert.deepEqual(answer, { batchItemFailures: [] });
  const delayMs = await evictedOnTime(pod, 8, tainted);
  t.diagnostic(`evicted ${delayMs} ms after its deadline, once the record had expired`);
  await until('the record says so', async () => (await state.ended('alpha', pod))?.outcome === 'evicted');
});

test('a deployment changes no running timers', async (t) => {
  const { alpha, state, raw, deployment } = deployed();
  const { cluster } = alpha;
  await deployed().withRelays(1);
  const node = await cluster.addNode('redeployed');
  const times = [6, 12, 25];
  const pods = await Promise.all(
    times.map((seconds) =>
      cluster.addPod(node, `redeployed-${seconds}`, { tolerations: [tolerates('x', seconds)] }),
    ),
  );
  const tainted = await cluster.taint(node, { key: 'x' });
  for (const pod of pods) await state.scheduled('alpha', pod);
  const beganAt = Date.now();
  await deployment.deploy({ comparisonOperators: 'true' });
  const tookMs = Date.now() - beganAt;
  const environment = await raw.environment(deployment.functionName('evict'));
  assert.equal(environment['COMPARISON_OPERATORS'], 'true', 'the function is the new one');
  const late = await Promise.all(pods.map((pod, index) => evictedOnTime(pod, times[index] ?? 0, tainted)));
  t.diagnostic(`deployed in ${tookMs} ms; evicted ${late.join(', ')} ms after their deadlines`);
});
