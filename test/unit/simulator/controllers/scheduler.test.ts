import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { tolerates } from '#shared/taints/match.ts';
import { normaliseScores, schedulerVerdict } from '#simulator/controllers/scheduler.ts';
import * as arbitrary from '#test/unit/taints/arbitraries.ts';

const options = { comparisonOperators: false };
const taints = fc.array(arbitrary.taint, { maxLength: 5 });

test('excludes nodes with exactly the untolerated NoSchedule and NoExecute taints', () => {
  fc.assert(
    fc.property(taints, arbitrary.tolerations, arbitrary.options, (given, tolerations, gates) => {
      const verdict = schedulerVerdict(given, tolerations, gates);
      const untolerated = given.filter((taint) => !tolerations.some((each) => tolerates(taint, each, gates)));
      const count = (effect: string) => untolerated.filter((taint) => taint.effect === effect).length;
      assert.equal(verdict.noSchedule, count('NoSchedule') === 0);
      assert.equal(verdict.noExecute, count('NoExecute') === 0);
      assert.equal(verdict.preferCount, count('PreferNoSchedule'));
      assert.equal(verdict.firstUntolerated === undefined, verdict.noSchedule && verdict.noExecute);
    }),
  );
});

test("names the first untolerated taint in the node's order, whatever its effect", () => {
  const given = [
    { key: 'a', effect: 'PreferNoSchedule' },
    { key: 'b', effect: 'NoExecute' },
    { key: 'c', effect: 'NoSchedule' },
  ];
  assert.equal(schedulerVerdict(given, [], options).firstUntolerated, given[1]);
});

test('ignores tolerationSeconds', () => {
  const tolerations = [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 10n }];
  const verdict = schedulerVerdict([{ key: 'a', effect: 'NoExecute' }], tolerations, options);
  assert.equal(verdict.firstUntolerated, undefined);
});

test('divides scores in integers, as upstream, and scores all nodes 100 without an untolerated preference', () => {
  assert.deepEqual(normaliseScores([0, 1, 2, 3]), [100, 67, 34, 0]);
  assert.deepEqual(normaliseScores([0, 0, 0]), [100, 100, 100]);
  assert.deepEqual(normaliseScores([]), []);
});

test('scores the worst node 0, and never scores fewer untolerated taints lower', () => {
  const counts = fc
    .array(fc.nat({ max: 50 }), { minLength: 1 })
    .filter((given) => given.some((count) => count > 0));
  fc.assert(
    fc.property(counts, (given) => {
      const scores = normaliseScores(given);
      assert.equal(Math.min(...scores), 0);
      const sorted = given.map((count, index) => ({ count, score: scores[index] ?? -1 }));
      sorted.sort((a, b) => a.count - b.count || b.score - a.score);
      for (const [index, { score }] of sorted.entries()) {
        assert.ok(score >= 0 && score <= (sorted[index - 1]?.score ?? 100));
      }
    }),
  );
});
