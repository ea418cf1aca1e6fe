import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseTaint, TaintArgumentError } from '#shared/taints/taint-argument.ts';

const refused = (message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof TaintArgumentError);
  assert.equal(error.name, 'TaintArgumentError');
  assert.match(error.message, message);
  return true;
};

describe('a taint in kubectl syntax', () => {
  for (const [text, taint] of [
    ['maintenance=now:NoExecute', { key: 'maintenance', value: 'now', effect: 'NoExecute' }],
    ['maintenance:NoExecute', { key: 'maintenance', effect: 'NoExecute' }],
    ['maintenance=:NoSchedule', { key: 'maintenance', effect: 'NoSchedule' }],
    [
      'example.com/gpu=a-1:PreferNoSchedule',
      { key: 'example.com/gpu', value: 'a-1', effect: 'PreferNoSchedule' },
    ],
  ] as const) {
    test(`parses ${text}`, () => assert.deepEqual(parseTaint(text), taint));
  }

  for (const [text, fault] of [
    ['maintenance', /"maintenance" lacks an effect\. Specify one, for example maintenance=now:NoExecute/],
    ['maintenance=now', /"maintenance=now" is not a taint\. Specify one like/],
    [
      'maintenance:NoRun',
      /^"maintenance:NoRun" is not a taint\. Its effect must be one of NoSchedule, PreferNoSchedule, NoExecute, spelled like that\. Specify one like maintenance=now:NoExecute or maintenance:NoExecute$/,
    ],
    ['maintenance:noexecute', /effect must be one of/],
    ['maintenance:', /effect is missing/],
    [':NoExecute', /key must have a name/],
    ['', /key must have a name/],
    ['a=b=c:NoExecute', /is not a taint\. Specify one like/],
    ['a:b:NoExecute', /is not a taint\. Specify one like/],
    [
      'a=!!:NoExecute',
      /^"a=!!:NoExecute" is not a taint\. Its value has a character that is not allowed: .+ at both ends\. Specify/,
    ],
    ['maintenance:NoExecute-', /removes a taint\. To add one, omit the trailing -/],
  ] as const) {
    test(`rejects ${text === '' ? 'nothing' : text} with a corrected form`, () => {
      assert.throws(() => parseTaint(text), refused(fault));
    });
  }
});
