import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { ReconcileLoop } from '#simulator/controllers/reconcile-loop.ts';

describe('a reconcile loop', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 0 }));
  afterEach(() => mock.timers.reset());

  /** Advances in steps, because within one tick the mocked clock shows its end. */
  const pass = (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) mock.timers.tick(100);
  };
  const loopOf = (reconcile: (now: number) => number | undefined) =>
    new ReconcileLoop({ name: 'test', reconcile }, () => Date.now());

  test('reconciles once for any number of simultaneous changes', () => {
    let looks = 0;
    const loop = loopOf(() => {
      looks += 1;
      return undefined;
    });
    loop.trigger();
    loop.trigger();
    assert.equal(looks, 0);
    pass(100);
    assert.equal(looks, 1);
    pass(10_000);
    assert.equal(looks, 1);
  });

  test('reconciles at the requested time, or earlier after a change', () => {
    const looks: number[] = [];
    const loop = loopOf((now) => {
      looks.push(now);
      return now < 1000 ? 5000 : undefined;
    });
    loop.trigger();
    pass(2000);
    assert.equal(looks.length, 1);
    pass(3000);
    assert.deepEqual(looks.at(-1), 5000);
    loop.trigger();
    pass(100);
    assert.equal(looks.length, 3);
  });

  test('reconciles again before waiting if it triggered itself', () => {
    let looks = 0;
    const loop: ReconcileLoop = loopOf(() => {
      looks += 1;
      if (looks < 3) loop.trigger();
      return 1_000_000;
    });
    loop.trigger();
    pass(100);
    assert.equal(looks, 3);
  });

  test('retries one second after a failure, regardless of earlier triggers', () => {
    let looks = 0;
    const loop: ReconcileLoop = loopOf(() => {
      looks += 1;
      loop.trigger();
      throw new Error('disk full');
    });
    loop.trigger();
    pass(1000);
    assert.equal(looks, 1);
    pass(200);
    assert.equal(looks, 2);
  });
});
