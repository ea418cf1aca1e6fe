import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as settle } from 'node:timers/promises';
import fc from 'fast-check';
import { ListSlots } from '#shared/engine/watch/list-slots.ts';

const SLOTS = 8;

/** A cluster that requests its lists together; the test ends each list. */
class Requester {
  readonly running: (() => void)[] = [];
  started = 0;

  request(slots: ListSlots, lists: number): void {
    for (let list = 0; list < lists; list++) {
      void slots.run(this, async () => {
        this.started += 1;
        await new Promise<void>((resolve) => this.running.push(resolve));
      });
    }
  }
}

describe('slots', () => {
  test('are assigned to the cluster with the fewest', async () => {
    const slots = new ListSlots(3);
    const [sick, well] = [new Requester(), new Requester()];
    sick.request(slots, 5);
    well.request(slots, 2);
    await settle();
    assert.deepEqual([sick.started, well.started], [3, 0]);
    sick.running.shift()?.();
    await settle();
    assert.deepEqual([sick.started, well.started], [3, 1]);
  });

  test('that were returned count no more', async () => {
    const slots = new ListSlots(4);
    const [one, two, third] = [new Requester(), new Requester(), new Requester()];
    one.request(slots, 3);
    await settle();
    for (const end of one.running.splice(0)) end();
    await settle();
    third.request(slots, 1);
    two.request(slots, 2);
    one.request(slots, 1);
    await settle();
    two.request(slots, 1);
    one.request(slots, 1);
    third.running.shift()?.();
    await settle();
    assert.deepEqual([one.started, two.started], [5, 2]);
  });

  test('go to all lists of a cluster, in the order of their requests', async () => {
    const slots = new ListSlots(1);
    const order: number[] = [];
    await Promise.all([1, 2, 3, 4].map((list) => slots.run(slots, async () => void order.push(list))));
    assert.deepEqual(order, [1, 2, 3, 4]);
  });

  test('return from failed work', async () => {
    const slots = new ListSlots(1);
    const cluster = {};
    const failing = slots.run(cluster, () => Promise.reject(new Error('refused')));
    const next = slots.run(cluster, async () => 'listed');
    await assert.rejects(failing, /refused/);
    assert.equal(await next, 'listed');
  });

  test('reach a healthy cluster after at most one turn of each failing cluster, for any number of lists', async () => {
    const fleets = fc.record({
      sick: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }),
      picks: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
      lists: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fleets, async ({ sick, picks, lists }) => {
        const slots = new ListSlots(SLOTS);
        const hanging = sick.map(() => new Requester());
        for (const [index, each] of hanging.entries()) each.request(slots, sick[index] ?? 0);
        const well = new Requester();
        await settle();
        well.request(slots, lists);
        await settle();
        let turns = 0;
        for (; well.started === 0; turns++) {
          // A list of some failing cluster times out, and is requested again.
          const busy = hanging.filter(({ running }) => running.length > 0);
          const unlucky = busy[(picks[turns] ?? 0) % busy.length];
          unlucky?.running.shift()?.();
          unlucky?.request(slots, 1);
          await settle();
          assert.ok(turns < sick.length, `it waits for more than ${sick.length} turns`);
        }
      }),
    );
  });
});
