import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { costs } from '#test/bench/costs/costs.ts';
import { figureRow } from '#test/bench/figure-text.ts';
import { type Figure, meetsAim } from '#test/bench/result.ts';
import { PRICES } from '#test/costs/prices.ts';

const PAGE = join(import.meta.dirname, '../../../docs/internals/benchmarks.md');

const counted: Figure[] = [];
before(() => costs.run((figure) => counted.push(figure), { runs: undefined, short: false, soakMinutes: 0 }));

/** Returns what all pods of a story cost. */
function billOf(story: string): { readonly calls: number; readonly writes: number } {
  const pods = Number.parseInt(story, 10);
  const [calls = 0, dollars = 0] = ['calls a pod', 'dollars a million pods'].map(
    (unit) => pods * Number(counted.find(({ what }) => what === `${story}: ${unit}`)?.ours[0]),
  );
  return { calls: Math.round(calls), writes: dollars / PRICES.dynamoDbWritesPerMillion };
}

// The page lists what was counted. These are the rules, whatever it lists.
test('a further pod of a node costs its record, its deletion, and its part of calls for many', () => {
  const [fifty, more] = [billOf('50 pods of a node, at once'), billOf('110 pods of a node, at once')];
  assert.ok((more.calls - fifty.calls) / 60 <= 0.2);
  assert.ok((more.writes - fifty.writes) / 60 <= 2 + 1 + 0.25);
  const one = billOf('1 pod of a node, at once');
  assert.ok((fifty.calls - one.calls) / 49 <= 0.2);
});

test('the first pod, a deadline, and a rate cost calls of their own', () => {
  const calls = (story: string) => billOf(story).calls;
  const [one, all] = [calls('1 pod of a node, at once'), calls('50 pods of a node, at once')];
  assert.ok(one <= 15);
  assert.ok(calls('50 pods of a node, after 5 minutes') <= all + 3, 'send, receive, and delete a timer');
  assert.ok(calls('50 pods of a node, after an hour') <= all + 6, 'a schedule, and another function');
  assert.ok(calls('50 pods of a node, untainted in time') <= all + 9);
  assert.ok(calls('50 pods of a node, after 5 minutes, at 20 a second') <= all + 50, 'a permit for each pod');
});

test('makes the AWS requests that the benchmarks page lists, within the targets', () => {
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
