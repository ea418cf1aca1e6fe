import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withDefaultTolerations } from '#shared/taints/tolerations.ts';

const [NOT_READY, UNREACHABLE] = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
const added = (key: string, tolerationSeconds = 300n) =>
  ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }) as const;

test('admission appends the two tolerations that a list lacks, by key and effect alone', () => {
  const keys = [NOT_READY, UNREACHABLE, 'other', '', undefined];
  const cases = keys.flatMap((key) =>
    ['NoExecute', 'NoSchedule', '', undefined].map((effect) => ({ key, effect })),
  );
  for (const { key, effect } of cases) {
    const given = {
      operator: 'Equal',
      value: 'v',
      ...(key !== undefined && { key }),
      ...(effect !== undefined && { effect }),
    };
    const counts = effect !== 'NoSchedule';
    const lacking = [NOT_READY, UNREACHABLE].filter((each) => !(counts && (!key || key === each)));
    assert.deepEqual(
      withDefaultTolerations([given]),
      [given, ...lacking.map((each) => added(each))],
      `${key} ${effect}`,
    );
  }
  const others = [
    { key: 'a', operator: 'Exists' },
    { key: 'b', operator: 'Exists' },
  ];
  assert.deepEqual(withDefaultTolerations(others, { notReady: 7n, unreachable: 9n }), [
    ...others,
    added(NOT_READY, 7n),
    added(UNREACHABLE, 9n),
  ]);
  assert.deepEqual(withDefaultTolerations([]), [added(NOT_READY), added(UNREACHABLE)]);
});
