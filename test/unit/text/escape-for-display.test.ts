import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';

test('escapes foreign text to one line of characters that every queue accepts', () => {
  assert.equal(escapeForDisplay('a\r\nb\u2028c\ufffe🔥é'), 'a\\u000d\\u000ab\\u2028c\\ufffe🔥é');
  assert.equal(escapeForDisplay('🔥🔥', 3), '🔥\\ud83d…');
});
