import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mergeSorted } from '#shared/store/merge-sorted.ts';

const ascending = (a: number, b: number) => a - b;

async function* sequence(numbers: readonly number[], read: number[] = []): AsyncIterable<number> {
  for (const number of numbers) {
    read.push(number);
    yield number;
  }
}

test('merging sorted sequences gives all their elements, sorted', async () => {
  const sorted = fc.array(fc.integer()).map((numbers) => numbers.toSorted(ascending));
  await fc.assert(
    fc.asyncProperty(fc.array(sorted, { maxLength: 6 }), async (lists) => {
      const merged = await Array.fromAsync(
        mergeSorted(
          lists.map((list) => sequence(list)),
          ascending,
        ),
      );
      assert.deepEqual(merged, lists.flat().toSorted(ascending));
    }),
  );
});

test('each sequence is read one element ahead and no further', async () => {
  const read: number[] = [];
  const merged = mergeSorted([sequence([1, 4, 5], read), sequence([2, 3, 6], read)], ascending);
  assert.equal((await merged.next()).value, 1);
  assert.deepEqual(read, [1, 2]);
  assert.equal((await merged.next()).value, 2);
  assert.deepEqual(read, [1, 2, 4]);
});

test('a sequence that fails fails the whole', async () => {
  async function* broken(): AsyncIterable<number> {
    yield 1;
    throw new Error('broken');
  }
  await assert.rejects(Array.fromAsync(mergeSorted([broken(), sequence([2])], ascending)), /broken/);
});
