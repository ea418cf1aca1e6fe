import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Context } from 'aws-lambda';
import { consume } from '#shared/aws/consume.ts';
import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import type { Again } from '#shared/engine/timers.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { QueueError } from '#shared/state/sender.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';

interface Play {
  readonly receives: number;
  readonly perform?: () => Promise<Again | undefined>;
  readonly parse?: () => string;
}

/** Returns how many times a message is counted as failing. */
async function counted({ receives, perform = async () => undefined, parse = () => '' }: Play) {
  let failing = 0;
  const deadLetters = new ScriptedQueue();
  deadLetters.unreachable = new QueueError('away');
  const handler = consume<string>(
    {
      parse,
      perform,
      deadlineMs: 1_000,
      retrySeconds: () => 1,
      about: () => ({ cluster: clusterName('c1'), node: nodeName('n1') }),
    },
    {
      deadLetters,
      log: recordingLog(),
      visibility: { retryIn: async () => undefined },
      metrics: {
        put: (_name, count) => {
          failing += count;
        },
      },
    },
  );
  await handler(sqsEvent(sqsRecord('one', { messageId: 'm1', receives })), {} as Context);
  return failing;
}

const fails = () => Promise.reject(new Error('the table is away'));

describe('a failing message', () => {
  test('is counted from its third receive, when its queue no longer reports its age', async () => {
    const counts = await Promise.all(
      [1, 2, 3, 4, 500].map((receives) => counted({ receives, perform: fails })),
    );
    assert.deepEqual(counts, [0, 0, 1, 1, 1]);
  });

  test('is counted when it is unreadable and the dead-letter queue is unreachable', async () => {
    const parse = () => {
      throw new RejectedMessageError('no message');
    };
    assert.equal(await counted({ receives: 3, parse }), 1);
  });

  test('is not counted when it is early, or handled at last', async () => {
    assert.equal(await counted({ receives: 9, perform: async () => ({ againInSeconds: 1 }) }), 0);
    assert.equal(await counted({ receives: 9 }), 0);
  });
});
