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
  /** A loop that notes the times at which it reconciles. */
  function loopOf(reconcile: (loop: ReconcileLoop, now: number) => number | undefined) {
    const passes: number[] = [];
    const noted = (now: number) => {
      passes.push(now);
      return reconcile(loop, now);
    };
    const loop: ReconcileLoop = new ReconcileLoop({ name: 'test', reconcile: noted }, () => Date.now());
    return { loop, passes };
  }

  test('reconciles once for any number of simultaneous changes', () => {
    const { loop, passes } = loopOf(() => undefined);
    loop.trigger();
    loop.trigger();
    assert.equal(passes.length, 0);
    pass(100);
    assert.equal(passes.length, 1);
    pass(10_000);
    assert.equal(passes.length, 1);
  });

  test('reconciles at the requested time, or earlier after a change', () => {
    const { loop, passes } = loopOf((_, now) => (now < 1000 ? 5000 : undefined));
    loop.trigger();
    pass(2000);
    assert.equal(passes.length, 1);
    pass(3000);
    assert.equal(passes.at(-1), 5000);
    loop.trigger();
    pass(100);
    assert.equal(passes.length, 3);
  });

  test('reconciles again before waiting if it triggered itself', () => {
    const { loop, passes } = loopOf((itself) => {
      if (passes.length < 3) itself.trigger();
      return 1_000_000;
    });
    loop.trigger();
    pass(100);
    assert.equal(passes.length, 3);
  });

  test('retries one second after a failure, regardless of earlier triggers', () => {
    const { loop, passes } = loopOf((itself) => {
      itself.trigger();
      throw new Error('disk full');
    });
    loop.trigger();
    pass(1000);
    assert.equal(passes.length, 1);
    pass(200);
    assert.equal(passes.length, 2);
  });
});
