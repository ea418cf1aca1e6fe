import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import fc from 'fast-check';
import { PrioritySemaphore } from '#shared/kubernetes/http/priority-semaphore.ts';

/** A semaphore whose tasks a test ends by hand, with the names of the started tasks in order. */
function bench(atOnce: number) {
  const turns = new PrioritySemaphore(atOnce);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const take = (name: string, inHurry = false) =>
    turns.run(
      () =>
        new Promise<string>((resolve) => {
          begun.push(name);
          ends.set(name, () => resolve(name));
        }),
      { inHurry },
    );
  return { begun, take, end: (name: string) => ends.get(name)?.() };
}

test('runs a limited number of tasks and queues the others in order', async () => {
  const { begun, take, end } = bench(2);
  const all = ['a', 'b', 'c', 'd'].map((name) => take(name));
  assert.deepEqual(begun, ['a', 'b']);
  end('b');
  await tick();
  end('a');
  await tick();
  assert.deepEqual(begun, ['a', 'b', 'c', 'd']);
  end('c');
  end('d');
  assert.deepEqual(await Promise.all(all), ['a', 'b', 'c', 'd']);
});

test('runs urgent tasks before patient ones, each in order', async () => {
  const { begun, take, end } = bench(1);
  const all = [take('first'), take('patient'), take('urgent 1', true), take('urgent 2', true)];
  for (const name of ['first', 'urgent 1', 'urgent 2', 'patient']) {
    end(name);
    await tick();
  }
  await Promise.all(all);
  assert.deepEqual(begun, ['first', 'urgent 1', 'urgent 2', 'patient']);
});

test('never exceeds the limit and runs all tasks, for any order of arrival and completion', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.record({ inHurry: fc.boolean(), ticks: fc.nat(3), fails: fc.boolean() }), {
        maxLength: 30,
      }),
      async (atOnce, calls) => {
        const turns = new PrioritySemaphore(atOnce);
        let running = 0;
        let run = 0;
        const all = calls.map(({ inHurry, ticks, fails }) =>
          turns.run(
            async () => {
              run += 1;
              running += 1;
              assert.ok(running <= atOnce);
              for (let i = 0; i < ticks; i++) await null;
              running -= 1;
              if (fails) throw new Error('no');
            },
            { inHurry },
          ),
        );
        await Promise.allSettled(all);
        assert.equal(run, calls.length);
      },
    ),
  );
});
