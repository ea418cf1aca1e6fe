import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { setImmediate as nextLoop } from 'node:timers/promises';
import { EmbeddedTimers } from '#functions/local/embedded-timers.ts';
import { clusterName, type NodeRef, nodeName } from '#shared/eviction/identity.ts';
import { parseDueMessage } from '#shared/queues/due-message.ts';
import { QueueError } from '#shared/queues/sender.ts';
import { systemClock } from '#shared/time/clock.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { type RecordingSender, recordingSender } from '#test/unit/timers/recording-sender.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const DAY_MS = 24 * 3600 * 1000;
const ref = (node: string): NodeRef => ({ cluster: clusterName('c1'), node: nodeName(node) });

describe('EmbeddedTimers', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW }));
  afterEach(() => mock.timers.reset());

  const timersOn = (dueQueue: RecordingSender, log = recordingLog()) =>
    new EmbeddedTimers({ dueQueue, clock: systemClock, log });

  /** Lets time pass, and what it sets off happen. */
  async function pass(ms: number): Promise<void> {
    mock.timers.tick(ms);
    await nextLoop();
  }

  /** The messages of each call, as `node@ms from the start`. */
  const sent = ({ calls }: RecordingSender) =>
    calls.map((messages) =>
      messages.map(({ body }) => {
        const message = parseDueMessage(body);
        assert.ok(message.kind === 'due');
        return `${message.node}@${message.at - NOW}`;
      }),
    );

  test('fire on the millisecond', async () => {
    const queue = recordingSender();
    await timersOn(queue).arm(ref('n1'), [NOW + 1500]);
    await pass(1499);
    assert.deepEqual(sent(queue), []);
    await pass(1);
    assert.deepEqual(sent(queue), [['n1@1500']]);
  });

  test('fire once for a node and moment armed again, and together for nodes due together', async () => {
    const queue = recordingSender();
    const timers = timersOn(queue);
    await timers.arm(ref('n1'), [NOW + 10, NOW + 10]);
    await timers.arm(ref('n1'), [NOW + 10, NOW + 20]);
    await timers.arm(ref('n2'), [NOW + 10]);
    await pass(10);
    await pass(10);
    assert.deepEqual(sent(queue), [['n1@10', 'n2@10'], ['n1@20']]);
  });

  test('fire once, at once, for all moments of a node that are past', async () => {
    const queue = recordingSender();
    await timersOn(queue).arm(ref('n1'), [0, NOW - 1, NOW]);
    await pass(1);
    assert.deepEqual(sent(queue), [['n1@0']]);
  });

  test('wait for no negative time, though the clock goes on while they are armed', async () => {
    const queue = recordingSender();
    const waits = mock.method(globalThis, 'setTimeout');
    let reads = 0;
    const clock = { now: () => NOW + 5 * reads++ };
    await new EmbeddedTimers({ dueQueue: queue, clock, log: recordingLog() }).arm(ref('n1'), [NOW, NOW + 2]);
    await pass(1);
    // The driven one comes back before the real one does.
    waits.mock.restore();
    assert.deepEqual(
      waits.mock.calls.map(({ arguments: [, ms] }) => ms),
      [0, 0],
    );
    assert.deepEqual(sent(queue), [['n1@0'], ['n1@2']]);
  });

  test('send again, to an unreachable queue, until it takes the message', async () => {
    const log = recordingLog();
    const queue = recordingSender((_, call) => {
      if (call < 3) throw new QueueError('queue evictions-due could not be reached');
      return [];
    });
    await timersOn(queue, log).arm(ref('n1'), [NOW + 10]);
    await pass(10);
    await pass(100);
    await pass(200);
    await pass(60_000);
    assert.deepEqual(sent(queue), [['n1@10'], ['n1@10'], ['n1@10']]);
    assert.deepEqual(
      log.lines.map(({ event }) => event),
      ['timer.unsent', 'timer.unsent'],
    );
  });

  test('ask a queue that stays unreachable less and less, every ten seconds at last', async () => {
    const queue = recordingSender(() => {
      throw new QueueError('queue evictions-due could not be reached');
    });
    await timersOn(queue).arm(ref('n1'), [NOW]);
    for (let seconds = 0; seconds < 600; seconds++) {
      for (let tenths = 0; tenths < 10; tenths++) await pass(100);
    }
    assert.ok(queue.calls.length > 55 && queue.calls.length < 90, `${queue.calls.length} calls`);
  });

  test('send only those messages again that the queue did not take', async () => {
    const queue = recordingSender((_, call) =>
      call === 1 ? [{ index: 1, reason: 'busy', permanent: false }] : [],
    );
    const timers = timersOn(queue);
    for (const node of ['n1', 'n2', 'n3']) await timers.arm(ref(node), [NOW + 10]);
    await pass(10);
    await pass(100);
    assert.deepEqual(sent(queue), [['n1@10', 'n2@10', 'n3@10'], ['n2@10']]);
  });

  test('are armed anew from what the store knows to come', async () => {
    const queue = recordingSender();
    async function* upcoming() {
      yield { ref: ref('n1'), fireAt: NOW - DAY_MS };
      yield { ref: ref('n2'), fireAt: NOW + 10 };
    }
    await timersOn(queue).rearm({ upcoming });
    await pass(1);
    await pass(9);
    assert.deepEqual(sent(queue), [['n1@0'], ['n2@10']]);
  });

  test('fire no more once stopped, and stop when the queue has answered', async () => {
    const answer = Promise.withResolvers<readonly []>();
    const queue = recordingSender();
    const slow: RecordingSender = {
      calls: queue.calls,
      async send(messages) {
        await queue.send(messages);
        return answer.promise;
      },
    };
    const timers = timersOn(slow);
    await timers.arm(ref('n1'), [NOW + 10, NOW + 20]);
    await pass(10);
    let stopped = false;
    const stopping = timers.stop().then(() => {
      stopped = true;
    });
    await timers.arm(ref('n1'), [NOW + 30]);
    await pass(60_000);
    assert.equal(stopped, false);
    answer.resolve([]);
    await stopping;
    assert.deepEqual(sent(queue), [['n1@10']]);
  });

  test('once stopped, send nothing again that the queue did not take', async () => {
    const answer = Promise.withResolvers<void>();
    const queue = recordingSender();
    const failing: RecordingSender = {
      calls: queue.calls,
      async send(messages) {
        await queue.send(messages);
        await answer.promise;
        throw new QueueError('queue evictions-due could not be reached');
      },
    };
    const timers = timersOn(failing);
    await timers.arm(ref('n1'), [NOW + 10]);
    await pass(10);
    const stopping = timers.stop();
    answer.resolve();
    await stopping;
    await pass(60_000);
    assert.equal(queue.calls.length, 1);
  });
});
