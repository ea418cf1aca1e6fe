import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { addConsoleCommand } from '#functions/cli/console.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { NOW, quiet } from './command-line.ts';

test('taintward console serves until it is stopped, prints a link and opens another, and leaves the fleet closed', async (t) => {
  const clock = new DrivenClock(NOW);
  const ended: string[] = [];
  const { fleet } = embeddedFleet(t, { clusters: ['prod'], clock }, { close: () => ended.push('fleet') });
  const [printed, opened]: [string[], string[]] = [[], []];
  const stop = Promise.withResolvers<void>();
  const program = new Command();
  const deps = { fleet: () => fleet, clock, print: (text: string) => printed.push(text) };
  addConsoleCommand(program, deps as unknown as CliDeps, {
    browser(url) {
      opened.push(url);
      return { close: () => ended.push('browser') };
    },
    untilStopped: () => stop.promise,
  });
  quiet(program, () => undefined);
  const running = program.parseAsync(['console'], { from: 'user' });
  await t.waitFor(() => assert.equal(printed.length, 2), { timeout: 20_000 });
  const [, link = ''] = /\n(http:\/\/127\.0\.0\.1:\d+\/\?key=\S+)\n$/.exec(printed[0] ?? '') ?? [];
  assert.notEqual(opened[0], link);
  for (const each of [link, opened[0] ?? '']) assert.equal((await fetch(each)).status, 200);
  stop.resolve();
  await running;
  assert.deepEqual(ended, ['browser', 'fleet']);
  await assert.rejects(fetch(link));
  await assert.rejects(program.parseAsync(['console', '--host', '0.0.0.0'], { from: 'user' }), CliError);
});
