import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const PAGE = join(import.meta.dirname, '../../../functions/console/page');

/** A question of a view: `useAnswer('GET api/…', () => ({ asks }), [inputs])`. */
const QUESTION = /useAnswer\(\s*'GET [^']+',\s*\(\) => \(\{([^}]*)\}\),\s*\[([^\]]*)\]/g;

/** Values of fields that are derived from an input of another name. */
const DERIVED = ['from: Math.max(0, now.peek() - Number(since))'];

/** Returns what is wrong with the questions in a source, and how many it has. */
function wrongIn(source: string): { readonly wrong: readonly string[]; readonly questions: number } {
  const questions = [...source.matchAll(QUESTION)];
  const wrong = questions.flatMap(([, asks = '', inputs = '']) => {
    const fields = asks.split(/,\s*(?=\w+(?::|,|\s*$))/).map((field) => field.trim().replace(/,$/, ''));
    const known = inputs.split(',').map((input) => input.trim());
    return fields.filter(Boolean).flatMap((field) => {
      const [, name = '', value = name] = /^(\w+)(?:: (.*))?$/s.exec(field) ?? [];
      const words: readonly string[] = value.match(/(?<![.?'\w])[a-z]\w*/gi) ?? [];
      const own = DERIVED.includes(field) || words.includes(name);
      return [
        ...(own ? [] : [`${field}: another field`]),
        ...(known.some((input) => words.includes(input))
          ? []
          : [`${field}: not asked again when it changes`]),
      ];
    });
  });
  return { wrong, questions: questions.length };
}

test('finds fields of a question that read another one, and inputs that are missing', () => {
  const questionWith = (asks: string, inputs: string) =>
    `useAnswer('GET api/x', () => ({ ${asks} }), [${inputs}])`;
  const wrong = (asks: string, inputs: string) => wrongIn(questionWith(asks, inputs)).wrong;
  assert.deepEqual(wrong('cluster, node: node?.trim() || undefined', 'cluster, node'), []);
  assert.deepEqual(wrong('cluster', ''), ['cluster: not asked again when it changes']);
  assert.deepEqual(wrong('pod: node || undefined', 'pod, node'), ['pod: node || undefined: another field']);
});

test('each question of the page asks for its own fields, and again when one of them changes', () => {
  const sources = globSync('**/*.ts', { cwd: PAGE }).map((file) => readFileSync(join(PAGE, file), 'utf8'));
  const found = sources.map(wrongIn);
  assert.deepEqual(
    found.flatMap(({ wrong }) => wrong),
    [],
  );
  const calls = sources.flatMap((source) => source.match(/= useAnswer\(/g) ?? []).length;
  assert.equal(
    found.reduce((sum, { questions }) => sum + questions, 0),
    calls,
  );
});
