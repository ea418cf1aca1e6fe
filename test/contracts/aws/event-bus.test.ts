import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import {
  CreateEventBusCommand,
  EventBridgeClient,
  PutRuleCommand,
  PutTargetsCommand,
} from '@aws-sdk/client-eventbridge';
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { EventBus, NOTICE_SOURCE } from '#shared/aws/event-bus.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type AwsEndpoint, awsClientConfig, awsEndpoint } from '#test/aws/endpoint.ts';
import { eventually } from '../eventually.ts';
import { recordingLog } from '../recording-log.ts';

let endpoint: AwsEndpoint;
let client: EventBridgeClient;
let queues: SQSClient;
before(async () => {
  endpoint = await awsEndpoint();
  client = new EventBridgeClient(awsClientConfig(endpoint.url));
  queues = new SQSClient({ ...awsClientConfig(endpoint.url), useQueueUrlAsEndpoint: false });
});
after(async () => {
  client.destroy();
  queues.destroy();
  await endpoint.close();
});

/** Creates a bus, and a queue for all of the project's events on it. */
async function busAndQueue() {
  const busName = `ops-${randomUUID()}`;
  await client.send(new CreateEventBusCommand({ Name: busName }));
  const { QueueUrl } = await queues.send(new CreateQueueCommand({ QueueName: busName }));
  const { Attributes } = await queues.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
  );
  const rule = { EventBusName: busName, Name: 'ours' };
  const EventPattern = JSON.stringify({ source: [NOTICE_SOURCE] });
  await client.send(new PutRuleCommand({ ...rule, EventPattern }));
  const Targets = [{ Id: 'queue', Arn: Attributes?.['QueueArn'] }];
  await client.send(new PutTargetsCommand({ EventBusName: busName, Rule: rule.Name, Targets }));
  return { busName, QueueUrl };
}

test('EventBridge accepts the events of an invocation, and its rules match them', async () => {
  const { busName, QueueUrl } = await busAndQueue();
  const log = recordingLog();
  const bus = new EventBus({ client, busName, clock: systemClock, log });
  const pods = Array.from({ length: 25 }, (_, index) => `web-${index}`);
  for (const pod of pods) {
    const uid = podUid(`uid-of-${pod}`);
    bus.log.info('pod.evicted', {
      cluster: clusterName('c1'),
      node: nodeName('n1'),
      namespace: 'shop',
      pod,
      uid,
      delta: '7-1',
      delayMs: 3,
    });
  }
  await bus.flush();
  assert.deepEqual(
    log.lines.filter(({ event }) => event === 'notification.dropped'),
    [],
  );
  const delivered = new Set<string>();
  await eventually(async () => {
    const { Messages = [] } = await queues.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }),
    );
    for (const { Body = '' } of Messages) {
      const { source, detail } = JSON.parse(Body);
      assert.deepEqual([source, detail.event], ['taintward', 'evicted']);
      delivered.add(detail.pod);
    }
    assert.equal(delivered.size, pods.length);
  });
});
