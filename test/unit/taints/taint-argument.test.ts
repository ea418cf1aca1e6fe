import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  addTaint,
  parseTaint,
  parseTaintRemoval,
  removeTaint,
  TaintArgumentError,
} from '#shared/taints/taint-argument.ts';

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
    ['', /lacks an effect/],
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

describe('a taint removal', () => {
  for (const [text, removal] of [
    ['maintenance-', { key: 'maintenance' }],
    ['maintenance', { key: 'maintenance' }],
    ['my-gpu-', { key: 'my-gpu' }],
    ['maintenance:NoExecute-', { key: 'maintenance', effect: 'NoExecute' }],
    ['maintenance=now:NoExecute-', { key: 'maintenance', effect: 'NoExecute' }],
  ] as const) {
    test(`parses ${text}`, () => assert.deepEqual(parseTaintRemoval(text), removal));
  }

  for (const text of ['-', 'maintenance:NoRun-', 'maintenance=now-', 'a:b:c-']) {
    test(`rejects ${text}`, () => {
      assert.throws(
        () => parseTaintRemoval(text),
        refused(/Specify one like maintenance:NoExecute- or maintenance-/),
      );
    });
  }
});

describe('the taints of a node', () => {
  const now = { key: 'maintenance', value: 'now', effect: 'NoExecute' };
  const later = { ...now, value: 'later' };
  const schedule = { key: 'maintenance', effect: 'NoSchedule' };

  test('append a new taint', () => {
    const another = { ...now, key: 'gpu' };
    assert.deepEqual(addTaint([schedule, another], now), [schedule, another, now]);
  });

  test('replace the value of a taint in place', () => {
    assert.deepEqual(addTaint([now, schedule], later), [later, schedule]);
  });

  test('lose the taint of a key and effect, or all taints of a key', () => {
    assert.deepEqual(removeTaint([now, schedule], { key: 'maintenance', effect: 'NoExecute' }), [schedule]);
    const another = { ...now, key: 'gpu' };
    assert.deepEqual(removeTaint([now, another, schedule], { key: 'maintenance' }), [another]);
  });

  test('reject the removal of a missing taint, and list the present taints', () => {
    assert.throws(
      () => removeTaint([now], { key: 'maintenance', effect: 'NoSchedule' }),
      refused(/"maintenance:NoSchedule" not found: the node has maintenance=now:NoExecute/),
    );
    assert.throws(
      () => removeTaint([now, schedule], { key: 'gpu' }),
      refused(/the node has maintenance=now:NoExecute, maintenance:NoSchedule$/),
    );
    assert.throws(() => removeTaint([], { key: 'gpu' }), refused(/"gpu" not found: the node has no taint/));
  });
});
