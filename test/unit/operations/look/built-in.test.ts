import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { markerOf, runsIt } from '#shared/operations/look/built-in.ts';

describe('flags of kube-controller-manager', () => {
  const rows: readonly (readonly [runs: boolean, ...flags: readonly string[]])[] = [
    [true],
    [true, '--controllers=*,bootstrap-signer-controller'],
    [false, '--v=2', '--controllers=*,-taint-eviction-controller'],
    [false, '--controllers', '*, -taint-eviction-controller'],
    [true, '--controllers=taint-eviction-controller,node-lifecycle-controller'],
    [false, '--controllers=node-lifecycle-controller'],
  ];
  for (const [runs, ...flags] of rows)
    test(`${flags.join(' ') || 'none'}: ${runs}`, () => assert.equal(runsIt(flags), runs));
});

test("finds the manager that owns a pod's condition", () => {
  const conditions = [{ type: 'DisruptionTarget', reason: 'DeletionByTaintManager' }];
  const owned = { 'f:status': { 'f:conditions': { 'k:{"type":"DisruptionTarget"}': {} } } };
  const managedFields = [
    { manager: 'kubelet', fieldsV1: { 'f:status': { 'f:conditions': { 'k:{"type":"Ready"}': {} } } } },
    { manager: 'kube-controller-manager', fieldsV1: owned },
  ];
  assert.equal(markerOf({ status: { conditions }, metadata: { managedFields } }), 'kube-controller-manager');
  assert.equal(markerOf({ status: { conditions: [] }, metadata: { managedFields } }), undefined);
});
