import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';

test('a text of another hand is shown on one line, by characters that every queue takes', () => {
  assert.equal(escapeForDisplay('a\r\nb\u2028c\ufffe🔥é'), 'a\\u000d\\u000ab\\u2028c\\ufffe🔥é');
  assert.equal(escapeForDisplay('🔥🔥', 3), '🔥\\ud83d…');
});
