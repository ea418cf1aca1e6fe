import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectionWord, furtherText } from '#functions/console/page/words.ts';

test('only a connected cluster is shown as well', () => {
  const shown = (['connected', 'stale', 'disconnected', 'never-connected', undefined] as const).map(
    (status) => {
      const { text, tone } = connectionWord(status);
      return `${text}: ${tone}`;
    },
  );
  assert.deepEqual(shown, [
    'connected: well',
    'stale: held',
    'disconnected: goes',
    'never connected: goes',
    'unknown: held',
  ]);
});

test('a note repeats no words of its state', () => {
  assert.equal(furtherText('held by the guard', 'the guard (zone a) and hold h1'), '(zone a) and hold h1');
  assert.equal(furtherText('on hold', 'hold h1 (anna: a test)'), 'h1 (anna: a test)');
  assert.equal(furtherText('excluded by policy', 'the policy (excluded)'), 'the policy (excluded)');
});
