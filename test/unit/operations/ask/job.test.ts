import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { projectJob, traitsOf } from '#shared/operations/ask/job.ts';

const DISRUPTED = { onPodConditions: [{ type: 'DisruptionTarget' }] };
const exited = (operator: string, ...values: readonly number[]) => ({ onExitCodes: { operator, values } });

describe('a Job', () => {
  test("has the API server's defaults", () => {
    assert.deepEqual(projectJob({ spec: {} }), { failed: 0, backoffLimit: 6 });
    assert.deepEqual(projectJob({ spec: { backoffLimitPerIndex: 1 }, status: { failed: 2 } }), {
      failed: 2,
      backoffLimit: Number.POSITIVE_INFINITY,
      backoffLimitPerIndex: 1,
    });
  });

  test('tells how many indexes may still fail', () => {
    const left = (maxFailedIndexes: number, failedIndexes?: string) =>
      projectJob({ spec: { backoffLimitPerIndex: 1, maxFailedIndexes }, status: { failedIndexes } })
        .indexesLeft;
    assert.deepEqual([left(5), left(5, ''), left(5, '7'), left(5, '0,2-4,9')], [5, 5, 4, 0]);
  });

  const cases: readonly (readonly [string, readonly object[], string | undefined])[] = [
    ['the condition', [{ action: 'Ignore', ...DISRUPTED }], 'Ignore'],
    [
      'the first of two',
      [
        { action: 'FailJob', ...DISRUPTED },
        { action: 'Ignore', ...DISRUPTED },
      ],
      'FailJob',
    ],
    ['another condition', [{ action: 'Ignore', onPodConditions: [{ type: 'ConfigIssue' }] }], undefined],
    [
      'the absent condition',
      [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'False' }] }],
      undefined,
    ],
    [
      'another exit code',
      [
        { action: 'FailJob', ...exited('In', 42) },
        { action: 'Ignore', ...DISRUPTED },
      ],
      'Ignore',
    ],
    ['the exit code of SIGTERM', [{ action: 'FailJob', ...exited('In', 143) }], 'FailJob'],
    ['all other exit codes', [{ action: 'FailJob', ...exited('NotIn', 42) }], 'FailJob'],
    ['an unknown action', [{ action: 'Later', ...DISRUPTED }], undefined],
  ];
  for (const [name, rules, action] of cases)
    test(`applies rules of its podFailurePolicy: ${name}`, () => {
      assert.equal(projectJob({ spec: { podFailurePolicy: { rules } } }).action, action);
    });
});

test('reads the phase of a pod, and the failures of its index', () => {
  const annotations = { 'batch.kubernetes.io/job-index-failure-count': '2' };
  assert.deepEqual(traitsOf({ metadata: { annotations }, status: { phase: 'Running' } }), {
    indexFailures: 2,
  });
  assert.deepEqual(traitsOf({ status: { phase: 'Succeeded' } }), { finished: true, indexFailures: 0 });
  assert.deepEqual(traitsOf({ status: { phase: 'Failed' } }), { finished: true, indexFailures: 0 });
});
