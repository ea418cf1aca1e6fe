import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OneAtATime } from '#functions/in-cluster/one-at-a-time.ts';

test('work on one thing is done in the order in which it was begun, that on others meanwhile', async () => {
  const turns = new OneAtATime();
  const done: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = turns.run('a', () => gate.promise.then(() => void done.push('a1')));
  const second = turns.run('a', async () => void done.push('a2'));
  await turns.run('b', async () => void done.push('b1'));
  gate.resolve();
  await Promise.all([first, second]);
  assert.deepEqual(done, ['b1', 'a1', 'a2']);
});

test('work that fails keeps none that waits for it from being done', async () => {
  const turns = new OneAtATime();
  const failing = turns.run('a', () => Promise.reject(new Error('refused')));
  const next = turns.run('a', async () => 'done');
  await assert.rejects(failing, /refused/);
  assert.equal(await next, 'done');
});
