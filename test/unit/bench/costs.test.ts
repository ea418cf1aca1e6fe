import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { costs } from '#test/bench/costs/costs.ts';
import { figureRow } from '#test/bench/figure-text.ts';
import { type Figure, meetsAim } from '#test/bench/result.ts';

const PAGE = join(import.meta.dirname, '../../../docs/internals/benchmarks.md');

test('makes the AWS requests that the benchmarks page lists, within the targets', async () => {
  const counted: Figure[] = [];
  await costs.run((figure) => counted.push(figure), { runs: undefined, short: false, soakMinutes: 0 });
  const rows = readFileSync(PAGE, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| costs: '));
  assert.deepEqual(
    rows,
    counted.map((figure) => figureRow('costs', figure)),
    'write docs/internals/benchmarks.md anew with npm run bench -- costs',
  );
  const aimedAt = counted.filter(({ aim }) => aim !== undefined);
  assert.deepEqual(
    aimedAt.map((figure) => [figure.what, meetsAim(figure)]),
    [
      ['50 pods of a node, after 5 minutes: calls a pod', true],
      ['50 pods of a node, after 5 minutes: dollars a million pods', true],
    ],
  );
});
