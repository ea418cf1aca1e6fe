import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  documentOf,
  formerNames,
  parseAppliedPolicy,
  parsePolicyDocument,
  policyJsonSchema,
  policyText,
  withMode,
} from '#shared/state/policy-document.ts';

const FORMER = `# ours
mode: enforce
rate: 5
drain: 20
guard: { shadow: true, people: { percent: 25, nodes: 6, within: 90s } }
only: [{ namespaces: [web] }]
method: evict
evict: { deadline: 4h, afterDeadline: never }
tolerationSeconds: { maintenance: 60 }
virtualKeys: [maintenance]
`;

const PRESENT = `# ours
mode: enforce
evictionRate: 5
releaseRate: 20
guard: { dryRun: true, customTaints: { percent: 25, nodes: 6, window: 90s } }
include: [{ namespaces: [web] }]
method: evict
evict: { timeout: 4h, onTimeout: fail }
tolerationSecondsOverrides: { maintenance: 60 }
treatAsNoExecute: [maintenance]
`;

describe('a document with former names', () => {
  test('is equivalent to the document with current names', () => {
    assert.deepEqual(parsePolicyDocument(FORMER), parsePolicyDocument(PRESENT));
    assert.deepEqual(parseAppliedPolicy(FORMER), parsePolicyDocument(PRESENT));
  });

  test('produces a warning with the current name of each setting', () => {
    assert.deepEqual(formerNames(FORMER), [
      'rate is now evictionRate',
      'drain is now releaseRate',
      'guard.shadow is now guard.dryRun',
      'guard.people is now guard.customTaints',
      'guard.customTaints.within is now guard.customTaints.window',
      'only is now include',
      'evict.deadline is now evict.timeout',
      'evict.afterDeadline is now evict.onTimeout',
      'evict.onTimeout: never is now evict.onTimeout: fail',
      'tolerationSeconds is now tolerationSecondsOverrides',
      'virtualKeys is now treatAsNoExecute',
    ]);
    assert.deepEqual(formerNames(PRESENT), []);
  });

  test('keeps the former names when its mode changes', () => {
    assert.equal(withMode(FORMER, 'paused'), FORMER.replace('enforce', 'paused'));
  });

  test('is written with current names', () => {
    const text = policyText(parsePolicyDocument(FORMER));
    assert.deepEqual(formerNames(text), []);
    assert.deepEqual(parsePolicyDocument(text), parsePolicyDocument(FORMER));
  });

  test('is rejected with the current name of an invalid setting', () => {
    for (const parse of [parsePolicyDocument, parseAppliedPolicy]) {
      assert.throws(() => parse('mode: enforce\nrate: 0'), {
        message: 'policy.evictionRate must be a number of pods per second from 0.001 to 1000000.',
      });
    }
    assert.throws(() => parseAppliedPolicy('mode: enforce\nvirtualKeys: [a*]'), {
      message: /^policy\.treatAsNoExecute\[0\] must be the key of a taint, written out/,
    });
  });
});

describe('a document with former and current names is rejected', () => {
  for (const [how, document, message] of [
    [
      'of a setting',
      'mode: enforce\nrate: 5\nevictionRate: 5',
      'policy has both rate and evictionRate, its present name: remove rate.',
    ],
    [
      'in either order',
      'mode: enforce\nguard: { customTaints: off, people: off }',
      'policy.guard has both people and customTaints, its present name: remove people.',
    ],
  ] as const) {
    test(how, () => assert.throws(() => parsePolicyDocument(document), { name: 'PolicyError', message }));
  }
});

test("values that are not mappings, and names of every object's properties, are left to the schema", () => {
  for (const document of ['mode: enforce\nguard: [people]', 'mode: enforce\nconstructor: 5', 'people']) {
    assert.throws(() => parsePolicyDocument(document), { name: 'PolicyError' });
  }
  assert.equal(parsePolicyDocument('mode: enforce\nguard: off').guard.shadow, false);
});

test('a policy is stored with the former names, which older releases read', () => {
  assert.deepEqual(parsePolicyDocument(PRESENT), {
    mode: 'enforce',
    rate: 5,
    drain: 20,
    guard: {
      shadow: true,
      cluster: { percent: 20, nodes: 3 },
      zone: { percent: 55, nodes: 3 },
      people: { percent: 25, nodes: 6, withinMs: 90_000 },
    },
    exclude: [],
    only: [{ namespaces: ['web'] }],
    method: { kind: 'evict', deadlineMs: 4 * 3_600_000, afterDeadline: 'never' },
    tolerationSeconds: { maintenance: 60 },
    virtualKeys: ['maintenance'],
    giveUpAfterMs: 4 * 24 * 3_600_000,
  });
});

test('the schema and documents contain current names only', () => {
  const { properties } = policyJsonSchema() as { readonly properties: Readonly<Record<string, unknown>> };
  const shown = [...Object.keys(properties), ...Object.keys(documentOf(parsePolicyDocument(FORMER)))];
  for (const name of ['rate', 'drain', 'only', 'virtualKeys', 'tolerationSeconds']) {
    assert.ok(!shown.includes(name), name);
  }
});
