import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Context } from 'aws-lambda';
import { createHandler } from '#functions/evict/handler.ts';
import { encodeDue } from '#shared/aws/due-message.ts';
import { LaterEvents } from '#shared/engine/evict/later-events.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import { StoreError } from '#shared/state/store.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta, ref } from '#test/unit/eviction/builders.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { benchAfter } from '../engine/evict/evict-bench.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A handler whose passes wait for the test before they read the state of their nodes. */
async function passes() {
  const bench = await benchAfter([nodeDelta(1)], [livePod()]);
  const load = bench.store.load.bind(bench.store);
  const started: PromiseWithResolvers<void>[] = [];
  bench.store.load = async (...args) => {
    const [, , only] = args;
    if (!only) {
      const pass = Promise.withResolvers<void>();
      started.push(pass);
      await pass.promise;
    }
    return load(...args);
  };
  const handler = createHandler(bench);
  /** Handles a message about a node. Resolves with the number of messages that return to the queue. */
  const due = async (node = ref.node) => {
    const message = sqsRecord(encodeDue({ ...ref, node, at: at(0) }), { groupId: ref.cluster });
    const { batchItemFailures } = await handler(sqsEvent(message), {} as Context);
    return batchItemFailures.length;
  };
  return { bench, started, due };
}

describe('due messages for one node', () => {
  test('share the next pass while a pass runs, and the next pass starts after it', async () => {
    const { started, due } = await passes();
    const first = due();
    await turn();
    const sharing = [due(), due(), due()];
    await turn();
    assert.equal(started.length, 1);
    started[0]?.resolve();
    await first;
    await turn();
    assert.equal(started.length, 2);
    const last = due();
    await turn();
    assert.equal(started.length, 2, 'a started pass does not see what a later message saw');
    started[1]?.resolve();
    assert.deepEqual(await Promise.all(sharing), [0, 0, 0]);
    await turn();
    assert.equal(started.length, 3);
    started[2]?.resolve();
    assert.equal(await last, 0);
  });

  test('do not wait for messages for other nodes', async () => {
    const { started, due } = await passes();
    const both = [due(), due(nodeName('n2'))];
    await turn();
    assert.equal(started.length, 2);
    for (const { resolve } of started) resolve();
    await Promise.all(both);
  });

  test('all return to the queue if the pass that they share fails, and no other does', async () => {
    const { started, due } = await passes();
    const first = due();
    await turn();
    const sharing = [due(), due()];
    started[0]?.resolve();
    assert.equal(await first, 0);
    await turn();
    started[1]?.reject(new StoreError('the table is away'));
    assert.deepEqual(await Promise.all(sharing), [1, 1]);
    const third = due();
    await turn();
    started[2]?.resolve();
    assert.equal(await third, 0);
  });

  test('never have two passes that run at the same time', async () => {
    const { bench, due } = await passes();
    let running = 0;
    bench.store.load = async () => {
      running += 1;
      assert.equal(running, 1);
      await turn();
      running -= 1;
      throw new StoreError('the table is away');
    };
    const all: Promise<number>[] = [];
    const ask = () => all.push(due());
    for (let turns = 0; turns < 20; turns++) {
      void Promise.resolve().then(ask);
      if (turns % 3 === 0) await turn();
      else await undefined;
    }
    const returned = await Promise.all(all);
    assert.ok(returned.every((count) => count === 1));
    assert.deepEqual(
      [...new Set(bench.log.lines.map(({ fields }) => `${fields['error']}`))],
      ['StoreError: the table is away'],
    );
  });

  test('start the next pass when the results are recorded, while Events are posted', async () => {
    const { bench, started, due } = await passes();
    const posted = Promise.withResolvers<void>();
    class HeldEvents extends LaterEvents {
      override post = () => posted.promise;
    }
    Object.assign(bench, { laterEvents: new HeldEvents() });
    const first = due();
    await turn();
    started[0]?.resolve();
    await turn();
    const second = due();
    await turn();
    assert.equal(started.length, 2);
    started[1]?.resolve();
    posted.resolve();
    assert.deepEqual(await Promise.all([first, second]), [0, 0]);
  });
});
