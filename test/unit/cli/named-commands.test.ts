import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';

test('every command that a message recommends exists', () => {
  const { commands } = createProgram({} as CliDeps);
  const files = globSync('{functions,shared}/**/*.ts', { cwd: PROJECT_DIR });
  const named = files.flatMap((file) => [
    ...readFileSync(join(PROJECT_DIR, file), 'utf8').matchAll(
      /\b[Rr]un "?taintward ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/g,
    ),
  ]);
  assert.ok(named.length > 20, `${named.length} commands`);
  const missing = named.filter(([, first, second]) => {
    const command = commands.find((each) => each.name() === first);
    const under = command?.commands ?? [];
    return !command || (under.length > 0 && second && !under.some((each) => each.name() === second));
  });
  assert.deepEqual(
    missing.map(([text]) => text),
    [],
  );
});
