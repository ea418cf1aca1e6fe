import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { startDemo } from '#functions/service/demo.ts';
import { systemClock } from '#shared/time/clock.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

function directory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'demo-'));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** Returns the invitation that is printed at the start. */
async function invitation(t: TestContext, isToTerminal: boolean, link?: () => string): Promise<string> {
  const dir = directory(t);
  const printed: string[] = [];
  const voice = { log: recordingLog(), print: (line: string) => printed.push(line), isToTerminal };
  const demo = await startDemo(dir, systemClock, voice, () => undefined);
  demo.invite(link);
  await demo.close();
  return printed.join('\n');
}

test('a user quits by Ctrl-D, which ends the input of a terminal', async (t) => {
  const input = Object.assign(new PassThrough(), { isTTY: true });
  t.mock.getter(process, 'stdin', () => input);
  const dir = directory(t);
  const { promise: quit, resolve } = Promise.withResolvers<void>();
  const voice = { log: recordingLog(), print: () => undefined, isToTerminal: true };
  const demo = await startDemo(dir, systemClock, voice, resolve);
  input.end();
  await quit;
  await demo.close();
});

test('prints a link to the console at the start only on a terminal, because other outputs may be logs', async (t) => {
  const link = t.mock.fn(() => 'http://127.0.0.1:1/?key=secret');
  assert.match(await invitation(t, true, link), /"console"\):\n.*key=secret/);
  assert.equal(link.mock.callCount(), 1);
  const piped = await invitation(t, false, link);
  assert.match(
    piped,
    /To taint nodes in the console, type "console" for a link \(works once, in one browser, within 1h\)\.\n/,
  );
  assert.equal(link.mock.callCount(), 1, 'none is made that nobody is told');
  assert.doesNotMatch(await invitation(t, true), /"console"/);
});

test('logs a failure within the simulated cluster', async (t) => {
  const dir = directory(t);
  writeFileSync(join(dir, 'simulated-cluster.db'), 'damaged');
  const log = recordingLog();
  const voice = { log, print: () => undefined, isToTerminal: false };
  const demo = await startDemo(dir, systemClock, voice, () => undefined);
  await demo.close();
  assert.equal(log.lines[0]?.event, 'simulated-cluster.state-damaged');
});
