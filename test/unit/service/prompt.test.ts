import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as nextLoop } from 'node:timers/promises';
import { listenForLines } from '#functions/service/demo.ts';

/** Returns the effect of this input, followed by its end. */
async function readFrom(isTTY: boolean, text: string) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const read = { lines: [] as string[], quits: 0 };
  const prompt = listenForLines(input, () => {
    read.quits += 1;
  });
  prompt.onLine((line) => read.lines.push(line));
  const ended = once(input, 'end');
  input.end(text);
  await ended;
  await nextLoop();
  return read;
}

test("quits at the end of a terminal's input", async () => {
  assert.deepEqual(await readFrom(true, 'nodes\npods\n'), { lines: ['nodes', 'pods'], quits: 1 });
});

test('continues at the end of other input, because service managers provide none', async () => {
  assert.deepEqual(await readFrom(false, 'nodes\n'), { lines: ['nodes'], quits: 0 });
  assert.deepEqual(await readFrom(false, ''), { lines: [], quits: 0 });
});
