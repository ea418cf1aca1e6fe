import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
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
// Equivalent mutants (ConditionalExpression × 2, EqualityOperator): it is never 0,
// whoever asks.
if (a > 0 && a < 9) use(a);
switch (a) {
  default:
    return a satisfies never;
}
`;
  const explained = [
    onLine(4, 'ConditionalExpression'),
    onLine(4, 'ConditionalExpression'),
    onLine(4, 'EqualityOperator'),
  ];

  test('is explained by the comment above its line', () => {
    assert.deepEqual(review(SOURCE, explained), { unexplained: [], needless: [] });
  });

  test('is unexplained if no comment names its mutator, or comments name fewer mutants', () => {
    const others = [onLine(1, 'EqualityOperator'), onLine(4, 'StringLiteral')];
    assert.deepEqual(review(SOURCE, [...explained, ...others]).unexplained, others);
    const more = [...explained, onLine(4, 'EqualityOperator')];
    assert.deepEqual(review(SOURCE, more).unexplained, more.slice(2));
  });

  test('needs no comment if the type checker rejects it', () => {
    const ofDefault = mutant('ConditionalExpression', 'default:', 6, 3, 7, 30);
    assert.deepEqual(review(SOURCE, [...explained, ofDefault]).unexplained, []);
  });

  test('is reported as needless if it is explained and killed', () => {
    assert.deepEqual(review(SOURCE, explained.slice(1)).needless, ['4: ConditionalExpression']);
  });

  test('needs a mutator and a reason in its explanation', () => {
    assert.throws(
      () => review('// Equivalent mutant: it is never 0.\n', []),
      /^Error: line 1 names no mutator/,
    );
    assert.throws(() => review('// Equivalent mutant (StringLiteral):\na();\n', []), /or no reason/);
    assert.throws(
      () => review('// Equivalent mutants (all of them): why.\n', []),
      /"all of them" is not MUTATOR/,
    );
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
