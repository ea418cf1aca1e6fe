import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

const page = readFileSync(join(PROJECT_DIR, 'docs/concepts/threat-model.md'), 'utf8');
const HEAD = '| attack | defense | test |';

/** The cells of the page's tables, by section: attack, defense, and test. */
const lines = page.split('\n## ').flatMap((section) =>
  section
    .split('\n')
    .filter((line) => line.startsWith('| ') && line !== HEAD)
    .map((line) => [section.split('\n')[0] ?? '', ...line.slice(2, -2).split(' | ')]),
);

test('each line of the threat model names a defense and a test', () => {
  assert.ok(lines.length > 70);
  for (const line of lines) {
    assert.equal(line.length, 4, line.join(' | '));
    assert.match(line[3] ?? '', /^`test\/[\w/.-]+\.ts`: `[^`]+`$/, line.join(' | '));
  }
  const sections = page.split('\n## ').slice(1, -1);
  assert.equal(page.split(HEAD).length - 1, sections.length, 'a section has no table');
});

test('each test that the threat model names exists under that title', () => {
  for (const [section, tries, , named = ''] of lines) {
    const [, path = '', title = ''] = /^`(.+?)`: `(.+)`$/.exec(named) ?? [];
    assert.ok(existsSync(join(PROJECT_DIR, path)), `${section}, "${tries}": there is no ${path}`);
    const code = readFileSync(join(PROJECT_DIR, path), 'utf8').replaceAll("\\'", "'");
    const isThere = ["'", '"', '`'].some((quote) => code.includes(quote + title));
    assert.ok(isThere, `${section}, "${tries}": ${path} has no test "${title}"`);
  }
});

test('no line appears twice', () => {
  const tried = lines.map(([section, tries]) => `${section}: ${tries}`);
  assert.deepEqual(tried.toSorted(), [...new Set(tried)].toSorted());
});
