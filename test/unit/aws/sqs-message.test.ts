import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MAX_MESSAGE_BYTES } from '#shared/aws/limits.ts';
import { messageBytes, messageFault, SendFailures, withoutFaulty } from '#shared/aws/sqs-message.ts';
import type { OutgoingMessage } from '#shared/state/sender.ts';

const fine: OutgoingMessage = {
  body: '{"text":"Grüße 🙂\\n"}',
  groupId: 'g'.repeat(128),
  deduplicationId: '!~#/',
};

describe('messageFault', () => {
  test('returns nothing for a valid message', () => {
    assert.equal(messageFault(fine), undefined);
    assert.equal(messageFault({ body: 'x', delaySeconds: 900, attributes: { reason: 'late' } }), undefined);
    const ten = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`a${n}`, 'x']));
    assert.equal(messageFault({ body: 'x', delaySeconds: 0, attributes: ten }), undefined);
    assert.equal(messageFault({ body: 'x'.repeat(MAX_MESSAGE_BYTES) }), undefined);
  });

  const faults: [what: string, message: OutgoingMessage, names: RegExp][] = [
    ['an empty body', { body: '' }, /^body is empty/],
    ['a control character', { body: 'a\u0000b' }, /^body holds a character/],
    ['half a surrogate pair', { body: 'a\uD83D' }, /^body holds a character/],
    ['a body over 1 MiB', { body: 'x'.repeat(MAX_MESSAGE_BYTES + 1) }, /^the message has 1048577 bytes/],
    ['an empty group id', { ...fine, groupId: '' }, /^groupId/],
    ['a group id over 128 characters', { ...fine, groupId: 'g'.repeat(129) }, /^groupId/],
    ['a space in a deduplication id', { ...fine, deduplicationId: 'a b' }, /^deduplicationId/],
    ['a delay over 900 s', { body: 'x', delaySeconds: 901 }, /^delaySeconds is 901/],
    ['a delay of less than nothing', { body: 'x', delaySeconds: -1 }, /^delaySeconds is -1/],
    ['half a second', { body: 'x', delaySeconds: 0.5 }, /^delaySeconds is 0\.5/],
    ['an empty attribute', { body: 'x', attributes: { reason: '' } }, /^attribute reason/],
    [
      'eleven attributes',
      { body: 'x', attributes: Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`a${n}`, 'x'])) },
      /^attributes are 11/,
    ],
  ];
  for (const [what, message, names] of faults) {
    test(`rejects ${what}`, () => assert.match(messageFault(message) ?? '', names));
  }
});

test('an invalid message blocks later messages of its group, and no earlier messages', () => {
  const [before, faulty, behind] = ['1', '', '3'].map((body) => ({ ...fine, body }));
  const failures = new SendFailures();
  const sendable = withoutFaulty([before, faulty, behind] as OutgoingMessage[], failures);
  assert.deepEqual(sendable, [{ index: 0, message: before }]);
  assert.equal(failures.addIfBehind({ index: 0, message: before as OutgoingMessage }), false);
  assert.deepEqual(
    failures.list().map(({ index, permanent }) => ({ index, permanent })),
    [
      { index: 1, permanent: true },
      { index: 2, permanent: false },
    ],
  );
});

test('messageBytes counts the body in UTF-8, and each attribute with its name and type', () => {
  assert.equal(messageBytes({ body: 'ü' }), 2);
  assert.equal(
    messageBytes({ body: 'ü', attributes: { reason: 'late' } }),
    2 + 'reason'.length + 'String'.length + 4,
  );
});
