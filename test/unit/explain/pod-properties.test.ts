import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { podDeadlines } from '#shared/eviction/pod-deadline.ts';
import type { Forecast } from '#shared/explain/forecast.ts';
import { known } from '#shared/explain/known.ts';
import { explainPod, type PodAnswer } from '#shared/explain/pod.ts';
import { remediesFor } from '#shared/explain/remedies.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import { at, rules, tolerating } from '#test/unit/eviction/builders.ts';
import { aCase, aPod, NOW, since } from './builders.ts';

const KEYS = ['a', 'b', 'node.kubernetes.io/not-ready'];
const taints = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...KEYS), fc.integer({ min: 0, max: NOW })), {
    selector: ([key]) => key,
  })
  .map((all) => all.map(([key, second]) => since(second, key)));
const tolerations = fc.array(
  fc.oneof(
    fc
      .tuple(fc.constantFrom(...KEYS), fc.option(fc.integer({ min: -1, max: 300 }), { nil: undefined }))
      .map(([key, seconds]) => tolerating(key, seconds)),
    fc.integer({ min: 0, max: 300 }).map((seconds) => ({
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: BigInt(seconds),
    })),
  ),
  { maxLength: 4 },
);

const explained = (on: Parameters<typeof aCase>[0], tolerations: readonly Toleration[]) =>
  explainPod(aCase(on, { pod: known(aPod({ tolerations })) }));

test('marks the taints that set the deadline, and their tolerations, as deciding', () => {
  fc.assert(
    fc.property(taints, tolerations, (on, tolerated) => {
      const answer = explained(on, tolerated);
      const expected = podDeadlines(on, undefined, rules)(tolerated, at(0));
      const deciding = answer.taints.filter(({ decides }) => decides);
      assert.deepEqual(
        deciding.map(({ taint, since: started, known: how, seconds, toleration }) => ({
          taint,
          since: started,
          known: how,
          seconds,
          ...(toleration ? { toleration: toleration.index } : {}),
        })),
        expected?.causes ?? [],
      );
      const deadlines = answer.taints.flatMap(({ deadlineAt }) => deadlineAt ?? []);
      assert.equal(deadlines.length > 0 ? Math.min(...deadlines) : undefined, expected?.at);
      assert.equal(answer.outcome.kind, expected ? 'evict' : 'keep');
    }),
  );
});

interface Operation {
  readonly op: 'add' | 'remove';
  readonly path: string;
  readonly value?: Toleration | readonly Toleration[];
}

/** Applies the JSON patch of the remediation to tolerations, as `kubectl patch --type json` does. */
function patched(tolerated: readonly Toleration[], { remediations }: PodAnswer): readonly Toleration[] {
  const remedy = remediations.find(({ kind }) => kind === 'tolerate');
  const [, json = '[]'] = /--patch '(.+)'$/.exec(remedy?.kind === 'tolerate' ? remedy.command : '') ?? [];
  return (JSON.parse(json) as readonly Operation[]).reduce<readonly Toleration[]>((all, { path, value }) => {
    const [, index] = /^\/spec\/tolerations\/(\d+)\/tolerationSeconds$/.exec(path) ?? [];
    if (index === undefined) return all.concat(value ?? []);
    return all.map((oneOfAll, place) => {
      const { tolerationSeconds: _removed, ...rest } = oneOfAll;
      return place === Number(index) ? rest : oneOfAll;
    });
  }, tolerated);
}

test('suggests patches for every pod that is evicted, and a patched pod stays', () => {
  fc.assert(
    fc.property(taints, tolerations, (on, tolerated) => {
      const answer = explained(on, tolerated);
      assert.equal(answer.remediations.length > 0, answer.outcome.kind === 'evict');
      assert.equal(explained(on, patched(tolerated, answer)).outcome.kind, 'keep');
    }),
  );
});

test('suggests a hold for each pod that is evicted or failed, and for no other', () => {
  const accounts = explained([since(0, 'a')], []).taints;
  const where = { cluster: clusterName('c1'), node: nodeName('n1'), nodeGone: false, pod: aPod() };
  const isOffered = { evict: true, failed: true, held: false, blocked: false, terminating: false };
  for (const [kind, expected] of Object.entries(isOffered)) {
    const remedies = remediesFor(accounts, where, { kind } as Forecast);
    assert.equal(
      remedies.some((remedy) => remedy.kind === 'hold'),
      expected,
      kind,
    );
  }
});

test('suggests taints to remove, and a pod without these taints stays', () => {
  fc.assert(
    fc.property(taints, tolerations, (on, tolerated) => {
      const removed = explained(on, tolerated).remediations.flatMap((remedy) =>
        remedy.kind === 'untaint' ? [remedy.taint] : remedy.kind === 'fix-node' ? remedy.taints : [],
      );
      const left = on.filter(({ key }) => !removed.some((taint) => taint.key === key));
      assert.equal(explained(left, tolerated).outcome.kind, 'keep');
    }),
  );
});
