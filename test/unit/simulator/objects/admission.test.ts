import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { UPSTREAM_DEFAULT_TOLERATION_SECONDS } from '#shared/taints/tolerations.ts';
import { admitTolerations } from '#simulator/objects/admission.ts';
import * as arbitrary from '#test/unit/taints/arbitraries.ts';

const create = { operation: 'CREATE', resource: 'pods', subresource: '' };
const NOT_READY = {
  key: 'node.kubernetes.io/not-ready',
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300n,
};
const UNREACHABLE = { ...NOT_READY, key: 'node.kubernetes.io/unreachable' };

type Tolerations = Parameters<typeof admitTolerations>[1];
const admit = (tolerations: Tolerations, request = create) =>
  admitTolerations(request, tolerations, UPSTREAM_DEFAULT_TOLERATION_SECONDS);

test('adds both default tolerations to a pod without tolerations, not-ready first, also in an update', () => {
  assert.deepEqual(admit([]), [NOT_READY, UNREACHABLE]);
  assert.deepEqual(admit([], { ...create, operation: 'UPDATE' }), [NOT_READY, UNREACHABLE]);
});

test('counts a toleration of every key for both, whatever its operator', () => {
  for (const operator of ['Exists', 'Equal', 'In']) {
    const wildcard = [{ operator, effect: 'NoExecute' }];
    assert.deepEqual(admit(wildcard), wildcard);
  }
});

test("uses the flags' values unchanged", () => {
  const given = admitTolerations(create, [], { notReady: -1n, unreachable: 0n });
  assert.deepEqual(
    given.map(({ tolerationSeconds }) => tolerationSeconds),
    [-1n, 0n],
  );
});

for (const request of [
  { ...create, operation: 'DELETE' },
  { ...create, operation: 'CONNECT' },
  { ...create, resource: 'nodes' },
  { ...create, subresource: 'status' },
]) {
  test(`ignores ${request.operation} of ${request.resource}/${request.subresource}`, () => {
    assert.deepEqual(admit([], request), []);
  });
}

test('keeps existing tolerations in front and is idempotent', () => {
  fc.assert(
    fc.property(arbitrary.tolerations, (tolerations) => {
      const once = admit(tolerations);
      assert.deepEqual(once.slice(0, tolerations.length), tolerations);
      assert.deepEqual(admit(once), once);
    }),
  );
});
