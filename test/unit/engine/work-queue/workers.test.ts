import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WorkQueue } from '#shared/engine/work-queue/work-queue.ts';
import { Workers } from '#shared/engine/work-queue/workers.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { systemClock } from '#shared/time/clock.ts';
import { clusterOf } from './naive-work-queue.ts';

const NOW = Date.UTC(2026, 10, 21, 12);

describe('Workers', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW }));
  afterEach(() => mock.timers.reset());

  /** Starts work on each key, which lasts until the test ends it. */
  function working(atOnce: number, mayWork?: (cluster: string) => boolean) {
    const clusterOfKey = (key: string) => clusterName(clusterOf(key));
    const backoff = { firstMs: 10, longestMs: 1_000 };
    const queue = new WorkQueue<string>({ clock: systemClock, backoff, clusterOf: clusterOfKey });
    const begun: string[] = [];
    const failures: [string, unknown][] = [];
    const under = new Map<string, PromiseWithResolvers<number | undefined>>();
    const workers = new Workers<string>({
      queue,
      atOnce,
      ...(mayWork ? { mayWork } : {}),
      work: (key) => {
        begun.push(key);
        const work = Promise.withResolvers<number | undefined>();
        under.set(key, work);
        return work.promise;
      },
      failed: (key, reason) => failures.push([key, reason]),
    });
    const end = (key: string, again?: number) => under.get(key)?.resolve(again);
    const fail = (key: string, error: Error) => under.get(key)?.reject(error);
    return { queue, workers, begun, failures, end, fail };
  }

  async function turns(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await nextTurn();
  }

  test('work on a limited number of keys at a time, and start the next as soon as one is done', async () => {
    const { queue, begun, end } = working(2);
    for (const key of ['1a', '1b', '1c']) queue.add(key);
    await turns();
    assert.deepEqual(begun, ['1a', '1b']);
    end('1b');
    await turns();
    assert.deepEqual(begun, ['1a', '1b', '1c']);
  });

  test('say when the next piece of work has ended, each time', async () => {
    const { queue, workers, end } = working(2);
    queue.add('1a');
    queue.add('1b');
    await turns();
    const ended: string[] = [];
    for (const key of ['1b', '1a']) {
      void workers.next.then(() => ended.push(key));
      await turns();
      assert.ok(!ended.includes(key));
      end(key);
      await turns();
    }
    assert.deepEqual(ended, ['1b', '1a']);
  });

  test('yield to the event loop between two keys', async () => {
    const { queue, begun } = working(10);
    for (const key of ['1a', '1b', '1c']) queue.add(key);
    await nextTurn();
    assert.deepEqual(begun, ['1a']);
  });

  test('return to a key at the time that its work returns', async () => {
    const { queue, begun, end } = working(1);
    queue.add('1a');
    await turns();
    end('1a', NOW + 50);
    await turns();
    mock.timers.tick(49);
    await turns();
    assert.deepEqual(begun, ['1a']);
    mock.timers.tick(1);
    await turns();
    assert.deepEqual(begun, ['1a', '1a']);
  });

  test('report failed work, and retry it', async () => {
    const { queue, begun, failures, fail } = working(1);
    const error = new Error('the table is away');
    queue.add('1a');
    await turns();
    fail('1a', error);
    await turns();
    assert.deepEqual(failures, [['1a', error]]);
    mock.timers.tick(10);
    await turns();
    assert.deepEqual(begun, ['1a', '1a']);
  });

  test('skip a cluster until it is permitted', async () => {
    let may = false;
    const { queue, workers, begun } = working(2, (cluster) => may || cluster !== '1');
    for (const key of ['1a', '2a']) queue.add(key);
    await turns();
    assert.deepEqual(begun, ['2a']);
    may = true;
    workers.offer();
    await turns();
    assert.deepEqual(begun, ['2a', '1a']);
  });

  test('stop after running work has ended, and start nothing more', async () => {
    const { queue, workers, begun, end } = working(1);
    for (const key of ['1a', '1b']) queue.add(key);
    await turns();
    let stopped = false;
    const stopping = workers.stop().then(() => {
      stopped = true;
    });
    await turns();
    assert.equal(stopped, false);
    end('1a');
    await stopping;
    await turns();
    assert.deepEqual(begun, ['1a']);
  });

  test('start no work that was only offered when they stopped', async () => {
    const { queue, workers, begun } = working(1);
    queue.add('1a');
    await workers.stop();
    await turns();
    assert.deepEqual(begun, []);
  });
});
