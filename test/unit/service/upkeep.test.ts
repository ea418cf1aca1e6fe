import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextLoop } from 'node:timers/promises';
import { startUpkeep } from '#functions/service/upkeep.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { givesBack } from '#test/world/given-back.ts';

test('runs each task at its interval despite failures of tasks', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const log = recordingLog();
  const done: string[] = [];
  const locked = new Error('the database is locked');
  const task = (name: string, everyMs: number, fails: (times: number) => boolean) => ({
    name,
    everyMs,
    async run() {
      done.push(name);
      if (fails(done.filter((other) => other === name).length)) throw locked;
    },
  });
  const upkeep = startUpkeep(
    [task('purge', 10, (times) => times === 1), task('rearm', 20, () => false)],
    log,
  );
  const pass = async (ms: number) => {
    context.mock.timers.tick(ms);
    await nextLoop();
  };
  await pass(10);
  assert.deepEqual(done, ['purge']);
  await pass(10);
  assert.deepEqual(done, ['purge', 'purge', 'rearm']);
  await upkeep.stop();
  await pass(20);
  assert.deepEqual(done, ['purge', 'purge', 'rearm']);
  assert.deepEqual(
    log.lines.map(({ event, fields }) => [event, fields]),
    [['maintenance.failed', { task: 'purge', error: locked }]],
  );
});

test('waits for the running task when stopping', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const gate = Promise.withResolvers<void>();
  const upkeep = startUpkeep([{ name: 'slow', everyMs: 10, run: () => gate.promise }], recordingLog());
  context.mock.timers.tick(10);
  await nextLoop();
  let stopped = false;
  const stopping = upkeep.stop().then(() => {
    stopped = true;
  });
  await nextLoop();
  assert.equal(stopped, false);
  gate.resolve();
  await stopping;
});

test('leaves no timer after the stop', () =>
  givesBack(() => {
    const task = { name: 'purge', everyMs: 3_600_000, run: () => undefined };
    return startUpkeep([task], recordingLog()).stop();
  }));

test('runs a task on request, but begins none after the stop', async () => {
  const gate = Promise.withResolvers<void>();
  const done: string[] = [];
  const task = (name: string, run: () => Promise<void> = async () => undefined) => ({
    name,
    everyMs: 3_600_000,
    run: () => run().then(() => void done.push(name)),
  });
  const upkeep = startUpkeep([], recordingLog());
  upkeep.now(task('slow', () => gate.promise));
  upkeep.now(task('rearm'));
  await nextLoop();
  assert.deepEqual(done, []);
  gate.resolve();
  await nextLoop();
  assert.deepEqual(done, ['slow', 'rearm']);
  const last = Promise.withResolvers<void>();
  upkeep.now(task('last', () => last.promise));
  upkeep.now(task('waiting'));
  await nextLoop();
  const stopping = upkeep.stop();
  upkeep.now(task('late'));
  last.resolve();
  await stopping;
  await nextLoop();
  assert.deepEqual(done, ['slow', 'rearm', 'last']);
});
