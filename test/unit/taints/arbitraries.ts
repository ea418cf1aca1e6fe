import fc from 'fast-check';
import { INT64_MAX, INT64_MIN } from '#shared/taints/int64.ts';
import type { Taint, Toleration } from '#shared/taints/taint.ts';

/** Few distinct strings, so that random taints and tolerations often match. */
const key = fc.constantFrom('', 'a', 'b', 'example.com/gpu', 'node.kubernetes.io/not-ready');
const value = fc.constantFrom('', 'v', '5', '05', '-5', '950', '9007199254740993', 'gold');
const effect = fc.constantFrom('', 'NoExecute', 'NoSchedule', 'PreferNoSchedule', 'noexecute');
const operator = fc.constantFrom('', 'Equal', 'Exists', 'Lt', 'Gt', 'In');

export const int64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX });

export const seconds = fc.oneof(fc.bigInt({ min: -5n, max: 1000n }), int64, fc.constant(INT64_MAX));

export const options = fc.record({ comparisonOperators: fc.boolean() });

export const taint: fc.Arbitrary<Taint> = fc.record(
  { key, value, effect },
  { requiredKeys: ['key', 'effect'] },
);

export const toleration: fc.Arbitrary<Toleration> = fc.record(
  { key, operator, value, effect, tolerationSeconds: seconds },
  { requiredKeys: [] },
);

export const tolerations = fc.array(toleration, { maxLength: 6 });

/** Whole epoch milliseconds, close together, so that random times often coincide. */
export const moment = fc.integer({ min: 0, max: 20 }).map((step) => Date.UTC(2026, 0, 1) + step * 1000);

/** A taint that evicts, with the time since when the node has the taint. */
export const presentTaint = fc
  .record({ key, value, since: moment })
  .map((given) => ({ ...given, effect: 'NoExecute' }));

/** A NoExecute or virtual taint, with the time since when the node has the taint. */
export const evictingTaint = fc
  .tuple(presentTaint, fc.boolean())
  .map(([given, virtual]) => (virtual ? { ...given, effect: 'NoSchedule', virtual: true as const } : given));

export const presentTaints = fc.array(presentTaint, { maxLength: 5 });
