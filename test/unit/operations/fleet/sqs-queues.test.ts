import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QueueDoesNotExist, type SQSClient } from '@aws-sdk/client-sqs';
import { SqsQueues } from '#shared/operations/fleet/sqs-queues.ts';

type Letter = {
  readonly MessageId: string;
  readonly Body: string;
  readonly reason?: string;
  readonly group?: string;
  readonly sentAt?: number;
  /** Absent: the one of all. */
  readonly box?: string;
};

/** A letter is counted by one of these. */
const STATES = ['NotVisible', 'Delayed', ''].map((state) => `ApproximateNumberOfMessages${state}`);

/**
 * The queues of a stack `tw` with these letters in one dead-letter queue. Commands in `faults` fail. The queues of
 * agent edge-2 don't exist.
 */
function queues(
  letters: readonly Letter[],
  box = 'evictions-due-dlq',
  faults: Readonly<Record<string, string>> = {},
  agents: readonly string[] = [],
  refuses = false,
) {
  const sent: { readonly name: string; readonly input: Record<string, unknown> }[] = [];
  let unread = [...letters];
  const answer = (name: string, input: Record<string, unknown>) => {
    const url = String(input['QueueUrl'] ?? '');
    switch (name) {
      case 'GetQueueUrlCommand':
        if (String(input['QueueName']).startsWith('tw-agent-edge-2-'))
          throw new QueueDoesNotExist({ message: 'no such queue', $metadata: {} });
        if (String(input['QueueName']).startsWith('tw-agent-denied-')) throw new Error('not authorized');
        return { QueueUrl: `https://sqs/${input['QueueName']}` };
      case 'GetQueueAttributesCommand': {
        const counted = url.endsWith(`/tw-${box}`) ? letters : [];
        const count = (nth: number) => counted.filter((_, index) => index % STATES.length === nth).length;
        const all = [
          ['QueueArn', url.replace('https://sqs/', 'arn:aws:sqs:eu-west-1:1:')],
          ...STATES.map((state, nth) => [state, `${count(nth)}`] as const),
        ] as const;
        const wanted = input['AttributeNames'] as readonly string[];
        return { Attributes: Object.fromEntries(all.filter(([name]) => wanted.includes(name))) };
      }
      case 'ReceiveMessageCommand': {
        const page = unread
          .filter((letter) => url.endsWith(`/tw-${letter.box ?? box}`))
          .slice(0, Number(input['MaxNumberOfMessages']));
        unread = unread.filter((letter) => !page.includes(letter));
        return {
          Messages: page.map(({ reason, group, sentAt, box: _box, ...letter }, index) => ({
            ...letter,
            ReceiptHandle: letter.MessageId,
            Attributes: {
              SentTimestamp: `${sentAt ?? 1_000 + index}`,
              ...(group ? { MessageGroupId: group } : {}),
            },
            ...(reason ? { MessageAttributes: { reason: { DataType: 'String', StringValue: reason } } } : {}),
          })),
        };
      }
      case 'DeleteMessageBatchCommand': {
        const entries = input['Entries'] as readonly { readonly Id: string }[];
        return refuses ? { Failed: entries.map(({ Id }) => ({ Id, Message: 'it is locked' })) } : {};
      }
      default:
        return {};
    }
  };
  const client = {
    send: async (command: { readonly input: Record<string, unknown> }) => {
      const fault = faults[command.constructor.name];
      if (fault !== undefined) throw new Error(fault);
      sent.push({ name: command.constructor.name, input: command.input });
      return answer(command.constructor.name, command.input);
    },
  };
  const callsOf = (name: string) => sent.filter((each) => each.name === name).map(({ input }) => input);
  const deps = { client: client as unknown as SQSClient, prefix: 'tw', agents: async () => agents };
  return { box: new SqsQueues(deps), callsOf };
}

const many = Array.from({ length: 12 }, (_, index) => ({ MessageId: `m${index}`, Body: '{}' }));

test('counts dead letters per queue, in flight and delayed ones too, without empty queues', async () => {
  assert.deepEqual([...(await queues(many).box.count())], [['evictions-due', 12]]);
  assert.equal((await queues(many, 'evictions-due').box.backlog()).get('evictions-due'), 12);
});

test("reports an agent's inaccessible queue as an error, not as missing", async () => {
  const { box } = queues([], undefined, {}, ['edge-2', 'denied']);
  const refused = { name: 'FleetError', message: /agent-denied-.* does not answer \(not authorized\)/ };
  await assert.rejects(box.count(), refused);
  await assert.rejects(box.backlog(), refused);
});

test("includes agents' queues in counts, and reads and redrives their dead letters by name", async () => {
  const letters = [{ MessageId: 'm', Body: 'x' }];
  const [name, agents] = ['agent-edge-1-evictions-due', ['edge-1', 'edge-2']];
  const { box, callsOf } = queues(letters, `${name}-dlq`, {}, agents);
  assert.deepEqual([...(await box.count())], [[name, 1]]);
  assert.deepEqual(
    [...(await box.backlog()).keys()],
    ['node-deltas.fifo', 'pod-deltas.fifo', 'evictions-due', name],
  );
  assert.deepEqual(
    (await box.list(10)).map(({ id, queue }) => [id, queue]),
    [['m', name]],
  );
  assert.equal(await box.redrive(name), 1);
  assert.deepEqual(callsOf('StartMessageMoveTaskCommand'), [
    {
      SourceArn: 'arn:aws:sqs:eu-west-1:1:tw-agent-edge-1-evictions-due-dlq',
      DestinationArn: 'arn:aws:sqs:eu-west-1:1:tw-agent-edge-1-evictions-due',
    },
  ]);
});

test('reads dead letters page by page up to a limit and returns them immediately', async () => {
  const { box, callsOf } = queues([{ MessageId: 'm', Body: 'x', reason: 'nobody can read it' }, ...many]);
  const found = await box.list(11);
  assert.equal(found.length, 11);
  assert.deepEqual(found[0], {
    id: 'm',
    queue: 'evictions-due',
    at: 1_000,
    reason: 'nobody can read it',
    body: 'x',
  });
  const back = callsOf('ChangeMessageVisibilityBatchCommand').flatMap(
    ({ Entries }) => Entries as { readonly VisibilityTimeout: number }[],
  );
  assert.deepEqual(
    back.map(({ VisibilityTimeout }) => VisibilityTimeout),
    Array(11).fill(0),
  );
});

test('lists the oldest dead letters of all queues', async () => {
  const letters = ['node-deltas', 'pod-deltas', 'evictions-due'].map((name, index) => ({
    MessageId: name,
    Body: '{}',
    sentAt: 9 - index,
    box: name === 'evictions-due' ? `${name}-dlq` : `${name}-dlq.fifo`,
  }));
  assert.deepEqual(
    (await queues(letters).box.list(2)).map(({ id }) => id),
    ['evictions-due', 'pod-deltas'],
  );
});

test('moves dead letters to their own queue, which it names', async () => {
  const { box, callsOf } = queues(many);
  assert.equal(await box.redrive('evictions-due'), 12);
  assert.deepEqual(callsOf('StartMessageMoveTaskCommand'), [
    {
      SourceArn: 'arn:aws:sqs:eu-west-1:1:tw-evictions-due-dlq',
      DestinationArn: 'arn:aws:sqs:eu-west-1:1:tw-evictions-due',
    },
  ]);
});

test('reports a redrive that is already running, because SQS permits one task per queue', async () => {
  const running = 'There is already a task running. Only one active task is allowed for a source queue.';
  const { box } = queues(many, 'evictions-due-dlq', { StartMessageMoveTaskCommand: running });
  await assert.rejects(box.redrive('evictions-due'), {
    name: 'FleetError',
    message: /^A redrive of the dead letters of evictions-due is already running .*\. Wait until it ends\.$/,
  });
});

test("names the permissions if letters can't be moved", async () => {
  const { box } = queues(many, 'evictions-due-dlq', { StartMessageMoveTaskCommand: 'unsupported' });
  await assert.rejects(box.redrive('evictions-due'), {
    name: 'FleetError',
    message: /could not be redriven \(unsupported\).* sqs:SendMessage on the queue\.$/,
  });
});

test('moves nothing from an empty queue, and rejects dead letters of expiry', async () => {
  const { box, callsOf } = queues([]);
  assert.equal(await box.redrive('pod-deltas.fifo'), 0);
  await assert.rejects(box.redrive('expiry'), { name: 'FleetError', message: /can't be redriven/ });
  assert.deepEqual(callsOf('StartMessageMoveTaskCommand'), []);
});
