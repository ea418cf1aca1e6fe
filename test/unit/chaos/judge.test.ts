import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadlinesOf, type History, type JudgedPod, judge, type SentDelete } from '#test/chaos/judge.ts';

const fan = { key: 'fan', effect: 'NoExecute' };
const bearing = (tolerationSeconds: number) => [{ key: 'fan', operator: 'Exists', tolerationSeconds }];
/** Asked for at a moment, in seconds, and seen a tenth of a second later. */
const at = (seconds: number) => ({ askedAt: seconds * 1000, seenAt: seconds * 1000 + 100 });

const POD: JudgedPod = {
  uid: 'u',
  name: 'p',
  node: 'n',
  turns: [{ ...at(0), tolerations: bearing(20) }],
  deletedByPeople: false,
};
const sent = (seconds: number, more: Partial<SentDelete> = {}): SentDelete => ({
  uid: 'u',
  lookedAt: seconds * 1000,
  sentAt: seconds * 1000,
  lookAgeMs: 100,
  status: 200,
  ...more,
});
const left = (seconds: number, more: Partial<JudgedPod> = {}): JudgedPod => ({
  ...POD,
  leftAt: seconds * 1000,
  ...more,
});

/** Of a node that is tainted from 10 s to 60 s, until 100 s. */
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

test('a pod that went when it was due went rightly, and so late as is certain', () => {
  const { violations, evictions, lateMs } = judged([left(31)], [sent(30.9)]);
  assert.deepEqual([violations, evictions, lateMs], [[], 1, [900]]);
});

test('between when something was asked for and when it was seen, the service has the benefit of the doubt', () => {
  assert.deepEqual(kinds([left(30.05)], [sent(30)]), []);
  assert.deepEqual(kinds([left(60.5)], [sent(60.05)]), []);
});

test('a pod that went before it can have been due went early', () => {
  assert.deepEqual(kinds([left(29.9)], [sent(29.8)]), ['early']);
});

test('a pod that went when nothing called for that went wrongly', () => {
  assert.deepEqual(kinds([left(5)], [sent(4.9)]), ['wrong']);
  assert.deepEqual(kinds([left(61)], [sent(60.9)]), ['wrong']);
  assert.deepEqual(kinds([left(61)], [sent(60.9, { lookedAt: 60_050 })]), []);
});

test('a delete that was decided too soon is early, however long its way was', () => {
  assert.deepEqual(kinds([left(35)], [sent(29.9)]), ['early']);
  assert.deepEqual(kinds([left(15)], [sent(9.9)]), ['wrong']);
});

test('of several deletes that may have done it, one that is right is enough', () => {
  assert.deepEqual(kinds([left(35)], [sent(29.9, { status: undefined }), sent(31)]), []);
  assert.deepEqual(kinds([left(30.5)], [sent(29.9, { status: undefined }), sent(31)]), ['early']);
});

test('a taint that came back begins a countdown of its own', () => {
  const turns = [10, 25, 27].map((seconds, index) => ({ ...at(seconds), taints: index === 1 ? [] : [fan] }));
  const nodes = new Map([['n', turns]]);
  assert.deepEqual(kinds([left(31)], [sent(30.9)], { nodes }), ['early']);
  assert.deepEqual(kinds([left(48)], [sent(47.9)], { nodes }), []);
});

test('a taint with another value goes on with its countdown', () => {
  const turns = [10, 25].map((seconds, index) => ({
    ...at(seconds),
    taints: [{ ...fan, value: `${index}` }],
  }));
  assert.deepEqual(kinds([left(30.5)], [sent(30.4)], { nodes: new Map([['n', turns]]) }), []);
});

test('a pod that came to tolerate more is due later', () => {
  const turns = [...POD.turns, { ...at(20), tolerations: bearing(40) }];
  assert.deepEqual(kinds([left(31, { turns })], [sent(30.9)]), ['early']);
  assert.deepEqual(kinds([left(51, { turns })], [sent(50.9)]), []);
});

test('a pod that is due and there in the end is lost, and one that was saved is not', () => {
  assert.deepEqual(kinds([POD], [], { endAt: 40_000 }), ['lost']);
  const { violations, savedAfterMs } = judged([POD], []);
  assert.deepEqual([violations, savedAfterMs], [[], [30_000]]);
});

test('two deletes that the API server took are one too many, and one that it refused is none', () => {
  assert.deepEqual(kinds([left(31)], [sent(30.9), sent(30.95)]), ['doubled']);
  assert.deepEqual(kinds([left(31)], [sent(30.9), sent(30.95, { status: 404 })]), []);
});

test('a pod that nobody was seen to delete went wrongly, unless people deleted it', () => {
  assert.deepEqual(kinds([left(31)], []), ['wrong']);
  assert.deepEqual(kinds([left(5, { deletedByPeople: true })], []), []);
  assert.deepEqual(kinds([left(31)], [sent(30.9, { status: undefined })]), []);
});

test('a pod that is there has to go when what was seen last says so', () => {
  const nodes = new Map([['n', [{ ...at(10), taints: [fan] }]]]);
  assert.deepEqual(deadlinesOf({ nodes, pods: [POD, left(31)], endAt: 20_000 }), [30_100]);
  const free = [{ ...at(0), tolerations: [{ operator: 'Exists' }] }];
  assert.deepEqual(deadlinesOf({ nodes, pods: [{ ...POD, turns: free }], endAt: 20_000 }), [Infinity]);
});
