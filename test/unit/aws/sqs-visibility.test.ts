import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sqsVisibility } from '#shared/aws/sqs-visibility.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { scriptedSqs } from './scripted-sqs.ts';

const queueUrl = 'https://sqs.us-east-1.amazonaws.com/000000000000/evictions-due';

function visibility(answer: Parameters<typeof scriptedSqs>[0] = () => ({})) {
  const { client, requests } = scriptedSqs(answer);
  const log = recordingLog();
  return { requests, log, control: sqsVisibility(client, queueUrl, log) };
}

describe('changed visibility timeouts', () => {
  test('are sent ten in a call, each with its seconds', async () => {
    const { control, requests } = visibility();
    const retries = Array.from({ length: 21 }, (_, index) => ({
      receiptHandle: `r${index}`,
      seconds: index,
    }));
    await control.retryIn(retries);
    const calls = [retries.slice(0, 10), retries.slice(10, 20), retries.slice(20)];
    assert.deepEqual(
      requests,
      calls.map((call) => ({
        QueueUrl: queueUrl,
        Entries: call.map(({ receiptHandle, seconds }, index) => ({
          Id: String(index),
          ReceiptHandle: receiptHandle,
          VisibilityTimeout: seconds,
        })),
      })),
    );
  });

  test('are whole seconds of at most twelve hours, the limit of SQS', async () => {
    const { control, requests } = visibility();
    await control.retryIn([-1, 0.2, 43_201].map((seconds) => ({ receiptHandle: 'r', seconds })));
    const [{ Entries = [] } = {}] = requests as { Entries?: { VisibilityTimeout: number }[] }[];
    assert.deepEqual(
      Entries.map(({ VisibilityTimeout }) => VisibilityTimeout),
      [0, 1, 43_200],
    );
  });

  test('stay the same where a change fails, with a logged error, and do not affect the others', async () => {
    const refused = { Id: '3', SenderFault: true, Code: 'ReceiptHandleIsInvalid', Message: 'handled before' };
    let calls = 0;
    const { control, requests, log } = visibility(() => {
      calls += 1;
      if (calls === 1) throw new Error('connect ECONNREFUSED');
      return calls === 2 ? { Failed: [refused] } : {};
    });
    await control.retryIn(Array.from({ length: 30 }, () => ({ receiptHandle: 'r', seconds: 1 })));
    assert.equal(requests.length, 3);
    assert.deepEqual(
      log.lines.map(({ level, event, fields }) => [level, event, fields['queue'], String(fields['error'])]),
      [
        ['warn', 'message.visibility-update-failed', 'evictions-due', 'Error: connect ECONNREFUSED'],
        ['warn', 'message.visibility-update-failed', 'evictions-due', 'handled before'],
      ],
    );
  });
});
