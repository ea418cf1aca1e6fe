import assert from 'node:assert/strict';
import { test } from 'node:test';
import { traceText } from '#test/bench/eviction/trace.ts';

test('a trace has a row for requests that overlap, and ends with the last delete', () => {
  const spans = [
    ['list nodes', 90, 99],
    ['get nodes', 110, 112],
    ['patch pods/status', 112, 115],
    ['patch pods/status', 113, 116],
    ['wait for a turn: delete pods', 115, 115.01],
    ['get nodes', 116, 118],
    ['delete pods', 118, 120],
    ['create events', 121, 122],
  ] as const;
  const text = traceText(
    spans.map(([name, begin, end]) => ({ name, begin, end })),
    100,
  );
  assert.deepEqual(
    text.split('\n').map((line) => line.trim().replaceAll(/ +/g, ' ')),
    [
      '1 × get nodes 0.0 to 2.0',
      '2 × patch pods/status 2.0–3.0 to 5.0–6.0',
      '1 × get nodes 6.0 to 8.0',
      '1 × delete pods 8.0 to 10.0',
    ],
  );
});
