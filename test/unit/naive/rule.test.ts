import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { deadline } from '#shared/taints/deadline.ts';
import { dueAt, secondsBorne, type Taint, type Toleration } from '#test/naive/rule.ts';

const maintenance: Taint = { key: 'maintenance', value: 'now', effect: 'NoExecute' };
const bears = (tolerationSeconds?: number): Toleration => ({
  key: 'maintenance',
  operator: 'Exists',
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});

test('the first toleration that matches a taint determines the tolerated seconds', () => {
  assert.equal(secondsBorne([bears(60), bears()], maintenance), 60);
  assert.equal(secondsBorne([bears(), bears(60)], maintenance), Infinity);
  assert.equal(secondsBorne([{ key: 'other', operator: 'Exists' }, bears(60)], maintenance), 60);
  assert.equal(secondsBorne([{ key: 'maintenance', value: 'later' }], maintenance), 0);
  assert.equal(secondsBorne([bears(-5)], maintenance), 0);
  assert.equal(secondsBorne([], { ...maintenance, effect: 'NoSchedule' }), Infinity);
});

test('the taint with the shortest toleration determines the deadline, from the time both pod and taint exist', () => {
  const pod = { since: 5_000, tolerations: [bears(60), { key: 'other', operator: 'Exists' }] };
  const other = { key: 'other', effect: 'NoExecute', since: 0 };
  assert.equal(dueAt(pod, []), Infinity);
  assert.equal(dueAt(pod, [other]), Infinity);
  assert.equal(dueAt(pod, [other, { ...maintenance, since: 1_000 }]), 65_000);
  assert.equal(dueAt(pod, [other, { ...maintenance, since: 9_000 }]), 69_000);
  assert.equal(dueAt(pod, [{ key: 'third', effect: 'NoExecute', since: 1_000 }]), 5_000);
});

/** Few keys and values, so that tolerations and taints match often. */
const word = fc.constantFrom('', '0', '7', '-7', '007', 'a');
const effect = fc.constantFrom('', 'NoExecute', 'NoSchedule');
const tolerations = fc.array(
  fc.record({
    key: fc.constantFrom('', 'a', 'b'),
    operator: fc.constantFrom('', 'Equal', 'Exists', 'Lt', 'Gt', 'exists'),
    value: word,
    effect,
    tolerationSeconds: fc.option(fc.integer({ min: -1, max: 3 }), { nil: undefined }),
  }),
  { maxLength: 4 },
);
const taints = fc.array(
  fc.record({
    key: fc.constantFrom('a', 'b'),
    value: word,
    effect: fc.constantFrom('NoExecute', 'NoSchedule'),
    since: fc.integer({ min: 0, max: 5_000 }),
  }),
  { maxLength: 3 },
);

test('agrees with the independently written rule of the service', () => {
  fc.assert(
    fc.property(tolerations, taints, fc.integer({ min: 0, max: 5_000 }), (borne, current, since) => {
      const asStored = borne.map(({ tolerationSeconds: seconds, ...rest }) => ({
        ...rest,
        ...(seconds === undefined ? {} : { tolerationSeconds: BigInt(seconds) }),
      }));
      const ours = deadline(asStored, current, since, { comparisonOperators: true });
      assert.equal(dueAt({ since, tolerations: borne }, current), ours ? Number(ours.atMs) : Infinity);
    }),
    { numRuns: 2_000 },
  );
});
