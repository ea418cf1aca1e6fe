import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PendingReader } from '#functions/console/page/pending-reader.ts';
import type { PendingPage } from '#shared/console/api.ts';
import { settled } from '#test/world/turns.ts';

/** Returns a reader whose server answers when the test does, and the totals that it showed. */
function bench() {
  const reads: PromiseWithResolvers<PendingPage>[] = [];
  const shown: number[] = [];
  const reader = new PendingReader(
    () => {
      const read = Promise.withResolvers<PendingPage>();
      reads.push(read);
      return read.promise;
    },
    ({ total }) => shown.push(total),
  );
  /** Answers the read with this number, from 0. The total tells answers apart. */
  const answer = (nth: number, version: number, total: number) =>
    reads[nth]?.resolve({ version, at: 0, total, rows: [] });
  return { reader, reads, shown, answer };
}

test('reads the pending evictions of each version once', async () => {
  const { reader, reads, shown, answer } = bench();
  const first = reader.announce(1);
  answer(0, 1, 10);
  await first;
  await reader.announce(1);
  const second = reader.announce(2);
  answer(1, 2, 20);
  await second;
  assert.deepEqual([shown, reads.length], [[10, 20], 2]);
});

test('reads again when the version changed during a read', async () => {
  const { reader, shown, answer } = bench();
  const reading = reader.announce(1);
  await reader.announce(2);
  answer(0, 1, 10);
  await settled();
  answer(1, 2, 20);
  await reading;
  assert.deepEqual(shown, [10, 20]);
});

test('does not read again for a version that an answer already had', async () => {
  const { reader, reads, answer } = bench();
  const reading = reader.announce(1);
  answer(0, 3, 10);
  await reading;
  await reader.announce(3);
  assert.equal(reads.length, 1);
});

test('reads again after a reconnect, even if the restarted server has the same version', async () => {
  const { reader, shown, answer } = bench();
  const before = reader.announce(1);
  answer(0, 1, 10);
  await before;
  reader.reconnected();
  const after = reader.announce(1);
  answer(1, 1, 20);
  await after;
  assert.deepEqual(shown, [10, 20]);
});

test('ignores a late answer of the server before a restart, whose version was higher', async () => {
  const { reader, shown, answer } = bench();
  const reading = reader.announce(100);
  reader.reconnected();
  await reader.announce(1);
  answer(0, 100, 10);
  await settled();
  answer(1, 1, 20);
  await reading;
  assert.deepEqual(shown, [20]);
});

test('reads once from a restarted server that has not announced its version', async () => {
  const { reader, reads, shown, answer } = bench();
  void reader.announce(100);
  reader.reconnected();
  answer(0, 100, 10);
  await settled();
  answer(1, 1, 20);
  await settled();
  assert.deepEqual([shown, reads.length], [[20], 2]);
});

test('reads again after a failed read', async () => {
  const { reader, reads, shown, answer } = bench();
  const failing = reader.announce(1);
  reads[0]?.reject(new Error('out of reach'));
  await assert.rejects(failing, /out of reach/);
  const reading = reader.announce(1);
  answer(1, 1, 10);
  await reading;
  assert.deepEqual(shown, [10]);
});
