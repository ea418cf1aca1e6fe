import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RefreshingCache } from '#shared/time/cache.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const START = 1_000_000;
const REFRESH_MS = 60_000;
const USELESS_MS = 100_000;

/**
 * Returns a cache whose n-th obtained value is `n`. `failing` makes obtaining a value fail, and `answersAt` delays it.
 */
function counted() {
  const clock = new DrivenClock(START);
  const state = { count: 0, failing: false, freshForMs: REFRESH_MS, answersAt: START };
  const value = new RefreshingCache(async () => {
    state.count += 1;
    await clock.advanceTo(Math.max(clock.now(), state.answersAt));
    if (state.failing) throw new Error(`failure ${state.count}`);
    return { value: state.count, freshForMs: state.freshForMs, servesForMs: USELESS_MS };
  }, clock);
  return { clock, state, value };
}

test('obtains a value once for concurrent and later callers until its refresh is due', async () => {
  const { clock, value } = counted();
  assert.deepEqual(await Promise.all([value.get(), value.get(), value.get()]), [1, 1, 1]);
  await clock.advanceTo(START + REFRESH_MS - 1);
  assert.equal(await value.get(), 1);
  await clock.advanceTo(START + REFRESH_MS);
  assert.deepEqual(await Promise.all([value.get(), value.get()]), [2, 2]);
});

test("serves a value that can't be refreshed until it expires and retries the refresh every 10 s", async () => {
  const { clock, state, value } = counted();
  await value.get();
  state.failing = true;
  await clock.advanceTo(START + REFRESH_MS);
  assert.equal(await value.get(), 1);
  assert.equal(await value.get(), 1);
  assert.equal(state.count, 2);
  await clock.advanceTo(START + REFRESH_MS + 10_000);
  assert.equal(await value.get(), 1);
  assert.equal(state.count, 3);
  await clock.advanceTo(START + USELESS_MS);
  await assert.rejects(value.get(), /failure 4/);
  state.failing = false;
  assert.equal(await value.get(), 5);
});

test('does not cache a failure of the first read', async () => {
  const { state, value } = counted();
  state.failing = true;
  await assert.rejects(value.get(), /failure 1/);
  state.failing = false;
  assert.equal(await value.get(), 2);
});

test('obtains a forgotten value again and does not serve the old value when that fails', async () => {
  const { clock, state, value } = counted();
  await value.get();
  await clock.advanceTo(START + 5_000);
  value.forget();
  assert.equal(await value.get(), 2);
  await clock.advanceTo(START + 10_000);
  value.forget();
  state.failing = true;
  await assert.rejects(value.get(), /failure 3/);
});

test('refreshes once for many complaints about one value', async () => {
  const { clock, state, value } = counted();
  await value.get();
  await clock.advanceTo(START + 5_000);
  for (let complaint = 0; complaint < 10; complaint++) {
    value.forget();
    assert.equal(await value.get(), 2);
  }
  assert.equal(state.count, 2);
});

test('retries immediately when a value expires shortly after a failed refresh', async () => {
  const { clock, state, value } = counted();
  await value.get();
  state.failing = true;
  await clock.advanceTo(START + USELESS_MS - 1_000);
  assert.equal(await value.get(), 1);
  await clock.advanceTo(START + USELESS_MS);
  await assert.rejects(value.get(), /failure 3/);
});

test('refreshes a short-lived value on time, although the previous refresh failed', async () => {
  const { clock, state, value } = counted();
  await value.get();
  state.failing = true;
  await clock.advanceTo(START + REFRESH_MS);
  assert.equal(await value.get(), 1);
  state.failing = false;
  state.freshForMs = 2_000;
  await clock.advanceTo(START + REFRESH_MS + 1_000);
  value.forget();
  assert.equal(await value.get(), 3);
  await clock.advanceTo(START + REFRESH_MS + 3_000);
  assert.equal(await value.get(), 4);
});

test('keeps a value that was obtained just now, however long that took', async () => {
  const { state, value } = counted();
  state.answersAt = START + 6_000;
  await value.get();
  value.forget();
  assert.equal(await value.get(), 1);
});
