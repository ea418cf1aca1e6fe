import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { costs } from '#test/bench/costs/costs.ts';
import { type Figure, resultSchema } from '#test/bench/result.ts';

const RESULT = join(import.meta.dirname, '../../bench/results/costs.json');

test('evictions ask AWS for what the page on performance says', async () => {
  const counted: Figure[] = [];
  await costs.run((figure) => counted.push(figure), { runs: undefined, short: false });
  const { figures } = resultSchema.parse(JSON.parse(readFileSync(RESULT, 'utf8')));
  assert.deepEqual(counted, figures, 'write it anew with npm run bench -- costs, and npm run docs');
});
