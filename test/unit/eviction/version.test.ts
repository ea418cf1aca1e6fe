import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareVersions, deltaId, newer, onlyPod } from '#shared/eviction/facts.ts';
import { nodeDelta, podDelta, podGone } from './builders.ts';

const number = fc.nat({ max: 3 });
const version = fc.record({ epoch: number, sequence: number });

test('a later epoch is newer whatever the sequence', () => {
  assert.ok(compareVersions({ epoch: 2, sequence: 0 }, { epoch: 1, sequence: 9_999_999 }) > 0);
});

test('a delta is named by the epoch of its relay and its number there', () => {
  assert.equal(deltaId({ epoch: 7, sequence: 40 }), '7-40');
});

test('a delta tells of one pod, or of its whole node', () => {
  assert.deepEqual([podDelta(1), podGone(1), nodeDelta(1)].map(onlyPod), ['u1', 'u1', undefined]);
});

test('versions are in one total order', () => {
  fc.assert(
    fc.property(version, version, version, (a, b, c) => {
      assert.equal(Math.sign(compareVersions(a, b)), -Math.sign(compareVersions(b, a)) || 0);
      if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0) assert.ok(compareVersions(a, c) <= 0);
      assert.equal(compareVersions(a, b) === 0, a.epoch === b.epoch && a.sequence === b.sequence);
    }),
  );
});

test('the newer of two is one of them and not older than the other', () => {
  fc.assert(
    fc.property(version, version, (a, b) => {
      const found = newer(a, b);
      assert.ok(found === a || found === b);
      assert.ok(compareVersions(found, a) >= 0 && compareVersions(found, b) >= 0);
    }),
  );
});

test('of one version and none, it is the one', () => {
  const only = { epoch: 1, sequence: 1 };
  assert.equal(newer(only, undefined), only);
  assert.equal(newer(undefined, only), only);
  assert.equal(newer(undefined, undefined), undefined);
});
