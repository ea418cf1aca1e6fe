import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { leavesOf, referenceOf } from '../../../docs/generator/cli-page.ts';

const program = () => createProgram({} as CliDeps);

describe('each command has a description and examples that parse', () => {
  const page = referenceOf(program());
  for (const command of leavesOf(program(), program().createHelp())) {
    const path = [...pathOf(command)];
    test(path.join(' '), () => {
      assert.notEqual(command.description(), '');
      const name = ['taintward', ...path].join(' ');
      const section = page.split('\n### ').find((each) => each.startsWith(`${name}\n`)) ?? '';
      const [, examples = ''] = /```sh\n(.*?)```/s.exec(section) ?? [];
      assert.ok(
        examples.split('\n').some((line) => line.startsWith(name)),
        section,
      );
    });
  }
});

function pathOf(command: ReturnType<typeof program>): readonly string[] {
  return command.parent ? [...pathOf(command.parent), command.name()] : [];
}
