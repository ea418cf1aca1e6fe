import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownText } from '#shared/text/shown-text.ts';

test('a text of another hand is shown on one line, by characters that every queue takes', () => {
  assert.equal(shownText('a\r\nb\u2028c\ufffe🔥é'), 'a\\u000d\\u000ab\\u2028c\\ufffe🔥é');
  assert.equal(shownText('🔥🔥', 3), '🔥\\ud83d…');
});
