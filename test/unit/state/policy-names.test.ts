import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  documentOf,
  parseAppliedPolicy,
  parsePolicyDocument,
  policyJsonSchema,
} from '#shared/state/policy-document.ts';

const PRESENT = `# ours
mode: enforce
evictionRate: 5
maxEvictionsPerWorkload: { count: 1, window: 10m }
releaseRate: 20
guard: { dryRun: true, customTaints: { percent: 25, nodes: 6, window: 90s } }
include: [{ namespaces: [web] }]
method: evict
evict: { timeout: 4h, onTimeout: fail }
tolerationSecondsOverrides: { maintenance: 60 }
requireExpiredLease: false
treatAsNoExecute: [maintenance]
`;

test('a former name is rejected in one sentence that names the setting', () => {
  for (const parse of [parsePolicyDocument, parseAppliedPolicy]) {
    for (const [document, message] of [
      ['mode: enforce\nrate: 5', /^policy has no setting rate: its settings are mode, .*evictionRate/],
      ['mode: enforce\nonly: [{ namespaces: [web] }]', /^policy has no setting only: /],
      ['mode: enforce\nguard: { shadow: true }', /^policy\.guard has no setting shadow: /],
      [
        'mode: enforce\nmethod: evict\nevict: { onTimeout: never }',
        /^policy\.evict\.onTimeout must be delete or fail\.$/,
      ],
    ] as const)
      assert.throws(() => parse(document), { name: 'PolicyError', message });
  }
});

test("values that are not mappings, and names of every object's properties, are left to the schema", () => {
  for (const document of ['mode: enforce\nguard: [people]', 'mode: enforce\nconstructor: 5', 'people']) {
    assert.throws(() => parsePolicyDocument(document), { name: 'PolicyError' });
  }
  assert.equal(parsePolicyDocument('mode: enforce\nguard: off').guard.dryRun, false);
});

test('a policy has the names of its document, and durations in milliseconds', () => {
  assert.deepEqual(parsePolicyDocument(PRESENT), {
    mode: 'enforce',
    evictionRate: 5,
    maxEvictionsPerWorkload: { count: 1, windowMs: 10 * 60_000 },
    releaseRate: 20,
    guard: {
      dryRun: true,
      cluster: { percent: 20, nodes: 3 },
      zone: { percent: 55, nodes: 3 },
      customTaints: { percent: 25, nodes: 6, windowMs: 90_000 },
    },
    exclude: [],
    include: [{ namespaces: ['web'] }],
    method: { kind: 'evict', timeoutMs: 4 * 3_600_000, onTimeout: 'fail' },
    tolerationSecondsOverrides: { maintenance: 60 },
    requireExpiredLease: false,
    treatAsNoExecute: ['maintenance'],
    giveUpAfterMs: 4 * 24 * 3_600_000,
  });
});

test('the schema and documents contain current names only', () => {
  const { properties } = policyJsonSchema() as { readonly properties: Readonly<Record<string, unknown>> };
  const shown = [...Object.keys(properties), ...Object.keys(documentOf(parsePolicyDocument(PRESENT)))];
  for (const name of ['rate', 'drain', 'only', 'virtualKeys', 'tolerationSeconds']) {
    assert.ok(!shown.includes(name), name);
  }
});
