import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareVersions, deltaId, newer, onlyPod } from '#shared/eviction/facts.ts';
import { nodeDelta, podDelta, podGone } from './builders.ts';

const number = fc.nat({ max: 3 });
const version = fc.record({ epoch: number, sequence: number });

test('a later epoch is newer for any sequence', () => {
  assert.ok(compareVersions({ epoch: 2, sequence: 0 }, { epoch: 1, sequence: 9_999_999 }) > 0);
});

test('a delta ID is the epoch of its relay and its sequence', () => {
  assert.equal(deltaId({ epoch: 7, sequence: 40 }), '7-40');
});

test('a delta covers a single pod or its whole node', () => {
  assert.deepEqual([podDelta(1), podGone(1), nodeDelta(1)].map(onlyPod), ['u1', 'u1', undefined]);
});

test('versions have a total order', () => {
  fc.assert(
    fc.property(version, version, version, (a, b, c) => {
      assert.equal(Math.sign(compareVersions(a, b)), -Math.sign(compareVersions(b, a)) || 0);
      if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0) assert.ok(compareVersions(a, c) <= 0);
      assert.equal(compareVersions(a, b) === 0, a.epoch === b.epoch && a.sequence === b.sequence);
    }),
  );
});

test('the newer of two versions is either of them, and not older than the other', () => {
  fc.assert(
    fc.property(version, version, (a, b) => {
      const found = newer(a, b);
      assert.ok(found === a || found === b);
      assert.ok(compareVersions(found, a) >= 0 && compareVersions(found, b) >= 0);
    }),
  );
});

test('the newer of a version and none is the version', () => {
  const only = { epoch: 1, sequence: 1 };
  assert.equal(newer(only, undefined), only);
  assert.equal(newer(undefined, only), only);
  assert.equal(newer(undefined, undefined), undefined);
});
