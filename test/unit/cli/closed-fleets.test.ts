import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { withCluster } from '#functions/cli/takeover/reach.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import type { LiveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { NOW, quiet } from './command-line.ts';
import { plainOutput } from './plain-output.ts';

/** Returns a command line of each command that does something, with its required arguments and options. */
const commandLines = (command: Command, names: readonly string[] = []): readonly (readonly string[])[] =>
  command.commands.length > 0
    ? command.commands.flatMap((each) => commandLines(each, [...names, each.name()]))
    : [
        [
          ...names,
          ...command.registeredArguments.map(({ variadic }) =>
            variadic ? 'prod' : (ARGUMENTS[names.join(' ')] ?? 'prod'),
          ),
          ...command.options.flatMap(({ mandatory, long }) => (mandatory && long ? [long, 'a test'] : [])),
          ...(command.options.some(({ long }) => long === '--yes') ? ['--yes'] : []),
        ],
      ];

/** The first argument, where that is no cluster. */
const ARGUMENTS: Readonly<Record<string, string>> = { explain: 'shop/web-0' };

const unavailable = async () => {
  throw new FleetError('The table is unavailable.');
};

/** Questions to a cluster. */
const QUESTIONS = [
  'explain pod d/p --cluster prod',
  'explain node n --cluster prod',
  'hold pod d/p --cluster prod --reason x',
  'what-if prod --taint a:NoExecute --nodes n',
].map((line) => line.split(' '));

/** Throws at once: lists are async iterables, whose promise nobody would handle. */
const throwing = () => {
  throw new FleetError('The cluster is unavailable.');
};

const unanswering = (parts: object): object =>
  new Proxy(parts, { get: (target, name) => Reflect.get(target, name) ?? throwing });

async function* unreadable() {
  yield await unavailable();
}

/** Fleets in which everything, nothing, or nothing but the names of clusters works. */
const FLEETS: Readonly<Record<string, (working: Fleet) => Fleet>> = {
  works: (working) => working,
  'rejects every question': (working) => ({
    ...working,
    clusters: unavailable,
    manages: unavailable,
    operator: unavailable,
  }),
  'knows only names': (working) => ({
    ...working,
    operator: unavailable,
    rulesStore: new Proxy(working.rulesStore, { get: () => unavailable }),
    store: new Proxy(working.store, {
      get: (_, name) => (name === 'taintedNodes' ? unreadable : unavailable),
    }),
    leases: new Proxy(working.leases, { get: () => unavailable }),
  }),
};

for (const [what, make] of Object.entries(FLEETS)) {
  test(`each command closes each fleet and cluster that it opens, if the fleet ${what}`, async (t) => {
    // Completions bypass `print`.
    t.mock.method(console, 'log', () => undefined);
    const clock = new DrivenClock(NOW);
    const { fleet } = embeddedFleet(t, { clusters: ['prod', 'stage'], clock });
    let [opened, closed] = [0, 0];
    const open = (): Fleet => {
      opened += 1;
      return { ...make({ ...fleet, cluster }), close: () => (closed += 1) };
    };
    const cluster = async () => {
      opened += 1;
      const close = () => (closed += 1);
      // A takeover needs and closes only the objects.
      const live = { name: 'prod', api: unanswering({}), objects: unanswering({ close }), close };
      return live as unknown as LiveCluster;
    };
    const deps: CliDeps = {
      ...plainOutput().deps,
      fleet: async () => open(),
      live: async () => open(),
      clock,
      connect: () => {
        throw new FleetError('The cluster is unavailable.');
      },
    };
    const all = commandLines(createProgram(deps)).filter(([name]) => name !== 'console');
    for (const words of [
      ...all,
      ...all.map((line) => [...line, '--context', 'prod']),
      ...QUESTIONS,
      ['complete', '--', 'stop', ''],
    ]) {
      const program = createProgram(deps);
      quiet(program, () => undefined);
      await program.parseAsync(words, { from: 'user' }).catch(() => undefined);
      assert.equal(closed, opened, `taintward ${words.join(' ')}`);
    }
    assert.ok(opened > 20, `${opened} fleets`);
  });
}

test('a fleet that cannot tell whether it manages a cluster is closed', async (t) => {
  const { fleet } = embeddedFleet(t, { clusters: [], clock: new DrivenClock(NOW) });
  const close = t.mock.fn();
  const deps = {
    ...plainOutput().deps,
    connect: () => ({ host: 'prod' }),
    live: async () => ({ ...fleet, manages: unavailable, close }),
    clock: new DrivenClock(NOW),
  } as unknown as CliDeps;
  const command = new Command().option('--context <name>').parse(['--context', 'prod'], { from: 'user' });
  const noted = withCluster(undefined, command, deps, (_, note) => note('cluster-added', 'applied'));
  await assert.rejects(noted, FleetError);
  assert.equal(close.mock.callCount(), 1);
});
