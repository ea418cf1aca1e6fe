import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CONCEPTS } from './concepts.ts';
import { HOW_TO, START } from './how-to.ts';
import { INTERNALS } from './internals.ts';
import { CHART, REFERENCE, TUTORIALS } from './reference.ts';
import { numberOf, type Pages, patternOf } from './stated.ts';
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
