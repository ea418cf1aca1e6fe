import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type DuePod, findGate } from '#shared/eviction/gate.ts';
import { looserSettings } from '#shared/eviction/looser.ts';
import type { Policy, Selection } from '#shared/eviction/policy.ts';
import { parsePolicyDocument } from '#shared/state/policy-document.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { pod, ref, rules } from './builders.ts';

/** Settings of an enforced policy, in YAML, before and after. */
type Change = readonly [before: string, after: string];

interface Cases {
  /** Changes that could evict a pod that would stay, or evict a pod sooner. */
  readonly looser: readonly Change[];
  /** Changes that tighten, or change nothing. */
  readonly others: readonly Change[];
}

const later = (ms: number) => new Date(NOW + ms).toISOString();

/** Cases for every setting: a setting that is missing here does not compile. */
const CASES: Readonly<Record<keyof Policy, Cases>> = {
  mode: {
    looser: [['mode: observe', 'mode: enforce']],
    others: [['mode: enforce', 'mode: observe']],
  },
  guard: {
    looser: [
      ['', 'guard: off'],
      ['', 'guard: {dryRun: true}'],
      ['', 'guard: {cluster: off}'],
      ['', 'guard: {zone: off}'],
      ['', 'guard: {customTaints: off}'],
      ['', 'guard: {cluster: {percent: 21}}'],
      ['', 'guard: {zone: {nodes: 4}}'],
      ['', 'guard: {customTaints: {window: 9m}}'],
      ['', 'guard: {cluster: {percent: 10, nodes: 4}}'],
    ],
    others: [
      ['guard: off', ''],
      ['guard: {dryRun: true}', 'guard: off'],
      ['guard: off', 'guard: {dryRun: true}'],
      ['guard: {zone: off}', ''],
      ['', 'guard: {cluster: {percent: 10, nodes: 1}}'],
      ['', 'guard: {customTaints: {window: 11m}}'],
    ],
  },
  evictionRate: {
    looser: [
      ['evictionRate: 5', 'evictionRate: 6'],
      ['evictionRate: 5', ''],
    ],
    others: [
      ['evictionRate: 5', 'evictionRate: 4'],
      ['', 'evictionRate: 5'],
    ],
  },
  releaseRate: {
    looser: [
      ['releaseRate: 5', 'releaseRate: 6'],
      ['releaseRate: 5', ''],
    ],
    others: [['', 'releaseRate: 49']],
  },
  maxEvictionsPerWorkload: {
    looser: [
      ['maxEvictionsPerWorkload: {count: 1}', ''],
      ['maxEvictionsPerWorkload: {count: 1}', 'maxEvictionsPerWorkload: {count: 2}'],
      ['maxEvictionsPerWorkload: {count: 10%}', 'maxEvictionsPerWorkload: {count: 11%}'],
      ['maxEvictionsPerWorkload: {count: 50%}', 'maxEvictionsPerWorkload: {count: 1}'],
      ['maxEvictionsPerWorkload: {count: 1}', 'maxEvictionsPerWorkload: {count: 1, window: 9m}'],
    ],
    others: [
      ['', 'maxEvictionsPerWorkload: {count: 1}'],
      ['maxEvictionsPerWorkload: {count: 2}', 'maxEvictionsPerWorkload: {count: 1, window: 11m}'],
    ],
  },
  exclude: {
    looser: [
      ['exclude: [{namespaces: [a]}]', ''],
      ['exclude: [{namespaces: [a, b]}]', 'exclude: [{namespaces: [a]}]'],
      ['exclude: [{namespaces: [a*]}]', 'exclude: [{namespaces: [ab]}]'],
      ['exclude: [{namespaces: [a]}]', 'exclude: [{namespaces: [a], taints: [t]}]'],
      ['exclude: [{labels: {matchLabels: {a: b}}}]', 'exclude: [{labels: {matchLabels: {a: b, c: d}}}]'],
      ['exclude: [{namespaces: [a]}]', `exclude: [{namespaces: [a], until: ${later(1)}}]`],
      ['exclude: [{ownerKinds: [Job]}]', 'exclude: [{ownerKinds: [Node]}]'],
      ['exclude: [{ownerKinds: [Job]}]', 'exclude: [{ownerKinds: [Job], priorityClassNames: [gold]}]'],
      ['exclude: [{priorityClassNames: [gold, lead]}]', 'exclude: [{priorityClassNames: [gold]}]'],
      ['exclude: [{annotations: {a: b}}]', 'exclude: [{annotations: {a: c}}]'],
      ['exclude: [{annotations: {a: b}}]', 'exclude: [{labels: {matchLabels: {a: b}}}]'],
      ['exclude: [{taints: [ab]}]', 'exclude: [{taints: [a*]}]'],
    ],
    others: [
      ['', 'exclude: [{namespaces: [a]}]'],
      ['exclude: [{namespaces: [a, b]}]', 'exclude: [{namespaces: [b]}, {namespaces: [a]}]'],
      ['exclude: [{namespaces: [ab]}]', 'exclude: [{namespaces: [a*]}]'],
      ['exclude: [{namespaces: [a], taints: [t]}]', 'exclude: [{taints: [t, u]}]'],
      ['exclude: [{labels: {matchLabels: {a: b, c: d}}}]', 'exclude: [{labels: {matchLabels: {a: b}}}]'],
      [`exclude: [{namespaces: [a], until: ${later(-1)}}]`, ''],
      ['exclude: [{ownerKinds: [Job, Node]}]', 'exclude: [{ownerKinds: [Node]}, {ownerKinds: [Job]}]'],
      ['exclude: [{ownerKinds: [Job], annotations: {a: b, c: d}}]', 'exclude: [{annotations: {a: b}}]'],
      ['exclude: [{priorityClassNames: [gold]}]', 'exclude: [{priorityClassNames: [gold, lead]}]'],
    ],
  },
  include: {
    looser: [
      ['include: [{namespaces: [a]}]', ''],
      ['include: [{namespaces: [a]}]', 'include: [{namespaces: [a, b]}]'],
      ['include: [{namespaces: [a]}]', 'include: [{namespaces: [a*]}]'],
      [`include: [{namespaces: [a], until: ${later(-1)}}]`, 'include: [{namespaces: [a]}]'],
      [`include: [{namespaces: [a], until: ${later(-1)}}]`, ''],
    ],
    others: [
      ['', 'include: [{namespaces: [a]}]'],
      ['include: [{namespaces: [a, b]}]', 'include: [{namespaces: [b]}]'],
      ['include: [{namespaces: [a]}]', `include: [{namespaces: [b], until: ${later(-1)}}]`],
    ],
  },
  method: {
    looser: [
      ['method: evict', 'method: delete'],
      ['method: delete', 'method: evict'],
      ['method: evict', 'method: evict, evict: {timeout: 14m}'],
      ['method: evict, evict: {onTimeout: fail}', 'method: evict'],
      ['method: evict, evict: {onTimeout: fail}', 'method: evict, evict: {onTimeout: fail, timeout: 16m}'],
    ],
    others: [
      ['method: evict', 'method: evict, evict: {timeout: 16m}'],
      ['method: evict', 'method: evict, evict: {onTimeout: fail}'],
      ['method: evict, evict: {onTimeout: fail}', 'method: evict, evict: {onTimeout: fail, timeout: 14m}'],
    ],
  },
  tolerationSecondsOverrides: {
    looser: [
      ['', 'tolerationSecondsOverrides: {a: 30}'],
      ['tolerationSecondsOverrides: {a: 30}', ''],
      ['tolerationSecondsOverrides: {a: 30}', 'tolerationSecondsOverrides: {a: 29}'],
    ],
    others: [['tolerationSecondsOverrides: {a: 30}', 'tolerationSecondsOverrides: {a: 31}']],
  },
  requireExpiredLease: {
    looser: [['', 'requireExpiredLease: false']],
    others: [
      ['requireExpiredLease: false', ''],
      ['', 'requireExpiredLease: true'],
    ],
  },
  treatAsNoExecute: {
    looser: [
      ['', 'treatAsNoExecute: [a]'],
      ['treatAsNoExecute: [a]', 'treatAsNoExecute: [b]'],
    ],
    others: [
      ['treatAsNoExecute: [a, b]', 'treatAsNoExecute: [b]'],
      ['treatAsNoExecute: [a]', ''],
    ],
  },
  giveUpAfterMs: {
    looser: [['', 'giveUpAfter: 5d']],
    others: [['', 'giveUpAfter: 3d']],
  },
};

const policyOf = (settings: string, mode = 'mode: enforce') =>
  parsePolicyDocument(
    `{${settings.includes('mode:') ? settings : [mode, settings].filter(Boolean).join(', ')}}`,
  );

for (const [setting, { looser, others }] of Object.entries(CASES)) {
  describe(`changes of ${setting}`, () => {
    for (const [before, after] of looser) {
      test(`free or hasten evictions: ${before || 'none'} → ${after || 'none'}`, () => {
        const found: readonly string[] = looserSettings(policyOf(before), policyOf(after), NOW);
        assert.ok(found.includes(setting), found.join());
      });
    }
    for (const [before, after] of others) {
      test(`free and hasten no evictions: ${before || 'none'} → ${after || 'none'}`, () => {
        assert.deepEqual(looserSettings(policyOf(before), policyOf(after), NOW), []);
        assert.deepEqual(looserSettings(policyOf(after), policyOf(after), NOW), []);
      });
    }
    if (setting !== 'mode')
      test('free and hasten no evictions in observe mode', () => {
        for (const [before, after] of looser)
          assert.deepEqual(looserSettings(policyOf(before), policyOf(after, 'mode: observe'), NOW), []);
      });
  });
}

const some = <T>(...values: T[]) => fc.subarray(values, { minLength: 1 });
const selection = fc.record<Selection>(
  {
    namespaces: some('a', 'ab', 'a*', '*b'),
    labels: fc.constantFrom({ matchLabels: { l: '1' } }, { matchLabels: { l: '1', m: '1' } }),
    annotations: fc.constantFrom({ n: '1' }, { n: '1', o: '1' }),
    ownerKinds: some('Job', 'Node'),
    priorityClassNames: some('gold', 'lead'),
    taints: some('t', 'u'),
  },
  { requiredKeys: [] },
);
const texts = fc.dictionary(fc.constantFrom('l', 'm', 'n', 'o'), fc.constantFrom('1', '2'));
const selectedPod = fc
  .record({
    namespace: fc.constantFrom('a', 'ab', 'b'),
    key: fc.constantFrom('t', 'u'),
    kind: fc.constantFrom('Job', 'Node'),
    priorityClassName: fc.constantFrom('gold', 'lead'),
    labels: texts,
    annotations: texts,
  })
  .map(
    ({ namespace, key, kind, ...traits }): DuePod => ({
      node: ref.node,
      dueBy: [key],
      record: pod('u1', { namespace }),
      traits: { owner: { kind, name: 'web' }, ...traits },
    }),
  );

describe('changes of selections that free no evictions', () => {
  const governed = (settings: Partial<Policy>) => ({ ...rules.policy, ...settings });
  const selections = fc.array(selection, { minLength: 1, maxLength: 3 });

  test('keep each pod that the earlier selections exclude, or do not include', () => {
    let kept = 0;
    fc.assert(
      fc.property(
        ...[selections, selections, fc.constantFrom('exclude', 'include'), selectedPod],
        (before, after, setting, due) => {
          const [old, next] = [before, after].map((each) => governed({ [setting]: each }));
          if (!old || !next || looserSettings(old, next, NOW).length > 0) return;
          if (!findGate({ ...rules, policy: old }, due, NOW)) return;
          kept += 1;
          assert.ok(findGate({ ...rules, policy: next }, due, NOW));
        },
      ),
      { numRuns: 5_000 },
    );
    assert.ok(kept > 50, `hardly any pod was kept: ${kept}`);
  });

  test('are found at once in long lists, whose combinations are too many', () => {
    const names = Array.from({ length: 400 }, (_, index) => `n${index}`);
    const long = { namespaces: names, ownerKinds: names, priorityClassNames: names, taints: names };
    const [before, after] = [
      governed({ exclude: [long] }),
      governed({ exclude: [{ ...long, taints: ['n0'] }] }),
    ];
    assert.deepEqual(looserSettings(before, before, NOW), []);
    assert.deepEqual(looserSettings(before, after, NOW), ['exclude']);
  });

  test('include entries that are split by their lists', () => {
    fc.assert(
      fc.property(
        selection,
        ({ ownerKinds = ['Job', 'Node'], priorityClassNames = ['gold', 'lead'], ...rest }) => {
          const whole = { ...rest, ownerKinds, priorityClassNames };
          const parts = ownerKinds.flatMap((kind) =>
            priorityClassNames.map((name) => ({ ...rest, ownerKinds: [kind], priorityClassNames: [name] })),
          );
          const [before, after] = [[whole], parts].map((exclude) => governed({ exclude }));
          assert.deepEqual(before && after && looserSettings(before, after, NOW), []);
          assert.deepEqual(before && after && looserSettings(after, before, NOW), []);
        },
      ),
    );
  });
});
