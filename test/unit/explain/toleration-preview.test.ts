import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeCase } from '#shared/explain/forecast.ts';
import { podTolerations, previewTolerations } from '#shared/explain/toleration-preview.ts';
import type { LiveTaint, Toleration } from '#shared/taints/taint.ts';
import { at, rules, tolerating } from '#test/unit/eviction/builders.ts';
import { aPod, NOW, ruled, since, stored } from './builders.ts';

const A = { key: 'a', effect: 'NoExecute' };

const nodeWith = (taints: readonly LiveTaint[] | undefined, fields: Partial<NodeCase> = {}): NodeCase => ({
  now: at(NOW),
  partition: stored([since(90)]),
  rules: ruled({ mode: 'enforce' }),
  live: { taints },
  ...fields,
});

/** The preview of a list for pod web-0, which tolerates `a` for 60 s, on a node that has it since second 90. */
const preview = (tolerations: readonly Toleration[], isRunning: boolean, node = nodeWith([A])) => {
  const { taints, pods } = previewTolerations({
    now: at(NOW),
    rules: node.rules,
    nodes: [node],
    pods: [aPod(), aPod({ name: 'web-1', uid: 'u2' as never, node: undefined })],
    tolerations,
    ...(isRunning ? { listOf: () => tolerations } : {}),
  });
  return { taints, pod: pods.find(({ name }) => name === 'web-0'), pods };
};

const outcome = (forecast: object | undefined) => {
  const { kind, at: due, cause } = { kind: 'elsewhere', at: undefined, cause: undefined, ...forecast };
  return due === undefined ? [kind, cause].filter(Boolean).join(' ') : `${kind} ${(due - at(0)) / 1000}`;
};

for (const [tolerations, isRunning, after] of [
  [[tolerating('a', 300)], true, 'evict 390'],
  [[tolerating('a')], true, 'keep tolerated'],
  [[], true, 'evict 100'],
  [[tolerating('a', 300)], false, 'evict 400'],
  [[tolerating('a')], false, 'keep tolerated'],
  [[], false, 'elsewhere'],
] as const)
  test(`foresees for ${isRunning ? 'a running pod' : 'a replacement'} with ${tolerations.length} tolerations: ${after}`, () => {
    const { pod } = preview(tolerations, isRunning);
    assert.deepEqual([outcome(pod?.before), outcome(pod?.after)], ['evict 150', after]);
  });

test('leaves a pod alone that is not bound, and binds none to a node that is gone', () => {
  const { pods } = preview([], false, nodeWith(undefined));
  assert.deepEqual(
    pods.map(({ name, after }) => [name, outcome(after)]),
    [
      ['web-1', 'keep unbound'],
      ['web-0', 'elsewhere'],
    ],
  );
});

test('counts the nodes of each taint, and says what decides and what schedulers do', () => {
  const node = nodeWith([A, { key: 'b', effect: 'NoSchedule' }], { partition: stored([]) });
  const { taints } = previewTolerations({
    now: at(NOW),
    rules,
    nodes: [node, node],
    pods: [],
    tolerations: [tolerating('a', 60), tolerating('a')],
  });
  assert.deepEqual(taints, [
    {
      taint: A,
      evicts: 'yes',
      toleration: { index: 0, seconds: 60 },
      seconds: 60,
      schedules: true,
      nodes: 2,
    },
    { taint: { key: 'b', effect: 'NoSchedule' }, evicts: 'no', schedules: false, nodes: 2 },
  ]);
});

test('gives pods of a DaemonSet the tolerations of its controller, in place of seconds of the same', () => {
  const own = { ...tolerating('node.kubernetes.io/not-ready', 60) };
  const list = podTolerations('DaemonSet', [own, tolerating('a')]);
  assert.deepEqual(
    list.map(({ key, effect, tolerationSeconds }) => `${key}:${effect} ${tolerationSeconds}`),
    [
      'a:NoExecute undefined',
      ...['not-ready', 'unreachable'].map((key) => `node.kubernetes.io/${key}:NoExecute undefined`),
      ...['disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'].map(
        (key) => `node.kubernetes.io/${key}:NoSchedule undefined`,
      ),
    ],
  );
  assert.equal(podTolerations('Deployment', [own])[1]?.tolerationSeconds, 300n);
});
