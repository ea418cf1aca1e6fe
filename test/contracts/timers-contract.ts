import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import type { Timers } from '#shared/engine/timers.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { aRef } from './partition-builders.ts';

/** Timers, and the messages in the queue that they send to. */
export interface TimersUnderTest {
  readonly timers: Timers;
  /** Resolves with the body of the next message, as soon as the message may be handled. */
  nextMessage(): Promise<string>;
  /** Resolves when no message is left or pending. */
  noneLeft(): Promise<void>;
  close(): Promise<void>;
}

/** A time that no clock will reach: endless deadlines are saturated to it. */
const LAST_MOMENT = 8.64e15;

/** Registers the tests that every implementation of `Timers` has to pass, against the real clock. */
export function timersContract(name: string, open: () => Promise<TimersUnderTest>): void {
  describe(`${name} keeps the contract of timers`, () => {
    let world: TimersUnderTest;
    before(async () => {
      world = await open();
    });
    after(() => world.close());

    /** Resolves with the next due message, and its arrival time. */
    async function nextDue(): Promise<{ ref: NodeRef; at: EpochMs; cameAt: EpochMs }> {
      const body = await world.nextMessage();
      const cameAt = Date.now();
      const message = parseDueMessage(body);
      assert.ok(message.kind === 'due');
      return { ref: { cluster: message.cluster, node: message.node }, at: message.at, cameAt };
    }

    test('fires immediately for a time in the past, with that time', async () => {
      const ref = aRef();
      await world.timers.arm(ref, [0, Date.now() - 1]);
      const due = await nextDue();
      assert.deepEqual(due.ref, ref);
      assert.ok(due.at <= due.cameAt);
      await world.noneLeft();
    });

    test('fires at a future time, and not before', async () => {
      const ref = aRef();
      const dueAt = Date.now() + 200;
      await world.timers.arm(ref, [dueAt]);
      const due = await nextDue();
      assert.deepEqual(due.ref, ref);
      assert.ok(due.at >= dueAt, `announces ${due.at}, which is before ${dueAt}`);
      assert.ok(due.cameAt >= due.at, `came at ${due.cameAt}, before ${due.at}`);
      await world.noneLeft();
    });

    test('fires for every node separately, even at the same time', async () => {
      const refs = [aRef(), aRef(), aRef()];
      const dueAt = Date.now() + 300;
      for (const ref of refs) await world.timers.arm(ref, [dueAt]);
      const due = [await nextDue(), await nextDue(), await nextDue()];
      assert.deepEqual(
        new Set(due.map(({ ref }) => ref.cluster)),
        new Set(refs.map(({ cluster }) => cluster)),
      );
      assert.ok(due.every(({ cameAt }) => cameAt >= dueAt));
      await world.noneLeft();
    });

    test('fires once for a repeated time, and for each of distinct times', async () => {
      const ref = aRef();
      const first = Date.now() + 100;
      const second = first + 1100;
      await world.timers.arm(ref, [first, second, first]);
      const due = [await nextDue(), await nextDue()];
      assert.ok(due.some(({ at, cameAt }) => at >= first && cameAt >= first));
      assert.ok(due.some(({ at, cameAt }) => at >= second && cameAt >= second));
      await world.noneLeft();
    });

    test('ignores times that no clock will reach, without an error', async () => {
      await world.timers.arm(aRef(), [LAST_MOMENT]);
      await world.timers.arm(aRef(), []);
      const ref = aRef();
      await world.timers.arm(ref, [Date.now()]);
      assert.deepEqual((await nextDue()).ref, ref);
      await world.noneLeft();
    });
  });
}
