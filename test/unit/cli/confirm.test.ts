import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { confirmBy, terminalConfirm } from '#functions/cli/confirm.ts';

/** Returns the result of a prompt that is answered with these bytes, after which the input ends. */
async function answered(bytes: string) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const confirmed = confirmBy({ input, output }, 'Start evicting pods?');
  input.end(bytes);
  const isConfirmed = await confirmed;
  output.end();
  return { isConfirmed, question: await text(output) };
}

describe('a prompt', () => {
  for (const yes of ['y\n', 'yes\n', 'Y\n', 'YES\n', 'y\r\n']) {
    test(`is confirmed by ${JSON.stringify(yes)}`, async () => {
      assert.equal((await answered(yes)).isConfirmed, true);
    });
  }

  for (const no of ['\n', '\r\n', 'n\n', 'no\n', 'yeah\n', ' \n', 'ny\n', 'yn\n', '\ny\n', '']) {
    test(`is not confirmed by ${JSON.stringify(no)}`, async () => {
      assert.equal((await answered(no)).isConfirmed, false);
    });
  }

  test('offers no as the default', async () => {
    assert.equal((await answered('\n')).question, 'Start evicting pods? [y/N] ');
  });
});

describe('a terminal', () => {
  test('shows the prompt on standard error, and nothing on standard output', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const streams = { stdin, stdout, stderr };
    const confirmed = terminalConfirm(streams)?.('Start evicting pods?');
    stdin.end('y\n');
    assert.equal(await confirmed, true);
    stdout.end();
    stderr.end();
    assert.deepEqual([await text(stdout), await text(stderr)], ['', 'Start evicting pods? [y/N] ']);
  });

  test('is required for a prompt', () => {
    assert.equal(terminalConfirm({ stdin: new PassThrough(), stderr: new PassThrough() }), undefined);
  });
});
