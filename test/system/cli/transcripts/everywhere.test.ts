import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Command } from 'commander';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { leavesOf } from '../../../../docs/generator/cli-page.ts';

const SIMULATED_DIR = 'test/system/cli/transcripts';

const AS_ELSEWHERE = {
  'explain workload': 'it explains nodes, as explain node does: see the simulated cluster',
  'hold namespace': 'it is as hold workload, and of one more target: see the simulated cluster',
  'hold labels': 'likewise',
  'hold zone': 'likewise',
};

/** The places of recorded sessions, and the reasons for which some commands are missing there. */
const PLACES: readonly {
  readonly place: string;
  readonly files: readonly string[];
  readonly absent: Readonly<Record<string, string>>;
}[] = [
  {
    place: 'the simulated cluster',
    files: readdirSync(join(PROJECT_DIR, SIMULATED_DIR))
      .filter((name) => name.endsWith('.txt'))
      .map((name) => join(SIMULATED_DIR, name)),
    absent: {},
  },
  {
    place: 'a real API server',
    files: ['test/cluster/transcripts.txt'],
    absent: {
      'clusters add': 'an npm start is given its clusters as it starts: it is refused at the simulated one',
      'clusters list': 'likewise',
      'clusters show': 'likewise',
      'clusters remove': 'likewise',
      ...AS_ELSEWHERE,
    },
  },
  {
    place: 'a deployment',
    files: ['test/deployed/transcripts.txt'],
    absent: {
      'policy validate': 'it asks nobody: it is said at the others',
      'dead-letters redrive':
        'the stand-in for AWS moves no messages: test/unit/operations/fleet/sqs-queues.test.ts',
      'takeover release': 'it asks the cluster alone, as at a real API server',
      ...AS_ELSEWHERE,
    },
  },
];

/** The reasons for which some commands are missing everywhere. */
const NOWHERE: Readonly<Record<string, string>> = {
  apply: 'its session takes documents: test/system/cli/apply.test.ts',
  console: 'it goes on until it is stopped: test/unit/cli/console.test.ts',
  completion: 'it prints the script of a shell: test/system/cli/completion.test.ts',
  'policy schema': 'it prints docs/reference/policy.schema.json: test/unit/cli/policy.test.ts',
  tolerations: 'it changes pods on the way: test/unit/operations/ask/tolerations.test.ts',
  'takeover manifest': 'it prints what apply applies: test/unit/cli/takeover/manifest.test.ts',
};

const program = createProgram({} as CliDeps);
const commands = leavesOf(program, program.createHelp()).map((command) => nameOf(command));

function nameOf(command: Command): string {
  const { parent } = command;
  return parent?.parent ? `${nameOf(parent)} ${command.name()}` : command.name();
}

for (const { place, files, absent } of PLACES) {
  describe(`each command is run at ${place}`, () => {
    const sessions = files.map((file) => readFileSync(join(PROJECT_DIR, file), 'utf8')).join('\n');
    const excused = { ...NOWHERE, ...absent };
    for (const command of commands) {
      const reason = excused[command];
      test(reason === undefined ? command : `${command}, but ${reason}`, () => {
        const isRecorded = new RegExp(`^\\$ taintward ${command}( |$)`, 'm').test(sessions);
        assert.equal(isRecorded, reason === undefined);
      });
    }
    test('only existing commands are excused', () => {
      assert.deepEqual(
        Object.keys(excused).filter((name) => !commands.includes(name)),
        [],
      );
    });
  });
}
