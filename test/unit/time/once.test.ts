import assert from 'node:assert/strict';
import { test } from 'node:test';
import { once } from '#shared/time/cache.ts';

test('creates a value once, for its first caller', async (t) => {
  const make = t.mock.fn(async () => ({}));
  const made = once(make);
  assert.equal(make.mock.callCount(), 0);
  const [first, second] = await Promise.all([made(), made()]);
  assert.equal(first, second);
  assert.equal(await made(), first);
  assert.equal(make.mock.callCount(), 1);
});

test('rejects all waiting callers after a failure and creates the value for the next caller', async (t) => {
  const make = t.mock.fn(async () => 'made');
  make.mock.mockImplementationOnce(() => Promise.reject(new Error('not now')));
  const made = once(make);
  const results = [made(), made()];
  for (const each of results) await assert.rejects(each, { message: 'not now' });
  assert.equal(await made(), 'made');
  assert.equal(make.mock.callCount(), 2);
});
