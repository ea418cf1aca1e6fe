import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import type { Timers } from '#shared/engine/timers.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { aRef } from './partition-builders.ts';

/** Timers, and what arrives in the queue that they send to. */
export interface TimersUnderTest {
  readonly timers: Timers;
  /** The body of the next message, as soon as it may be handled. */
  nextMessage(): Promise<string>;
  /** Resolves when no message is left, nor one to come. */
  noneLeft(): Promise<void>;
  close(): Promise<void>;
}

/** A moment no clock of ours ever shows: what endless deadlines are saturated to. */
const LAST_MOMENT = 8.64e15;

/** What every implementation of `Timers` holds to, against the real clock. */
export function timersContract(name: string, open: () => Promise<TimersUnderTest>): void {
  describe(`${name} keeps the contract of timers`, () => {
    let world: TimersUnderTest;
    before(async () => {
      world = await open();
    });
    after(() => world.close());

    /** The next due message, and when it came. */
    async function nextDue(): Promise<{ ref: NodeRef; at: EpochMs; cameAt: EpochMs }> {
      const body = await world.nextMessage();
      const cameAt = Date.now();
      const message = parseDueMessage(body);
      assert.ok(message.kind === 'due');
      return { ref: { cluster: message.cluster, node: message.node }, at: message.at, cameAt };
    }

    test('a moment in the past fires at once, and says so', async () => {
      const ref = aRef();
      await world.timers.arm(ref, [0, Date.now() - 1]);
      const due = await nextDue();
      assert.deepEqual(due.ref, ref);
      assert.ok(due.at <= due.cameAt);
      await world.noneLeft();
    });

    test('a moment to come fires then, and not before', async () => {
      const ref = aRef();
      const fireAt = Date.now() + 200;
      await world.timers.arm(ref, [fireAt]);
      const due = await nextDue();
      assert.deepEqual(due.ref, ref);
      assert.ok(due.at >= fireAt, `announces ${due.at}, which is before ${fireAt}`);
      assert.ok(due.cameAt >= due.at, `came at ${due.cameAt}, before ${due.at}`);
      await world.noneLeft();
    });

    test('every node has its own timer, though they fall due together', async () => {
      const refs = [aRef(), aRef(), aRef()];
      const fireAt = Date.now() + 300;
      for (const ref of refs) await world.timers.arm(ref, [fireAt]);
      const due = [await nextDue(), await nextDue(), await nextDue()];
      assert.deepEqual(
        new Set(due.map(({ ref }) => ref.cluster)),
        new Set(refs.map(({ cluster }) => cluster)),
      );
      assert.ok(due.every(({ cameAt }) => cameAt >= fireAt));
      await world.noneLeft();
    });

    test('the same moment twice is one timer, and distinct moments are each met', async () => {
      const ref = aRef();
      const first = Date.now() + 100;
      const second = first + 1100;
      await world.timers.arm(ref, [first, second, first]);
      const due = [await nextDue(), await nextDue()];
      assert.ok(due.some(({ at, cameAt }) => at >= first && cameAt >= first));
      assert.ok(due.some(({ at, cameAt }) => at >= second && cameAt >= second));
      await world.noneLeft();
    });

    test('moments that no clock will show do not fire, and are no error', async () => {
      await world.timers.arm(aRef(), [LAST_MOMENT]);
      await world.timers.arm(aRef(), []);
      const ref = aRef();
      await world.timers.arm(ref, [Date.now()]);
      assert.deepEqual((await nextDue()).ref, ref);
      await world.noneLeft();
    });
  });
}
