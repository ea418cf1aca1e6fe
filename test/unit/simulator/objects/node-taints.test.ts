import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addTaint, parseTaintRemoval, removeTaint } from '#simulator/objects/node-taints.ts';

const refused = (message: RegExp) => ({ name: 'TaintArgumentError', message });

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
