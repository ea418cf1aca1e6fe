import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { addConsoleCommand } from '#functions/cli/console.ts';
import type { LiveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { timeText } from '#shared/time/time-text.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { NOW, quiet } from './command-line.ts';

test('serves the console until stopped, prints a link, opens another link, and closes the fleet', async (t) => {
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
    untilRead: () => assert.fail('it serves it itself'),
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

test('matches tolerations that compare only with --comparison-operators', async (t) => {
  const clock = new DrivenClock(NOW);
  const pod = {
    metadata: { name: 'web', namespace: 'default', uid: 'web', creationTimestamp: timeText(NOW) },
    spec: { nodeName: 'node-1', tolerations: [{ key: 'level', operator: 'Gt', value: '3' }] },
  };
  const objects = {
    get: async () => undefined,
    async *list(path: string) {
      if (path.endsWith('/nodes')) yield { metadata: { name: 'node-1', uid: 'n' }, spec: {}, status: {} };
      if (path.endsWith('/pods')) yield pod;
    },
  };
  const live = { objects, close: () => undefined } as unknown as LiveCluster;
  const kept = async (...args: readonly string[]) => {
    const { fleet } = embeddedFleet(t, { clusters: ['prod'], clock }, { cluster: async () => live });
    const link = Promise.withResolvers<string>();
    const stop = Promise.withResolvers<void>();
    const program = new Command();
    const print = (text: string) => link.resolve(/http:\S+/.exec(text)?.[0] ?? '');
    addConsoleCommand(program, { fleet: () => fleet, clock, print } as unknown as CliDeps, {
      browser: () => undefined,
      untilStopped: () => stop.promise,
      untilRead: () => stop.promise,
    });
    const running = program.parseAsync(['console', '--no-open', ...args], { from: 'user' });
    const entered = await fetch(await link.promise);
    const [, path] = /url=(\/[^/]+\/)/.exec(await entered.text()) ?? [];
    const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
    const question = `${path}api/what-if?cluster=prod&taint=level=5:NoExecute&nodes=node-1`;
    const answer = await fetch(new URL(question, entered.url), { headers: { cookie } });
    stop.resolve();
    await running;
    return ((await answer.json()) as { readonly keep: number }).keep;
  };
  assert.deepEqual([await kept(), await kept('--comparison-operators')], [0, 1]);
});

test('gets a link from a running process and ends after a browser opened a second link', async (t) => {
  const clock = new DrivenClock(NOW);
  const links = ['a', 'b', 'c', 'd'].map((key) => `http://127.0.0.1:1/?key=${key}`);
  const { fleet } = embeddedFleet(
    t,
    { clusters: ['prod'], clock },
    { consoleLink: async () => links.shift() },
  );
  const done: string[] = [];
  const run = async (...args: string[]) => {
    const program = new Command();
    const deps = { fleet: () => fleet, clock, print: (text: string) => done.push(text) };
    addConsoleCommand(program, deps as unknown as CliDeps, {
      browser(url) {
        done.push(`opened ${url}`);
        return { close: () => done.push('closed') };
      },
      untilStopped: async () => done.push('served'),
      untilRead: async () => done.push('read'),
    });
    quiet(program, () => undefined);
    await program.parseAsync(['console', ...args], { from: 'user' });
    return done.splice(0);
  };
  const [first = '', ...rest] = await run();
  assert.match(first, /in one browser, within 1h\):\nhttp:\/\/127\.0\.0\.1:1\/\?key=a\n$/);
  assert.deepEqual(rest, ['opened http://127.0.0.1:1/?key=b', 'read', 'closed']);
  assert.match((await run('--no-open')).join(), /key=c\n$/);
  for (const own of [
    ['--host', '127.0.0.1'],
    ['--port', '0'],
    ['--comparison-operators'],
    ['--context', 'mine'],
  ])
    assert.equal((await run('--no-open', ...own))[0], 'served', `serves its own console with ${own[0]}`);
  await assert.rejects(run('--kubeconfig', 'mine'), /--kubeconfig requires --context NAME/);
});
