import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { splitLines } from '#shared/kubernetes/split-lines.ts';

test('however a text is cut into pieces, its lines are the same', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '\n') })), async (pieces) => {
      async function* stream() {
        yield* pieces;
      }
      const lines = pieces.join('').split('\n');
      if (lines.at(-1) === '') lines.pop();
      assert.deepEqual(await Array.fromAsync(splitLines(stream())), lines);
    }),
  );
});

test('it reads on only when a line is asked for', async () => {
  let read = 0;
  async function* stream() {
    for (const piece of ['a\n', 'b\n', 'c\n']) {
      read += 1;
      yield piece;
    }
  }
  const lines = splitLines(stream());
  await lines.next();
  assert.equal(read, 1);
  await lines.return();
});
