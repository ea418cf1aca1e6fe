import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { explainable, mutationOf, readExplained, singleSpaced } from '#test/mutation/explained.ts';
import { ROOMS } from '#test/mutation/rooms.ts';

const ROOT = join(import.meta.dirname, '../../..');
const PAGE = readFileSync(join(ROOT, 'docs/mutants.md'), 'utf8');

describe('a mutation', () => {
  const SOURCE = 'const a = 1;\nif (\n  a > 0 &&\n  a < 9\n) use(a);\n';
  const at = (...[line, column, endLine, endColumn]: readonly [number, number, number, number]) => ({
    start: { line, column },
    end: { line: endLine, column: endColumn },
  });

  test('is what a reader sees of it: the lines that it touches, with single spaces', () => {
    assert.deepEqual(mutationOf({ replacement: 'a >= 0', location: at(3, 3, 3, 8) }, 'f.ts', SOURCE), {
      file: 'f.ts',
      before: 'a > 0 &&',
      after: 'a >= 0 &&',
    });
    assert.deepEqual(mutationOf({ replacement: 'true', location: at(3, 3, 4, 8) }, 'f.ts', SOURCE), {
      file: 'f.ts',
      before: 'a > 0 && a < 9',
      after: 'true',
    });
  });

  test('is read from the page as it was written for it, with the reason of its place', () => {
    const mutations = [
      { file: 'f.ts', before: 'a > 0', after: 'a >= 0' },
      { file: 'f.ts', before: 'a > 0', after: 'true' },
      { file: 'g.ts', before: 'b', after: '' },
    ];
    const reasons = ['It is never 0.', 'Nobody\nasks.'];
    const page = explainable(mutations).replaceAll(/^```$/gm, () => `\`\`\`\n\n${reasons.shift()}`);
    assert.deepEqual(
      readExplained(`# Title\n\nWhat it is.\n\n${page}\n`),
      mutations.map((each) => ({ ...each, why: each.file === 'f.ts' ? 'It is never 0.' : 'Nobody asks.' })),
    );
  });

  test('without a reason is refused', () => {
    const page = explainable([{ file: 'f.ts', before: 'a > 0', after: 'a >= 0' }]);
    assert.throws(() => readExplained(page), /f\.ts: every diff block needs a paragraph behind it/);
  });
});

test('every mutant that is explained is one of a line that is still there, in a file that is mutated', () => {
  const mutated = new Set(Object.values(ROOMS).flatMap(({ mutate }) => globSync(mutate, { cwd: ROOT })));
  for (const { file, before } of readExplained(PAGE)) {
    assert.ok(mutated.has(file), `${file} is in no room`);
    assert.ok(
      singleSpaced(readFileSync(join(ROOT, file), 'utf8')).includes(before),
      `${file} has no more: ${before}`,
    );
  }
});

test('every file that decides is in a room', () => {
  const mutated = new Set(Object.values(ROOMS).flatMap(({ mutate }) => globSync(mutate, { cwd: ROOT })));
  const deciding = globSync(['shared/{taints,eviction}/*.ts'], { cwd: ROOT });
  assert.deepEqual(
    deciding.filter((file) => !mutated.has(file)),
    [],
  );
});
