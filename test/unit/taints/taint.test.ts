import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DOWN_KEYS, NODE_OUT_OF_SERVICE, taintText } from '#shared/taints/taint.ts';

test('prints a taint as kubectl does, without = where the value is empty', () => {
  assert.equal(taintText({ key: 'a', value: 'v', effect: 'NoExecute' }), 'a=v:NoExecute');
  assert.equal(taintText({ key: 'a', value: '', effect: 'NoExecute' }), 'a:NoExecute');
  assert.equal(taintText({ key: 'a', effect: 'NoSchedule' }), 'a:NoSchedule');
});

test('uses the taint keys of Kubernetes', () => {
  assert.deepEqual(DOWN_KEYS, ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']);
  assert.equal(NODE_OUT_OF_SERVICE, 'node.kubernetes.io/out-of-service');
});
