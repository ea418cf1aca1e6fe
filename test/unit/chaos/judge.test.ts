import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadlinesOf, type History, type JudgedPod, judge, type SentDelete } from '#test/chaos/judge.ts';

const fan = { key: 'fan', effect: 'NoExecute' };
const bearing = (tolerationSeconds: number) => [{ key: 'fan', operator: 'Exists', tolerationSeconds }];
/** A change that was requested at this second and observed 0.1 s later. */
const at = (seconds: number) => ({ requestedAt: seconds * 1000, seenAt: seconds * 1000 + 100 });

const POD: JudgedPod = {
  uid: 'u',
  name: 'p',
  node: 'n',
  turns: [{ ...at(0), tolerations: bearing(20) }],
  deletedByPeople: false,
};
const sent = (seconds: number, more: Partial<SentDelete> = {}): SentDelete => ({
  uid: 'u',
  readAt: seconds * 1000,
  sentAt: seconds * 1000,
  readAgeMs: 100,
  status: 200,
  ...more,
});
const left = (seconds: number, more: Partial<JudgedPod> = {}): JudgedPod => ({
  ...POD,
  leftAt: seconds * 1000,
  ...more,
});

/** The result for pods on a node that is tainted from 10 s to 60 s, in a history that ends at 100 s. */
const judged = (pods: readonly JudgedPod[], deletes: readonly SentDelete[], more: Partial<History> = {}) =>
  judge({
    nodes: new Map([
      [
        'n',
        [
          { ...at(0), taints: [] },
          { ...at(10), taints: [fan] },
          { ...at(60), taints: [] },
        ],
      ],
    ]),
    pods,
    deletes,
    endAt: 100_000,
    ...more,
  });
const kinds = (...args: Parameters<typeof judged>) => judged(...args).violations.map(({ kind }) => kind);

test('accepts a pod that was evicted when due and reports the certain part of its delay', () => {
  const { violations, evictions, delayMs } = judged([left(31)], [sent(30.9)]);
  assert.deepEqual([violations, evictions, delayMs], [[], 1, [900]]);
});

test('accepts any order of events between a request and its observation', () => {
  assert.deepEqual(kinds([left(30.05)], [sent(30)]), []);
  assert.deepEqual(kinds([left(60.5)], [sent(60.05)]), []);
});

test('reports a pod as early that was evicted before its earliest deadline', () => {
  assert.deepEqual(kinds([left(29.9)], [sent(29.8)]), ['early']);
});

test('reports a pod as wrong that was evicted without a reason', () => {
  assert.deepEqual(kinds([left(5)], [sent(4.9)]), ['wrong']);
  assert.deepEqual(kinds([left(61)], [sent(60.9)]), ['wrong']);
  assert.deepEqual(kinds([left(61)], [sent(60.9, { readAt: 60_050 })]), []);
});

test('judges a delete by the time of its decision, not of its arrival', () => {
  assert.deepEqual(kinds([left(35)], [sent(29.9)]), ['early']);
  assert.deepEqual(kinds([left(15)], [sent(9.9)]), ['wrong']);
});

test('accepts a removal when one of its possible deletes is right', () => {
  assert.deepEqual(kinds([left(35)], [sent(29.9, { status: undefined }), sent(31)]), []);
  assert.deepEqual(kinds([left(30.5)], [sent(29.9, { status: undefined }), sent(31)]), ['early']);
});

test('starts a new countdown for a taint that returned', () => {
  const turns = [10, 25, 27].map((seconds, index) => ({ ...at(seconds), taints: index === 1 ? [] : [fan] }));
  const nodes = new Map([['n', turns]]);
  assert.deepEqual(kinds([left(31)], [sent(30.9)], { nodes }), ['early']);
  assert.deepEqual(kinds([left(48)], [sent(47.9)], { nodes }), []);
});

test('continues the countdown of a taint whose value changed', () => {
  const turns = [10, 25].map((seconds, index) => ({
    ...at(seconds),
    taints: [{ ...fan, value: `${index}` }],
  }));
  assert.deepEqual(kinds([left(30.5)], [sent(30.4)], { nodes: new Map([['n', turns]]) }), []);
});

test('moves the deadline of a pod whose toleration was extended', () => {
  const turns = [...POD.turns, { ...at(20), tolerations: bearing(40) }];
  assert.deepEqual(kinds([left(31, { turns })], [sent(30.9)]), ['early']);
  assert.deepEqual(kinds([left(51, { turns })], [sent(50.9)]), []);
});

test('reports an overdue pod that remains as lost, and a pod whose taint was removed as saved', () => {
  assert.deepEqual(kinds([POD], [], { endAt: 40_000 }), ['lost']);
  const { violations, savedAfterMs } = judged([POD], []);
  assert.deepEqual([violations, savedAfterMs], [[], [30_000]]);
});

test('reports a second accepted delete as doubled and ignores a rejected one', () => {
  assert.deepEqual(kinds([left(31)], [sent(30.9), sent(30.95)]), ['doubled']);
  assert.deepEqual(kinds([left(31)], [sent(30.9), sent(30.95, { status: 404 })]), []);
});

test('reports a removed pod without an observed delete as wrong unless the test deleted it', () => {
  assert.deepEqual(kinds([left(31)], []), ['wrong']);
  assert.deepEqual(kinds([left(5, { deletedByPeople: true })], []), []);
  assert.deepEqual(kinds([left(31)], [sent(30.9, { status: undefined })]), []);
});

test('computes the deadline of a remaining pod from the last observation', () => {
  const nodes = new Map([['n', [{ ...at(10), taints: [fan] }]]]);
  assert.deepEqual(deadlinesOf({ nodes, pods: [POD, left(31)], endAt: 20_000 }), [30_100]);
  const free = [{ ...at(0), tolerations: [{ operator: 'Exists' }] }];
  assert.deepEqual(deadlinesOf({ nodes, pods: [{ ...POD, turns: free }], endAt: 20_000 }), [Infinity]);
});
