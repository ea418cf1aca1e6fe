import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';

const everyCommand = (command: Command): readonly Command[] => [
  command,
  ...command.commands.filter((each) => each.name() !== 'complete').flatMap(everyCommand),
];

const commands = everyCommand(createProgram({} as CliDeps));

test('summaries are imperatives of at most 60 characters without a period', () => {
  assert.ok(commands.length > 40);
  for (const command of commands) {
    assert.match(command.summary(), /^[A-Z][a-z-]+ .{1,52}[^.]$/, command.name());
    assert.ok(command.summary().length <= 60, command.name());
  }
});

test('descriptions consist of whole sentences', () => {
  for (const command of commands) assert.match(command.description(), /^[A-Z].*[.]$/, command.name());
});

test('options are described by noun phrases without a period', () => {
  for (const command of commands) {
    for (const { long, description, hidden } of command.options) {
      if (hidden || long === '--version') continue;
      assert.match(description, /^[A-Za-z].*[^.]$/, `${command.name()} ${long}`);
      assert.doesNotMatch(
        description,
        /^(in |of |with |where |only this|for how|at )/,
        `${command.name()} ${long}`,
      );
    }
  }
});
