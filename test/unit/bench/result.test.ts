import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { aimText, amount } from '#test/bench/figure-text.ts';
import { type Figure, median, meetsAim, ratioOf, stolenSince, timesNow } from '#test/bench/result.ts';
import { takingTurns } from '#test/bench/scenario.ts';

const figure = (fields: Partial<Figure>): Figure => ({
  what: 'evictions',
  unit: 'pods/s',
  ours: [30, 10, 20],
  ...fields,
});

test('uses the median of an odd number of runs and the lower median of an even number', () => {
  assert.equal(median([30, 10, 20]), 20);
  assert.equal(median([4, 1, 3, 2]), 2);
  assert.equal(median([]), undefined);
});

test('divides medians, and returns no ratio without values of a peer', () => {
  assert.equal(ratioOf(figure({ peer: { name: 'other', values: [10, 100, 1] } })), 2);
  assert.equal(ratioOf(figure({})), undefined);
  assert.equal(ratioOf(figure({ peer: { name: 'other', values: [] } })), undefined);
});

test('reports a target as met, missed, or undefined without measurements', () => {
  const peer = { name: 'other', values: [10] };
  assert.equal(meetsAim(figure({ peer, aim: { of: 'ratio', atLeast: 2 } })), true);
  assert.equal(meetsAim(figure({ peer, aim: { of: 'ratio', atMost: 1.5 } })), false);
  assert.equal(meetsAim(figure({ aim: { of: 'value', atMost: 20 } })), true);
  assert.equal(meetsAim(figure({ ours: [], aim: { of: 'value', atMost: 20 } })), undefined);
  assert.equal(aimText(figure({ aim: { of: 'value', atMost: 19 } })), '≤ 19 pods/s ✗');
});

test('rounds to three digits and keeps all digits before the decimal point', () => {
  assert.equal(amount(1234.5, 'ms'), '1,235 ms');
  assert.equal(amount(0.012345, '$'), '0.0123 $');
  assert.equal(amount(undefined, 'ms'), '–');
});

test('alternates contenders and their order', async () => {
  const order: string[] = [];
  const run = (name: string) => () => order.push(name);
  const values = await takingTurns(3, { a: run('a'), b: run('b') });
  assert.equal(order.join(''), 'abbaab');
  assert.deepEqual(values, { a: [1, 4, 5], b: [2, 3, 6] });
});

test('counts the time that other machines stole, without that of guests', () => {
  const path = join(mkdtempSync(join(tmpdir(), 'taintward-')), 'stat');
  writeFileSync(path, 'cpu  100 10 50 800 20 0 20 30 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n');
  const times = timesNow(path);
  assert.deepEqual(times, { all: 1030, stolen: 30 });
  assert.equal(stolenSince({ all: 30, stolen: 5 }, times), 0.025);
  assert.equal(stolenSince(times, times), 0);
  assert.deepEqual(timesNow(join(path, 'none')), { all: 0, stolen: 0 });
});
