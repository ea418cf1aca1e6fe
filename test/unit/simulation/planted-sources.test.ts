import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PLANTED_SOURCES } from '../../simulation/planted-sources.ts';

for (const [defect, { file, instead }] of Object.entries(PLANTED_SOURCES))
  test(`the simulation can plant this defect: ${defect}`, () => {
    const text = readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
    const found = text.split(instead).length - 1;
    assert.equal(
      found,
      1,
      `write its line as it stands now in ${file} into test/simulation/planted-sources.ts`,
    );
  });
