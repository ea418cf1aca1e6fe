import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paced } from '#shared/kubernetes/http/pace.ts';

function busyFor(ms: number): void {
  const from = performance.now();
  while (performance.now() - from < ms);
}

test('yields to the rest of the process during a storm of small tasks and runs each task in turn', async () => {
  let others = 0;
  const count = () => {
    others += 1;
    ticking = setImmediate(count);
  };
  let ticking = setImmediate(count);
  const done: string[] = [];
  const storm = async (name: string) => {
    for (let piece = 0; piece < 20; piece += 1) {
      await paced();
      busyFor(4);
      done.push(name);
    }
  };
  await Promise.all([storm('a'), storm('b')]);
  clearImmediate(ticking);
  assert.ok(others >= 10, `${others} turns of others in 160 ms of work`);
  assert.ok(done.indexOf('b') < 4, done.join(''));
  assert.ok(done.lastIndexOf('a') > 35, done.join(''));
});
