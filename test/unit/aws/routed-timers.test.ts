import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { AgentOf } from '#shared/access/agent-of.ts';
import { AwsTimers } from '#shared/aws/aws-timers.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { routedSender, schedulesBy, sqsDueQueues } from '#shared/aws/due-queues.ts';
import { TimerError } from '#shared/engine/timers.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { StoreError } from '#shared/state/store.ts';
import { aRef, NOW } from '#test/contracts/partition-builders.ts';
import { scriptedScheduler } from './scripted-scheduler.ts';

const ENVIRONMENT = {
  EVICTIONS_DUE_URL: 'https://sqs.eu-west-1.amazonaws.com/123456789012/tw-evictions-due',
  EVICTIONS_DUE_ARN: 'arn:aws:sqs:eu-west-1:123456789012:tw-evictions-due',
  SCHEDULE_GROUP_NAME: 'tw',
  SCHEDULE_ROLE_ARN: 'arn:aws:iam::123456789012:role/tw-TimersRole',
  AGENT_PREFIX: 'tw-agent-',
};
const HOUR_MS = 3_600_000;

function routed(agentOf: AgentOf) {
  const { scheduler, created } = scriptedScheduler();
  const sent: unknown[] = [];
  const sqs = {
    send: async ({
      input,
    }: {
      readonly input: { readonly QueueUrl: string; readonly Entries: object[] };
    }) => {
      sent.push([input.QueueUrl, input.Entries.length]);
      return {};
    },
  } as unknown as SQSClient;
  const timers = new AwsTimers({
    dueQueue: routedSender(sqsDueQueues(ENVIRONMENT, sqs), agentOf),
    scheduler,
    schedulesOf: schedulesBy(ENVIRONMENT, agentOf),
    clock: { now: () => NOW },
  });
  return { timers, sent, created };
}

test('sends timers of an agent to its queue, and creates schedules in its group with its role', async () => {
  const { timers, sent, created } = routed(async (name) => (name === 'closed' ? 'edge-1' : undefined));
  const [open, closed] = ['open', 'closed'].map((name) => aRef(clusterName(name)));
  assert.ok(open && closed);
  for (const ref of [open, closed]) await timers.arm(ref, [NOW + 1_000, NOW + HOUR_MS]);
  assert.deepEqual(sent, [
    ['https://sqs.eu-west-1.amazonaws.com/123456789012/tw-evictions-due', 1],
    ['https://sqs.eu-west-1.amazonaws.com/123456789012/tw-agent-edge-1-evictions-due', 1],
  ]);
  assert.deepEqual(
    created.map(({ GroupName, Target }) => [GroupName, Target?.Arn, Target?.RoleArn, Target?.Input]),
    [
      [
        'tw',
        'arn:aws:sqs:eu-west-1:123456789012:tw-evictions-due',
        'arn:aws:iam::123456789012:role/tw-TimersRole',
        encodeDue({ ...open, at: NOW + HOUR_MS }),
      ],
      [
        'tw-agent-edge-1',
        'arn:aws:sqs:eu-west-1:123456789012:tw-agent-edge-1-evictions-due',
        'arn:aws:iam::123456789012:role/tw-agent-edge-1-schedules-eu-west-1',
        encodeDue({ ...closed, at: NOW + HOUR_MS }),
      ],
    ],
  );
});

test('reject while the agent of the cluster is unknown, which is not looked up where nothing is armed', async () => {
  const { timers, sent, created } = routed(() => Promise.reject(new StoreError('the table is away')));
  await timers.arm(aRef(), []);
  for (const at of [NOW, NOW + HOUR_MS])
    await assert.rejects(timers.arm(aRef(clusterName('open')), [at]), (error) => {
      assert.ok(error instanceof TimerError);
      assert.match(error.message, /^node node-1 of open: a timer could not be armed: the table is away; /);
      return true;
    });
  assert.deepEqual([sent, created], [[], []]);
});
