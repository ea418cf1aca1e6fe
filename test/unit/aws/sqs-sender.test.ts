import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES } from '#shared/aws/limits.ts';
import { messageBytes } from '#shared/aws/sqs-message.ts';
import { sqsSender } from '#shared/aws/sqs-sender.ts';
import { type OutgoingMessage, QueueError } from '#shared/state/sender.ts';
import { scriptedSqs } from './scripted-sqs.ts';

const queueUrl = 'https://sqs.us-east-1.amazonaws.com/000000000000/node-deltas.fifo';
const accepted = () => ({ Failed: [] });
const refused = (Id: string, SenderFault = false) => ({
  Id,
  SenderFault,
  Code: 'InternalError',
  Message: 'try again',
});
const message = (groupId: string, body: string): OutgoingMessage => ({
  body,
  groupId,
  deduplicationId: body,
});

describe('the sender of an SQS queue', () => {
  test('makes no call without messages', async () => {
    const { client, calls } = scriptedSqs(accepted);
    assert.deepEqual(await sqsSender(client, queueUrl).send([]), []);
    assert.deepEqual(calls, []);
  });

  test('passes every field of a message to SQS, and no others', async () => {
    const { client, requests } = scriptedSqs(accepted);
    const attributes = { reason: 'late', by: 'evict' };
    const full = { body: 'a', groupId: 'g', deduplicationId: 'd', delaySeconds: 5, attributes };
    await sqsSender(client, queueUrl).send([full, { body: 'b' }]);
    const text = (StringValue: string) => ({ DataType: 'String', StringValue });
    const unsaid = { MessageGroupId: undefined, MessageDeduplicationId: undefined, DelaySeconds: undefined };
    assert.deepEqual(requests, [
      {
        QueueUrl: queueUrl,
        Entries: [
          {
            Id: '0',
            MessageBody: 'a',
            MessageGroupId: 'g',
            MessageDeduplicationId: 'd',
            DelaySeconds: 5,
            MessageAttributes: { reason: text('late'), by: text('evict') },
          },
          { Id: '1', MessageBody: 'b', ...unsaid, MessageAttributes: {} },
        ],
      },
    ]);
  });

  test('names the first failed message of a group in the failures of later messages, for any number of failures', async () => {
    const { client } = scriptedSqs(() => ({ Failed: [refused('1'), refused('3')] }));
    const messages = ['a0', 'a1', 'a2', 'a3', 'a4'].map((body) => message('a', body));
    const failures = await sqsSender(client, queueUrl).send(messages);
    assert.deepEqual(failures.at(-1), {
      index: 4,
      reason: 'message 1 of its group failed',
      permanent: false,
    });
  });

  test('lists failures in the order of the messages, whenever they were found', async () => {
    const { client, calls } = scriptedSqs(() => ({ Failed: [refused('0')] }));
    const faulty = [message('b', ''), message('b', ''), message('b', 'b2')];
    const failures = await sqsSender(client, queueUrl).send([{ body: 'a' }, ...faulty]);
    assert.deepEqual(failures, [
      { index: 0, reason: 'InternalError: try again', permanent: false },
      { index: 1, reason: 'body is empty', permanent: true },
      { index: 2, reason: 'message 1 of its group failed', permanent: false },
      { index: 3, reason: 'message 1 of its group failed', permanent: false },
    ]);
    assert.deepEqual(calls, [['a']]);
  });

  test('leaves messages after an invalid message of their group out of calls', async () => {
    const { client, calls } = scriptedSqs(accepted);
    const behind = Array.from({ length: 9 }, (_, index) => message('a', `a${index}`));
    await sqsSender(client, queueUrl).send([
      message('a', ''),
      ...behind,
      message('b', 'b0'),
      message('b', 'b1'),
    ]);
    assert.deepEqual(calls, [['b0', 'b1']]);
  });

  test('makes no call for messages that all follow a failed message of their group', async () => {
    const { client, calls } = scriptedSqs(() => ({ Failed: [refused('0')] }));
    await sqsSender(client, queueUrl).send(
      Array.from({ length: 12 }, (_, index) => message('a', `a${index}`)),
    );
    assert.equal(calls.length, 1);
  });

  test('sends two messages in one call that together have the largest size of a call', async () => {
    const { client, calls } = scriptedSqs(accepted);
    const half = 'x'.repeat(MAX_BATCH_BYTES / 2);
    await sqsSender(client, queueUrl).send([{ body: half }, { body: half }]);
    assert.equal(calls.length, 1);
  });

  test('treats a failure without a reason and without a fault as temporary', async () => {
    const { client } = scriptedSqs(() => ({
      Failed: [{ Id: '0', Code: 'InternalError', SenderFault: undefined }],
    }));
    assert.deepEqual(await sqsSender(client, queueUrl).send([{ body: 'a' }]), [
      { index: 0, reason: 'InternalError: no reason given', permanent: false },
    ]);
  });

  test('fails messages after a rejected message of their group, and continues with other groups', async () => {
    const { client, calls } = scriptedSqs((bodies) => ({
      Failed: bodies.includes('a1') ? [refused('1')] : [],
    }));
    const messages = [message('a', 'a0'), message('a', 'a1'), message('a', 'a2'), message('b', 'b0')];
    const more = Array.from({ length: 10 }, (_, index) => message(index % 2 ? 'a' : 'b', `more${index}`));
    const failures = await sqsSender(client, queueUrl).send([...messages, ...more]);
    assert.deepEqual(
      failures.map(({ index }) => index),
      [1, 2, 5, 7, 9, 11, 13],
    );
    assert.deepEqual(failures[0], { index: 1, reason: 'InternalError: try again', permanent: false });
    assert.deepEqual(failures[1], { index: 2, reason: 'message 1 of its group failed', permanent: false });
    assert.deepEqual(calls[1], ['more6', 'more8']);
  });

  test('keeps no order in a group of a standard queue, and sends messages after a rejected message', async () => {
    const { client, calls } = scriptedSqs(() => ({ Failed: [refused('0')] }));
    const fair = (body: string): OutgoingMessage => ({ body, groupId: 'c1' });
    const failures = await sqsSender(client, queueUrl).send([fair('a'), fair('b'), fair('c')]);
    assert.deepEqual(
      failures.map(({ index }) => index),
      [0],
    );
    assert.deepEqual(calls, [['a', 'b', 'c']]);
  });

  test('reports which failures are permanent', async () => {
    const { client } = scriptedSqs(() => ({ Failed: [refused('0', true)] }));
    const [failure] = await sqsSender(client, queueUrl).send([{ body: 'a' }, { body: 'b' }]);
    assert.equal(failure?.permanent, true);
  });

  test('rejects with the queue name when the first call fails', async () => {
    const { client } = scriptedSqs(() => {
      throw new Error('connect ECONNREFUSED');
    });
    await assert.rejects(sqsSender(client, queueUrl).send([{ body: 'a' }]), (error) => {
      assert.ok(error instanceof QueueError);
      assert.match(
        error.message,
        /^queue node-deltas\.fifo could not be reached: connect ECONNREFUSED; check /,
      );
      assert.deepEqual([error.name, String(error.cause)], ['QueueError', 'Error: connect ECONNREFUSED']);
      return true;
    });
  });

  test('returns the unsent messages as failures, and stops, when a later call fails', async () => {
    const { client, calls } = scriptedSqs((bodies) => {
      if (!bodies.includes('0')) throw new Error('reset');
      return {};
    });
    const messages = Array.from({ length: 35 }, (_, index) => ({ body: String(index) }));
    const failures = await sqsSender(client, queueUrl).send(messages);
    assert.deepEqual(
      failures.map(({ index }) => index),
      Array.from({ length: 25 }, (_, index) => index + 10),
    );
    const [{ reason, permanent } = {}, ...others] = failures;
    assert.deepEqual([reason, permanent], ['the queue could not be reached any more: reset', false]);
    assert.ok(others.every((each) => !each.permanent));
    assert.equal(calls.length, 2);
  });

  test('sends every message once and in order, in as few calls as the limits allow', async () => {
    const sizes = fc.array(fc.integer({ min: 10, max: MAX_BATCH_BYTES / 2 }), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(sizes, async (lengths) => {
        const { client, calls } = scriptedSqs(accepted);
        const bodies = lengths.map((length, index) => String(index).padEnd(length, 'x'));
        assert.deepEqual(await sqsSender(client, queueUrl).send(bodies.map((body) => ({ body }))), []);
        assert.deepEqual(calls.flat(), bodies);
        const bytesOf = (call: readonly string[] = []) =>
          call.reduce((bytes, body) => bytes + messageBytes({ body }), 0);
        for (const [at, call] of calls.entries()) {
          assert.ok(call.length <= MAX_BATCH_MESSAGES && bytesOf(call) <= MAX_BATCH_BYTES);
          const next = calls[at + 1]?.slice(0, 1);
          const full = call.length === MAX_BATCH_MESSAGES || bytesOf(call) + bytesOf(next) > MAX_BATCH_BYTES;
          assert.ok(full || next === undefined);
        }
      }),
      { numRuns: 25 },
    );
  });
});
