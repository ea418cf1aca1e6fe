import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { RemovalRecorder } from '#shared/engine/watch/removal-recorder.ts';
import { clusterName, podUid } from '#shared/eviction/identity.ts';
import { StoreError } from '#shared/state/store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';

const SECOND = 1000;

function notesOf(context: TestContext) {
  const time = driveTimers(context, 0);
  const stopping = new AbortController();
  const written: string[][] = [];
  const state = { away: false, answer: Promise.resolve() };
  const log = recordingLog();
  const outcomes: string[] = [];
  const notes = new RemovalRecorder(clusterName('c1'), {
    history: {
      noteGone: async (_cluster, pods) => {
        await state.answer;
        if (state.away) throw new StoreError('the table is away');
        written.push(pods.map(({ uid, at }) => `${uid}@${at}`));
      },
    },
    log,
    noted: (error) => outcomes.push(error === undefined ? 'noted' : 'failed'),
    signal: stopping.signal,
  });
  const gone = (...uids: readonly string[]) =>
    notes.add(uids.map((uid) => ({ uid: podUid(uid), at: Date.now() })));
  return { time, stopping, written, outcomes, state, log, notes, gone };
}

test('records removals within two seconds by one write, also after a call without any', async (context) => {
  const { time, written, gone } = notesOf(context);
  gone();
  gone('a');
  await time.pass(SECOND);
  gone('b');
  await time.pass(2 * SECOND);
  gone('c');
  await time.pass(2 * SECOND);
  assert.deepEqual(written, [['a@0', 'b@1000'], ['c@3000']]);
});

test('keeps a failed write, and writes it later with its time', async (context) => {
  const { time, written, outcomes, state, log, gone } = notesOf(context);
  state.away = true;
  gone('a');
  await time.pass(3 * SECOND);
  gone('b');
  state.away = false;
  await time.pass(60 * SECOND);
  assert.deepEqual(written, [['a@0', 'b@3000']]);
  assert.deepEqual(outcomes, ['failed', 'noted']);
  const fields = { cluster: 'c1', pods: 1, error: new StoreError('the table is away') };
  assert.deepEqual(log.lines, [{ level: 'warn', event: 'history.write-failed', fields }]);
});

test('keeps the newest 20,000 removals while it cannot write, and tries ever more rarely', async (context) => {
  const { time, written, outcomes, state, gone } = notesOf(context);
  state.away = true;
  gone(...Array.from({ length: 20_001 }, (_, index) => `u${index}`));
  await time.pass(10 * 60 * SECOND);
  assert.ok(outcomes.length >= 12 && outcomes.length <= 25, `${outcomes.length} tries`);
  gone('u20001', 'u20002');
  state.away = false;
  await time.pass(61 * SECOND);
  const [uids = []] = written;
  assert.deepEqual([uids.length, uids[0], uids.at(-1)], [20_000, 'u3@0', 'u20002@600000']);
});

for (const [outcome, away] of Object.entries({ succeeds: false, fails: true })) {
  test(`writes a removal that was seen during a write that ${outcome}`, async (context) => {
    const { time, written, state, gone } = notesOf(context);
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    Object.assign(state, { away, answer: promise });
    gone('a');
    await time.pass(2 * SECOND);
    gone('b');
    answer();
    await time.settle();
    state.away = false;
    await time.pass(2 * SECOND);
    assert.deepEqual(written, away ? [['a@0', 'b@2000']] : [['a@0'], ['b@2000']]);
  });
}

test('gathers removals for two seconds again after failures are over', async (context) => {
  const { time, written, state, gone } = notesOf(context);
  state.away = true;
  gone('a');
  await time.pass(40 * SECOND);
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  Object.assign(state, { away: false, answer: promise });
  await time.pass(60 * SECOND);
  gone('b');
  answer();
  await time.pass(2 * SECOND);
  assert.deepEqual(written, [['a@0'], ['b@100000']]);
});

test('writes the last removals immediately when it stops, and tries once', async (context) => {
  const { stopping, written, state, notes, gone } = notesOf(context);
  gone('a');
  stopping.abort();
  await notes.written();
  assert.deepEqual(written, [['a@0']]);
  state.away = true;
  gone('b');
  await notes.written();
  assert.equal(written.length, 1);
});
