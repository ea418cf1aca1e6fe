import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectionWord } from '#functions/console/page/words.ts';

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
