import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { looserSettings } from '#shared/eviction/looser.ts';
import type { Policy } from '#shared/eviction/policy.ts';
import { parsePolicyDocument } from '#shared/state/policy-document.ts';
import { NOW } from '#test/contracts/partition-builders.ts';

/** Settings of an enforced policy, in YAML, before and after. */
type Change = readonly [before: string, after: string];

interface Cases {
  /** Changes that could evict a pod that would stay, or evict a pod sooner. */
  readonly looser: readonly Change[];
  /** Changes that tighten, or change nothing. */
  readonly others: readonly Change[];
}

const later = (ms: number) => new Date(NOW + ms).toISOString();
const paused = (ms: number) => `mode: paused, pausedUntil: ${later(ms)}`;

/** Cases for every setting: a setting that is missing here does not compile. */
const CASES: Readonly<Record<keyof Policy, Cases>> = {
  mode: {
    looser: [
      ['mode: observe', 'mode: enforce'],
      ['mode: paused', 'mode: enforce'],
      ['mode: observe', paused(1)],
      [paused(1_000), 'mode: enforce'],
    ],
    others: [
      ['mode: enforce', 'mode: observe'],
      ['mode: enforce', 'mode: paused'],
      ['mode: enforce', paused(1)],
      ['mode: observe', 'mode: paused'],
      [paused(-1), 'mode: enforce'],
    ],
  },
  pausedUntil: {
    looser: [
      ['mode: paused', paused(1_000)],
      [paused(2_000), paused(1_000)],
    ],
    others: [
      [paused(1_000), paused(2_000)],
      [paused(1_000), 'mode: paused'],
    ],
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
  rate: {
    looser: [
      ['evictionRate: 5', 'evictionRate: 6'],
      ['evictionRate: 5', ''],
    ],
    others: [
      ['evictionRate: 5', 'evictionRate: 4'],
      ['', 'evictionRate: 5'],
    ],
  },
  drain: {
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
    ],
    others: [
      ['', 'exclude: [{namespaces: [a]}]'],
      ['exclude: [{namespaces: [a, b]}]', 'exclude: [{namespaces: [b]}, {namespaces: [a]}]'],
      ['exclude: [{namespaces: [ab]}]', 'exclude: [{namespaces: [a*]}]'],
      ['exclude: [{namespaces: [a], taints: [t]}]', 'exclude: [{taints: [t, u]}]'],
      ['exclude: [{labels: {matchLabels: {a: b, c: d}}}]', 'exclude: [{labels: {matchLabels: {a: b}}}]'],
      [`exclude: [{namespaces: [a], until: ${later(-1)}}]`, ''],
    ],
  },
  only: {
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
  tolerationSeconds: {
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
  virtualKeys: {
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
    for (const mode of setting === 'mode' || setting === 'pausedUntil'
      ? []
      : ['mode: observe', 'mode: paused']) {
      test(`free and hasten no evictions under ${mode}`, () => {
        for (const [before, after] of looser)
          assert.deepEqual(looserSettings(policyOf(before), policyOf(after, mode), NOW), []);
      });
    }
  });
}
