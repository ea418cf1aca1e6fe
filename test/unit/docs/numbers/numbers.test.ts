import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CONCEPTS } from './concepts.ts';
import { FOREIGN } from './foreign.ts';
import { HOW_TO, START } from './how-to.ts';
import { INTERNALS } from './internals.ts';
import { CHART, REFERENCE, TUTORIALS } from './reference.ts';
import { MEASURE, numberOf, type Pages, patternOf } from './stated.ts';
import { TEXTS } from './texts.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const PAGES: Pages = {
  ...START,
  ...TUTORIALS,
  ...HOW_TO,
  ...REFERENCE,
  ...CHART,
  ...CONCEPTS,
  ...INTERNALS,
  ...TEXTS,
};

const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

/** Returns the line of a place in a text. */
const lineOf = (text: string, index: number): number => text.slice(0, index).split('\n').length;

for (const [page, sentences] of Object.entries(PAGES)) {
  const text = textOf(page);
  for (const [sentence, ...values] of sentences) {
    test(`${page} states the numbers of the code: ${sentence}`, () => {
      const found = patternOf(sentence).exec(text);
      assert.ok(found, `${page} lacks this sentence. Write it there, or change it in this test: ${sentence}`);
      assert.equal(found.length - 1, values.length, `has a value for each number: ${sentence}`);
      for (const [index, value] of values.entries()) {
        const words: string = `${found[index + 1]}`.replace(/\s+/g, ' ');
        assert.equal(
          numberOf(words),
          value,
          `${page}:${lineOf(text, found.index)} says ${words}, and the code has ${value} (durations in ms, sizes in bytes): change the page`,
        );
      }
    });
  }
}

const GUIDES = ['README.md', ...globSync('docs/how-to/*.md', { cwd: ROOT })];

for (const page of GUIDES) {
  test(`${page} states no duration, size, or percentage that is neither compared with the code nor foreign`, () => {
    // Blocks of code keep their length, so that places stay the same.
    const text = textOf(page).replace(/^```.*?^```/gms, (block) => block.replace(/[^\n]/g, '`'));
    const spans = [
      ...(PAGES[page] ?? []).map(([sentence]) => patternOf(sentence).exec(text)),
      ...(FOREIGN[page] ?? []).map(
        (words) => patternOf(words).exec(text) ?? assert.fail(`${page} has no more: ${words}`),
      ),
    ].map((found) => ({ from: found?.index ?? 0, to: (found?.index ?? 0) + (found?.[0].length ?? 0) }));
    const stray = [...text.matchAll(MEASURE)].filter(
      ({ index, 0: { length } }) => !spans.some(({ from, to }) => index < to && from < index + length),
    );
    assert.deepEqual(
      stray.map(({ index, 0: words }) => `${page}:${lineOf(text, index)}: ${words}`),
      [],
      'compare these in a table of this test, or list them in foreign.ts',
    );
  });
}
