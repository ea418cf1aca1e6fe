import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AnswerLimitError } from '#shared/kubernetes/http/answer-limits.ts';
import { HalfLineError, splitLines } from '#shared/kubernetes/http/lines.ts';

async function* streamed(pieces: readonly string[]) {
  for (const piece of pieces) yield Buffer.from(piece);
}

const lines = async (pieces: readonly string[], maxBytes = 1000) =>
  (await Array.fromAsync(splitLines(streamed(pieces), maxBytes))).map(String);

describe('the lines of a text', () => {
  test('do not depend on how the text is cut into pieces', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string({ unit: fc.constantFrom('a', 'ä', '\n') })), async (pieces) => {
        const whole = pieces.join('');
        const expected = whole.split('\n');
        if (expected.pop() === '') assert.deepEqual(await lines(pieces), expected);
        else await assert.rejects(lines(pieces), HalfLineError);
      }),
    );
  });

  test('are read only on request', async () => {
    let read = 0;
    async function* stream() {
      for (const piece of ['a\n', 'b\n', 'c\n']) {
        read += 1;
        yield Buffer.from(piece);
      }
    }
    const first = splitLines(stream(), 10);
    await first.next();
    assert.equal(read, 1);
    await first.return();
  });

  test('may reach their limit in any pieces, but not exceed it', async () => {
    assert.deepEqual(await lines(['12', '345\n', '12345\n'], 5), ['12345', '12345']);
    for (const pieces of [['123456\n'], ['123', '456\n'], ['123', '456']]) {
      await assert.rejects(lines(pieces, 5), AnswerLimitError);
    }
  });
});
