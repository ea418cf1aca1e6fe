import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { EQUIVALENT, type Equivalent } from '#test/mutation/equivalent.ts';
import { type Mutant, review, shown } from '#test/mutation/explained.ts';
import { ROOMS } from '#test/mutation/rooms.ts';

const ROOT = join(import.meta.dirname, '../../..');

const mutant = (mutatorName: string, replacement: string, ...at: readonly number[]): Mutant => {
  const [line = 0, column = 0, endLine = 0, endColumn = 0] = at;
  return {
    mutatorName,
    replacement,
    location: { start: { line, column }, end: { line: endLine, column: endColumn } },
  };
};
const onLine = (line: number, mutatorName: string): Mutant => mutant(mutatorName, 'true', line, 1, line, 2);

describe('a surviving mutant', () => {
  const SOURCE = `const a = 1;
if (a > 0 && a < 9) use(a);
switch (a) {
  default:
    return a satisfies never;
}
while (a) {
  if (a > 0 && a < 9) use(a);
}
`;
  const EXPLANATIONS: readonly Equivalent[] = [
    {
      line: 'if (a > 0 && a < 9) use(a);',
      mutants: { ConditionalExpression: 2, EqualityOperator: 1 },
      reason: 'It is never 0.',
    },
  ];
  const explained = [
    onLine(2, 'ConditionalExpression'),
    onLine(8, 'ConditionalExpression'),
    onLine(2, 'EqualityOperator'),
  ];

  test('is explained by the text of its line, wherever it stands', () => {
    assert.deepEqual(review(SOURCE, explained, EXPLANATIONS), { unexplained: [], needless: [] });
  });

  test('is unexplained if no explanation names its line and mutator, or explanations name fewer mutants', () => {
    const others = [onLine(1, 'EqualityOperator'), onLine(2, 'StringLiteral')];
    assert.deepEqual(review(SOURCE, [...explained, ...others], EXPLANATIONS).unexplained, others);
    const more = [...explained, onLine(8, 'EqualityOperator')];
    assert.deepEqual(review(SOURCE, more, EXPLANATIONS).unexplained, more.slice(2));
    assert.deepEqual(review(SOURCE, explained, []).unexplained, explained);
  });

  test('needs no explanation if the type checker rejects it', () => {
    const ofDefault = mutant('ConditionalExpression', 'default:', 4, 3, 5, 30);
    assert.deepEqual(review(SOURCE, [ofDefault], []).unexplained, []);
  });

  test('is reported as needless if it is explained and killed', () => {
    assert.deepEqual(review(SOURCE, explained.slice(1), EXPLANATIONS).needless, [
      'ConditionalExpression: if (a > 0 && a < 9) use(a);',
    ]);
  });

  test('prints the affected lines with single spaces', () => {
    const source = 'if (\n  a > 0 &&\n  a < 9\n) use(a);\n';
    assert.equal(
      shown(mutant('EqualityOperator', 'a >= 0', 2, 3, 2, 8), source),
      '2: EqualityOperator\n- a > 0 &&\n+ a >= 0 &&',
    );
    assert.equal(
      shown(mutant('ConditionalExpression', 'true', 2, 3, 3, 8), source),
      '2: ConditionalExpression\n- a > 0 && a < 9\n+ true',
    );
  });
});

test('the mutation rooms contain every file of the decision core', () => {
  const mutated = new Set(Object.values(ROOMS).flatMap(({ mutate }) => globSync(mutate, { cwd: ROOT })));
  const deciding = globSync(['shared/{taints,eviction}/*.ts'], { cwd: ROOT });
  assert.deepEqual(
    deciding.filter((file) => !mutated.has(file)),
    [],
  );
});

describe('the explanations of equivalent mutants', () => {
  const explained = new Set(
    Object.values(ROOMS).flatMap(({ mutate, minScore }) =>
      minScore === undefined ? globSync(mutate, { cwd: ROOT }) : [],
    ),
  );
  for (const [file, explanations] of Object.entries(EQUIVALENT))
    test(`name lines of ${file}, each once, in a room whose survivors are explained`, () => {
      assert.ok(explained.has(file));
      const lines = new Set(
        readFileSync(join(ROOT, file), 'utf8')
          .split('\n')
          .map((line) => line.trim()),
      );
      const named = explanations.map(({ line }) => line);
      assert.deepEqual(
        named.filter((line, at) => !lines.has(line) || named.indexOf(line) !== at),
        [],
      );
    });
});
