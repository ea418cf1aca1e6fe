import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { SqsQueues } from '#functions/operator/sqs-queues.ts';

type Letter = { readonly MessageId: string; readonly Body: string; readonly reason?: string };

/** The queues of a stack `tw` with these letters in the dead-letter queue of `evictions-due`. */
function queues(letters: readonly Letter[]) {
  const sent: { readonly name: string; readonly input: Record<string, unknown> }[] = [];
  let unread = [...letters];
  const answer = (name: string, input: Record<string, unknown>) => {
    const url = String(input['QueueUrl'] ?? '');
    switch (name) {
      case 'GetQueueUrlCommand':
        return { QueueUrl: `https://sqs/${input['QueueName']}` };
      case 'GetQueueAttributesCommand': {
        const count = url.endsWith('/tw-evictions-due-dlq') ? letters.length : 0;
        const arn = url.replace('https://sqs/', 'arn:aws:sqs:eu-west-1:1:');
        return { Attributes: { QueueArn: arn, ApproximateNumberOfMessages: `${count}` } };
      }
      case 'ReceiveMessageCommand': {
        if (!url.endsWith('/tw-evictions-due-dlq')) return {};
        const page = unread.slice(0, Number(input['MaxNumberOfMessages']));
        unread = unread.slice(page.length);
        return {
          Messages: page.map(({ reason, ...letter }, index) => ({
            ...letter,
            ReceiptHandle: letter.MessageId,
            Attributes: { SentTimestamp: `${1_000 + index}` },
            ...(reason ? { MessageAttributes: { reason: { DataType: 'String', StringValue: reason } } } : {}),
          })),
        };
      }
      default:
        return {};
    }
  };
  const client = {
    send: async (command: { readonly input: Record<string, unknown> }) => {
      sent.push({ name: command.constructor.name, input: command.input });
      return answer(command.constructor.name, command.input);
    },
  };
  const of = (name: string) => sent.filter((each) => each.name === name).map(({ input }) => input);
  return { box: new SqsQueues({ client: client as unknown as SQSClient, prefix: 'tw' }), of };
}

const many = Array.from({ length: 12 }, (_, index) => ({ MessageId: `m${index}`, Body: '{}' }));

test('dead letters are counted where there are some', async () => {
  assert.deepEqual([...(await queues(many).box.count())], [['evictions-due', 12]]);
});

test('dead letters are read page by page up to a limit, and given back at once', async () => {
  const { box, of } = queues([{ ...{ MessageId: 'm', Body: 'x' }, reason: 'nobody can read it' }, ...many]);
  const found = await box.list(11);
  assert.equal(found.length, 11);
  assert.deepEqual(found[0], {
    id: 'm',
    queue: 'evictions-due',
    at: 1_000,
    reason: 'nobody can read it',
    body: 'x',
  });
  const back = of('ChangeMessageVisibilityBatchCommand').flatMap(({ Entries }) => Entries as object[]);
  assert.equal(back.length, 11);
});

test('dead letters are moved to the queue that they are of, which is named', async () => {
  const { box, of } = queues(many);
  assert.equal(await box.redrive('evictions-due'), 12);
  assert.deepEqual(of('StartMessageMoveTaskCommand'), [
    {
      SourceArn: 'arn:aws:sqs:eu-west-1:1:tw-evictions-due-dlq',
      DestinationArn: 'arn:aws:sqs:eu-west-1:1:tw-evictions-due',
    },
  ]);
});

test('nothing is moved where there is nothing, and what expiry set aside goes nowhere', async () => {
  const { box, of } = queues([]);
  assert.equal(await box.redrive('pod-deltas.fifo'), 0);
  await assert.rejects(box.redrive('expiry'), { name: 'FleetError', message: /goes nowhere/ });
  assert.deepEqual(of('StartMessageMoveTaskCommand'), []);
});
