import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { DeadLetters } from '#functions/local/dead-letters.ts';
import { openDatabase } from '#functions/local/sqlite-database.ts';
import { DEAD_LETTER_RETENTION_SECONDS } from '#shared/queues/queue-set.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const NOW = Date.UTC(2026, 10, 21, 12);

describe('DeadLetters', () => {
  let directory: string;
  let closers: (() => void)[] = [];
  let clock: DrivenClock;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'dead-letters-'));
    clock = new DrivenClock(NOW);
    closers = [];
  });
  afterEach(() => {
    for (const close of closers) close();
    rmSync(directory, { recursive: true });
  });

  /** The letters in the one file, as another process sees them. */
  function open() {
    const database = openDatabase(join(directory, 'store.sqlite'));
    closers.push(() => database.close());
    const log = recordingLog();
    return { letters: new DeadLetters({ database, clock, log }), log, database };
  }

  test('are there for whoever opens the file next, with queue, moment and reason', () => {
    open().letters.add('pod-deltas.fifo', { body: 'poison', groupId: 'g' }, 'received 5 times');
    const { letters } = open();
    letters.add('evictions-due', { body: 'other' }, 'is not JSON');
    assert.deepEqual(letters.list(), [
      {
        id: 1,
        queue: 'pod-deltas.fifo',
        at: NOW,
        reason: 'received 5 times',
        body: 'poison',
        groupId: 'g',
      },
      { id: 2, queue: 'evictions-due', at: NOW, reason: 'is not JSON', body: 'other' },
    ]);
  });

  test('come by a sender too, which takes the reason from the attribute', async () => {
    const { letters } = open();
    const message = { body: 'poison', groupId: 'g', attributes: { reason: 'kind: must be node' } };
    assert.deepEqual(await letters.sender('node-deltas.fifo').send([message]), []);
    assert.deepEqual(
      letters.list().map(({ queue, body, groupId, reason }) => [queue, body, groupId, reason]),
      [['node-deltas.fifo', 'poison', 'g', 'kind: must be node']],
    );
  });

  test('are taken once somebody asked for them to be sent again, and are none any more', () => {
    const { letters } = open();
    for (const body of ['a', 'b', 'c']) letters.add('evictions-due', { body }, 'why');
    assert.deepEqual(letters.takeRedriven(), []);
    const operator = open().letters;
    assert.equal(operator.redrive(3), true);
    assert.equal(operator.redrive(1), true);
    assert.equal(operator.redrive(4), false);
    assert.deepEqual(
      letters.takeRedriven().map(({ body }) => body),
      ['a', 'c'],
    );
    assert.deepEqual(letters.takeRedriven(), []);
    assert.deepEqual(
      operator.list().map(({ body }) => body),
      ['b'],
    );
    letters.add('evictions-due', { body: 'd' }, 'why');
    assert.equal(letters.list().at(-1)?.id, 4, 'an id is never given twice');
  });

  test('are kept for fourteen days', async () => {
    const { letters } = open();
    letters.add('evictions-due', { body: 'old' }, 'why');
    await clock.advanceTo(NOW + 1);
    letters.add('evictions-due', { body: 'new' }, 'why');
    await clock.advanceTo(NOW + DEAD_LETTER_RETENTION_SECONDS * 1000 - 1);
    letters.purge();
    assert.equal(letters.list().length, 2);
    await clock.advanceTo(NOW + DEAD_LETTER_RETENTION_SECONDS * 1000);
    letters.purge();
    assert.deepEqual(
      letters.list().map(({ body }) => body),
      ['new'],
    );
  });

  test('are a thousand at most: the oldest go, and that is told', () => {
    const { letters, log, database } = open();
    database.exec('PRAGMA synchronous = OFF');
    for (let index = 1; index <= 1002; index++) letters.add('evictions-due', { body: String(index) }, 'why');
    const kept = letters.list();
    assert.deepEqual([kept.length, kept[0]?.body, kept.at(-1)?.body], [1000, '3', '1002']);
    assert.deepEqual(
      log.lines.map(({ event, fields }) => [event, fields['id']]),
      [
        ['dead-letter.dropped', 1],
        ['dead-letter.dropped', 2],
      ],
    );
  });

  test('say what is wrong with their file', () => {
    const { letters, database } = open();
    database.exec('DROP TABLE dead_letters');
    const expected = { name: 'StoreError', message: /store\.sqlite cannot be used: no such table/ };
    assert.throws(() => letters.list(), expected);
    assert.throws(() => letters.add('evictions-due', { body: 'a' }, 'why'), expected);
  });
});
