import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type Literal, literalsIn } from './literals.ts';

const ROOT = join(import.meta.dirname, '../../..');
const PRODUCT = '{functions,shared,cdk}/**/*.ts';
/** Suites beside real servers and processes, which take minutes. */
const SLOW =
  'test/{cluster,deployed,controllers,system,console,chart,in-cluster,localstack,kubernetes,timing}/**/*.ts';

/**
 * Literals of slow suites that may repeat a sentence of the product. The rest is text of the built-in controller,
 * sentences that no faster suite reaches, and words that meet by chance. Lower it with each one that goes.
 */
const CEILING = 24;

/** Words of a literal that must be a sentence of the product, and their share of its words. */
const MIN_WORDS = 4;
const MIN_SHARE = 0.7;

const literalsOf = (pattern: string) =>
  globSync(pattern, { cwd: ROOT, exclude: ['**/node_modules/**'] })
    .toSorted()
    .flatMap((file) =>
      literalsIn(readFileSync(join(ROOT, file), 'utf8')).map((literal) => ({ ...literal, file })),
    );

/** Returns the words of a literal, without data, HTML elements, and the syntax of regular expressions. */
const wordsOf = (text: string): readonly string[] =>
  text
    .replace(/\\[a-z]|<\/?[a-z]\w*|\/?>/g, ' ')
    .split(/[\s|]+/)
    .map((token) => token.replace(/^\W+|\W+$/g, ''))
    .filter((token) => /^[A-Za-z'’-]+$/.test(token));

/** Returns each three consecutive words of a literal. */
const triplesOf = (text: string): readonly string[] => {
  const words = wordsOf(text);
  return words.slice(2).map((_, at) => words.slice(at, at + 3).join(' '));
};

/** Reports whether most words of a text follow each other in sentences, given as their triples, too. */
function repeats(text: string, sentences: ReadonlySet<string>): boolean {
  const shared = new Set(
    triplesOf(text).flatMap((triple, at) => (sentences.has(triple) ? [at, at + 1, at + 2] : [])),
  );
  return shared.size >= MIN_WORDS && shared.size >= MIN_SHARE * wordsOf(text).length;
}

/** Names of tests and of awaited conditions, and remarks, often use the words of the product. */
const isName = ({ before }: Literal): boolean =>
  /\b(?:test|describe|until|note|diagnostic)(?:\.\w+)?\(\s*$/.test(before);

/** Returns the literals in TypeScript that repeat one of these sentences. */
const repeated = (source: string, ...sentences: readonly string[]): readonly string[] =>
  literalsIn(source)
    .filter((literal) => !isName(literal) && repeats(literal.text, new Set(sentences.flatMap(triplesOf))))
    .map(({ text }) => text);

describe('the rule on repeated sentences', () => {
  const SENTENCE = 'Its API server does not respond.';

  test('finds a sentence in strings, templates with holes, and regular expressions', () => {
    const source = `
      // "Its API server does not respond."
      assert.match(out, /^Its .*API server +does not\\b/);
      assert.equal(half / 2, 'Its API server does not respond.' , one / two);
      const text = \`\${name}: Its \${kind({ a: 'API server does not' })} server does not respond\`;`;
    assert.deepEqual(
      repeated(source, SENTENCE).toSorted(),
      [
        `${' '}: Its   server does not respond`,
        "'API server does not'",
        "'Its API server does not respond.'",
        '/^Its .*API server +does not\\b/',
      ].toSorted(),
    );
  });

  test('ignores names of tests, few words, other words, and paths', () => {
    const source = `
      test('its API server does not respond', () => until('the API server does not respond', ask));
      const few = ['API server', 'server does not'];
      const other = 'An operator asks whether the API server does not answer any more';
      import '#Its/API/server/does/not/respond.ts';`;
    assert.deepEqual(repeated(source, SENTENCE), []);
  });
});

test('slow suites repeat few sentences of the product', () => {
  const sentences = new Set(literalsOf(PRODUCT).flatMap(({ text }) => triplesOf(text)));
  const found = literalsOf(SLOW)
    .filter((literal) => !isName(literal) && repeats(literal.text, sentences))
    .map(({ file, line, text }) => `${file}:${line} ${text}`);
  assert.ok(
    found.length <= CEILING,
    `${found.length} literals repeat a sentence of the product, ${CEILING} at most. Judge by \`-o json\`, exit codes, names of log events, or metrics; test the wording in test/unit; import a text that must be awaited.\n${found.join('\n')}`,
  );
});
