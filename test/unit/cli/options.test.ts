import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import type { FleetChoice } from '#shared/operations/fleet/fleet-choice.ts';
import { leavesOf } from '../../../docs/generator/cli-page.ts';
import { commandLine } from './command-line.ts';

const program = createProgram({} as CliDeps);
const commands = leavesOf(program, program.createHelp());

test('four options have a short form, which is the same in every command', () => {
  const options = commands.flatMap((command) => command.options);
  const forms = options.flatMap(({ short, long }) => (short ? [`${short} ${long}`] : []));
  assert.deepEqual(
    new Set(forms.toSorted()),
    new Set(['-f --file', '-n --namespace', '-o --output', '-w --watch']),
  );
});

const VARIABLES = ['TAINTWARD_STATE_DIR', 'TAINTWARD_TABLE'] as const;
type Environment = { readonly [Name in (typeof VARIABLES)[number]]?: string };
const STATE: Environment = { TAINTWARD_STATE_DIR: 'left' };
const TABLE: Environment = { TAINTWARD_TABLE: 'fleet' };

describe('the fleet', () => {
  const chosen = async (t: Parameters<typeof commandLine>[0], args: string, environment: Environment) => {
    const { run, state } = commandLine(t);
    Object.assign(process.env, environment);
    try {
      await run('holds', ...args.split(' ').filter(Boolean));
    } finally {
      for (const name of VARIABLES) delete process.env[name];
    }
    const { stateDir, table, inClusterContext, inClusterNamespace }: FleetChoice = state.where ?? {};
    return JSON.parse(JSON.stringify({ stateDir, table, inClusterContext, inClusterNamespace }));
  };

  const CHOICES: readonly (readonly [string, Environment, FleetChoice])[] = [
    ['', STATE, { stateDir: 'left' }],
    ['', TABLE, { table: 'fleet' }],
    ['--state-dir dir', STATE, { stateDir: 'dir' }],
    ['--state-dir=dir', TABLE, { stateDir: 'dir' }],
    ['--table other', TABLE, { table: 'other' }],
    ['--table=other', STATE, { table: 'other' }],
    [
      '--in-cluster-context c --in-cluster-namespace=n',
      {},
      { inClusterContext: 'c', inClusterNamespace: 'n' },
    ],
  ];
  for (const [args, environment, choice] of CHOICES)
    test(`is ${JSON.stringify(choice)} with ${args || 'no option'} and ${JSON.stringify(environment)}`, async (t) =>
      assert.deepEqual(await chosen(t, args, environment), choice));

  const REJECTED: readonly (readonly [string, Environment, string])[] = [
    ['--state-dir dir --table fleet', {}, '--state-dir and --table are mutually exclusive. Specify one.'],
    [
      '',
      { ...STATE, ...TABLE },
      'TAINTWARD_STATE_DIR and TAINTWARD_TABLE are mutually exclusive. Specify one.',
    ],
    ...['--state-dir dir', '--table fleet'].map(
      (other) =>
        [
          `--in-cluster-context c ${other}`,
          {},
          '--in-cluster-context, --state-dir, and --table are mutually exclusive. Specify one.',
        ] as const,
    ),
  ];
  for (const [args, environment, message] of REJECTED)
    test(`is rejected with ${args || 'no option'} and ${JSON.stringify(environment)}`, (t) =>
      assert.rejects(chosen(t, args, environment), { name: 'UsageError', message }));
});

// A variable that a script left empty selects nothing: the command would act on another fleet, or on all.
test('an option of a fleet with an empty value is rejected', async (t) => {
  const { run } = commandLine(t);
  for (const option of ['--state-dir=', '--table=', '--in-cluster-context=', '--in-cluster-namespace='])
    await assert.rejects(run('holds', option), { code: 'commander.invalidArgument' }, option);
});

test('pending shows held or stuck pods, and not both', (t) =>
  assert.rejects(commandLine(t).run('pending', '--held', '--stuck'), {
    code: 'commander.conflictingOption',
  }));
