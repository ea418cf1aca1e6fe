import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import fc from 'fast-check';
import { WorkQueue } from '#shared/engine/work-queue/work-queue.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { backoffMs } from '#shared/time/backoff.ts';
import { type Clock, systemClock } from '#shared/time/clock.ts';
import { clusterOf, NaiveWorkQueue } from './naive-work-queue.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const DAY_MS = 24 * 3600 * 1000;
const BACKOFF = { firstMs: 5, longestMs: 40 };

const newQueue = (clock: Clock = systemClock) =>
  new WorkQueue<string>({
    clock,
    backoff: BACKOFF,
    clusterOf: (key) => clusterName(clusterOf(key)),
  });

/** Takes all available keys without marking them as done. */
function takeAll(queue: WorkQueue<string>): readonly string[] {
  const taken: string[] = [];
  for (let key = queue.take(); key !== undefined; key = queue.take()) taken.push(key);
  return taken;
}

describe('WorkQueue', () => {
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW });
    mock.method(Math, 'random', () => 1);
  });
  afterEach(() => {
    mock.restoreAll();
    mock.timers.reset();
  });

  const pass = (ms: number) => mock.timers.tick(ms);

  test('has a key at once whose time is now', () => {
    const queue = newQueue();
    queue.addAt('1a', NOW);
    assert.equal(queue.take(), '1a');
  });

  test('delays no key once it is stopped', () => {
    const queue = newQueue();
    queue.add('1a');
    queue.failed(queue.take() ?? '');
    assert.equal(queue.resting, 1);
    queue.stop();
    assert.deepEqual([queue.resting, queue.size], [0, 0]);
  });

  test('behaves like the naive queue, for any steps', () => {
    const key = fc.constantFrom('1a', '1b', '1c', '2a', '2b', '3a');
    const step = fc.oneof(
      fc.record({ does: fc.constant('add' as const), key }),
      // Never the time at which a pause ends: keys of the same time have no order.
      fc.record({ does: fc.constant('addAt' as const), key, inMs: fc.constantFrom(-7, 3, 13, 33, 83) }),
      fc.record({ does: fc.constant('take' as const) }),
      fc.record({
        does: fc.constantFrom('done' as const, 'failed' as const, 'untake' as const),
        nth: fc.nat(3),
      }),
      fc.record({ does: fc.constant('pass' as const), ms: fc.constantFrom(10, 20, 50) }),
    );
    let rests = 0;
    let again = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 60, size: 'max' }), (steps) => {
        const queue = newQueue();
        const naive = new NaiveWorkQueue(Date.now(), (failures) => backoffMs(failures, BACKOFF));
        for (const step of steps) {
          switch (step.does) {
            case 'add':
              again += naive.underWay.includes(step.key) ? 1 : 0;
              queue.add(step.key);
              naive.add(step.key);
              break;
            case 'addAt':
              queue.addAt(step.key, Date.now() + step.inMs);
              naive.addAt(step.key, Date.now() + step.inMs);
              break;
            case 'take':
              naive.taken(queue.take());
              break;
            case 'pass':
              for (let ms = 0; ms < step.ms; ms++) pass(1);
              naive.pass(step.ms);
              break;
            default: {
              const taken = naive.underWay[step.nth % naive.underWay.length];
              if (taken === undefined) break;
              rests += step.does === 'failed' ? 1 : 0;
              queue[step.does](taken);
              naive[step.does](taken);
            }
          }
          assert.equal(queue.size, naive.size);
          assert.equal(queue.resting, naive.resting);
        }
        for (let key = queue.take(); key !== undefined; key = queue.take()) naive.taken(key);
        naive.taken(undefined);
        queue.stop();
      }),
      { numRuns: 500 },
    );
    assert.ok(rests > 100 && again > 100, 'the histories had failures, and keys that were added meanwhile');
  });

  test('requeues a failed key after growing pauses, which start over after a success', () => {
    const queue = newQueue();
    queue.add('1a');
    for (const restMs of [5, 10, 20, 40, 40]) {
      assert.deepEqual(takeAll(queue), ['1a']);
      queue.failed('1a');
      queue.add('1a');
      pass(restMs - 1);
      assert.deepEqual(takeAll(queue), []);
      pass(1);
    }
    assert.deepEqual(takeAll(queue), ['1a']);
    queue.done('1a');
    queue.add('1a');
    takeAll(queue);
    queue.failed('1a');
    pass(5);
    assert.deepEqual(takeAll(queue), ['1a']);
  });

  for (const [how, setMs] of [
    ['forward', DAY_MS],
    ['back', -DAY_MS],
  ] as const)
    test(`requeues a failed key on time when the clock is set ${how}`, () => {
      let byMs = 0;
      const queue = newQueue({ now: () => Date.now() + byMs });
      queue.add('1a');
      takeAll(queue);
      queue.failed('1a');
      byMs = setMs;
      pass(4);
      assert.deepEqual(takeAll(queue), []);
      pass(1);
      assert.deepEqual(takeAll(queue), ['1a']);
    });

  test('requeues a failed key at its own time, and not again at the end of its pause', () => {
    const queue = newQueue();
    queue.add('1a');
    takeAll(queue);
    queue.failed('1a');
    queue.addAt('1a', NOW + 2);
    pass(2);
    assert.deepEqual(takeAll(queue), ['1a']);
    queue.done('1a');
    pass(DAY_MS);
    assert.deepEqual(takeAll(queue), []);
  });

  test('fires in order, on the millisecond, with a single timer for all times', () => {
    const queue = newQueue();
    const timers = new Set<unknown>();
    const { setTimeout: real, clearTimeout: clear } = globalThis;
    mock.method(globalThis, 'setTimeout', (ring: () => void, ms: number) => {
      const timer = real(ring, ms);
      timers.add(timer);
      return timer;
    });
    mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
      timers.delete(timer);
      clear(timer);
    });
    const moments = Array.from({ length: 1_000 }, (_, index) => ((index * 7919) % 1_000) + 1);
    for (const ms of moments) queue.addAt(`1${ms}`, NOW + ms);
    assert.equal(timers.size, 1);
    for (let ms = 1; ms <= 1_000; ms++) {
      pass(1);
      assert.deepEqual(takeAll(queue), [`1${ms}`]);
    }
  });

  test('supports delays beyond the setTimeout maximum', () => {
    const queue = newQueue();
    queue.addAt('1a', NOW + 100 * DAY_MS);
    for (let day = 0; day < 99; day++) pass(DAY_MS);
    assert.deepEqual(takeAll(queue), []);
    pass(DAY_MS);
    assert.deepEqual(takeAll(queue), ['1a']);
  });

  test('keeps keys of a cluster that is not permitted', () => {
    const queue = newQueue();
    for (const key of ['1a', '2a', '1b']) queue.add(key);
    const isSecond = (cluster: string) => cluster === '2';
    assert.equal(queue.take(isSecond), '2a');
    assert.equal(queue.take(isSecond), undefined);
    assert.equal(queue.sizeOf(clusterName('1')), 2);
    assert.equal(queue.take(), '1a');
  });

  test('hands out and requeues nothing once stopped', () => {
    const queue = newQueue();
    for (const key of ['1a', '1b', '1c', '1d']) queue.add(key);
    queue.addAt('1e', NOW + 10);
    assert.deepEqual([queue.take(), queue.take(), queue.take()], ['1a', '1b', '1c']);
    queue.add('1a');
    queue.stop();
    queue.untake('1c');
    queue.done('1a');
    queue.failed('1b');
    queue.add('1f');
    queue.addAt('1g', NOW + 20);
    pass(DAY_MS);
    assert.equal(queue.take(), undefined);
    assert.equal(queue.size, 0);
  });
});
