import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { deadline } from '#shared/taints/deadline.ts';
import { tolerates } from '#shared/taints/match.ts';
import type { Taint, Toleration } from '#shared/taints/taint.ts';
import { evictingTaints, stays } from '#shared/taints/virtual.ts';
import * as arbitrary from './arbitraries.ts';

const START = Date.UTC(2026, 0, 1);
const options = { comparisonOperators: false };
const keys = fc.subarray(['a', 'b', 'example.com/gpu']);

const taint = (key: string, effect: string, value?: string): Taint => ({
  key,
  effect,
  ...(value === undefined ? {} : { value }),
});

describe('the taints that evict', () => {
  test('are the unchanged NoExecute taints, where no key is virtual', () => {
    fc.assert(
      fc.property(fc.array(arbitrary.taint), (taints) => {
        const executing = taints.filter(({ effect }) => effect === 'NoExecute');
        assert.deepEqual(evictingTaints(taints, []), executing);
      }),
    );
  });

  test('include NoSchedule taints of virtual keys, marked, in the order of the node', () => {
    const [a, b, c] = [taint('a', 'NoSchedule', 'x'), taint('b', 'NoExecute'), taint('c', 'NoSchedule')];
    assert.deepEqual(evictingTaints([a, b, c], ['a']), [{ ...a, virtual: true }, b]);
    assert.deepEqual(evictingTaints([taint('a', 'PreferNoSchedule')], ['a']), []);
  });

  test('are the NoExecute taint of a key that has both effects, with the earlier time of both', () => {
    const added = (effect: string, timeAdded?: number) => ({
      ...taint('a', effect),
      ...(timeAdded === undefined ? {} : { timeAdded }),
    });
    // The times of the NoSchedule twin, of the NoExecute twin, and of the taint that evicts.
    for (const [twin, executing, time] of [
      [3, 5, 3],
      [7, 5, 5],
      [3, undefined, 3],
      [undefined, 5, undefined],
      [undefined, undefined, undefined],
    ]) {
      const both = [added('NoSchedule', twin), added('NoExecute', executing)];
      assert.deepEqual(evictingTaints(both, ['a']), [added('NoExecute', time)]);
      assert.deepEqual(evictingTaints(both, []), [added('NoExecute', executing)]);
    }
  });

  test('are marked as virtual exactly where their effect is not NoExecute', () => {
    fc.assert(
      fc.property(fc.array(arbitrary.taint), keys, (taints, virtual) => {
        for (const { key, effect, virtual: mark } of evictingTaints(taints, virtual)) {
          assert.ok(effect === 'NoExecute' ? !mark : mark && virtual.includes(key));
        }
      }),
    );
  });
});

test('a pod stays only if it tolerates a virtual taint as NoSchedule', () => {
  const tolerations = [{ operator: 'Exists', effect: 'NoSchedule' }];
  const virtual = { ...taint('a', 'NoSchedule'), virtual: true as const };
  assert.equal(stays(virtual, tolerations, options), true);
  assert.equal(stays(virtual, [], options), false);
  assert.equal(stays(taint('a', 'NoSchedule'), tolerations, options), false);
});

describe('a virtual taint', () => {
  const virtual = (since: number, key: string, value?: string) => ({
    ...taint(key, 'NoSchedule', value),
    virtual: true as const,
    since,
  });

  test('sets the deadline of the NoExecute taint for a pod that tolerates the NoExecute taint', () => {
    const { tolerations, presentTaint, moment } = arbitrary;
    fc.assert(
      fc.property(tolerations, presentTaint, moment, arbitrary.options, (list, real, podSince, gates) => {
        fc.pre(list.some((toleration) => tolerates(real, toleration, gates)));
        const twin = { ...real, effect: 'NoSchedule', virtual: true as const };
        const [asReal, asVirtual] = [real, twin].map((each) => deadline(list, [each], podSince, gates));
        assert.equal(asVirtual?.atMs, asReal?.atMs);
        assert.equal(asVirtual?.because[0]?.toleration, asReal?.because[0]?.toleration);
      }),
    );
  });

  test('evicts no pod that tolerates only the NoSchedule taint, and evicts every other pod', () => {
    const { tolerations, presentTaint, moment } = arbitrary;
    fc.assert(
      fc.property(tolerations, presentTaint, moment, arbitrary.options, (list, real, podSince, gates) => {
        fc.pre(!list.some((toleration) => tolerates(real, toleration, gates)));
        const twin = { ...real, effect: 'NoSchedule', virtual: true as const };
        const tolerated = list.some((toleration) => tolerates(twin, toleration, gates));
        const at = deadline(list, [twin], podSince, gates)?.atMs;
        assert.equal(at, tolerated ? undefined : BigInt(Math.max(real.since, podSince)));
      }),
    );
  });

  test('is named in the cause with its own effect and the policy field', () => {
    const toleration: Toleration = { key: 'a', operator: 'Exists', tolerationSeconds: 60n };
    const found = deadline([toleration], [virtual(START, 'a')], START, options);
    assert.deepEqual(found?.because, [
      { taint: virtual(START, 'a'), toleration: 0, seconds: 60n, policy: 'treatAsNoExecute' },
    ]);
  });
});
