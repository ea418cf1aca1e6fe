import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DEFAULT_POLICY, PAUSE_INSTEAD, type Policy, type Selection } from '#shared/eviction/policy.ts';
import type { LabelExpression } from '#shared/eviction/selectors.ts';
import {
  documentOf,
  MAX_DOCUMENT_CHARACTERS,
  orFaults,
  PolicyError,
  parseAppliedPolicy,
  parsePolicyDocument,
  policyJsonSchema,
  policyText,
} from '#shared/state/policy-document.ts';

const GUIDE = join(import.meta.dirname, '../../../docs/reference/policy.md');
const SCHEMA_FILE = join(import.meta.dirname, '../../../docs/reference/policy.schema.json');

const word = fc.stringMatching(/^[a-z][a-z0-9./-]{0,20}$/);
const anything = fc.string({ minLength: 1, maxLength: 10 });
const moment = fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true }).map(Number);
const duration = fc.integer({ min: 1, max: 100_000_000 }).map((seconds) => seconds * 1000);
const perSecond = fc.double({ min: 0.001, max: 1e6, noNaN: true });
const threshold = fc.record({ percent: fc.double({ min: 0, max: 100, noNaN: true }), nodes: fc.nat() });
const someOf = <T>(item: fc.Arbitrary<T>) => fc.array(item, { minLength: 1, maxLength: 3 });

const expression: fc.Arbitrary<LabelExpression> = fc.oneof(
  fc.record({ key: word, operator: fc.constantFrom('In', 'NotIn'), values: someOf(anything) }),
  fc.record({ key: word, operator: fc.constantFrom('Exists', 'DoesNotExist') }),
);
const labels = fc.oneof(
  fc.record({ matchLabels: fc.dictionary(word, anything) }),
  fc.record({ matchExpressions: someOf(expression) }),
);
const selection: fc.Arbitrary<Selection> = fc
  .record(
    {
      namespaces: someOf(word),
      labels,
      annotations: fc.dictionary(word, fc.string({ maxLength: 63 })),
      ownerKinds: someOf(anything),
      priorityClassNames: someOf(word),
      taints: someOf(word),
      until: moment,
    },
    { requiredKeys: [] },
  )
  .filter(({ until: _, ...conditions }) => Object.keys(conditions).length > 0);

const policies: fc.Arbitrary<Policy> = fc.record(
  {
    mode: fc.constantFrom('observe', 'enforce'),
    guard: fc.record(
      {
        dryRun: fc.boolean(),
        cluster: threshold,
        zone: threshold,
        customTaints: fc
          .tuple(threshold, duration)
          .map(([affected, windowMs]) => ({ ...affected, windowMs })),
      },
      { requiredKeys: ['dryRun'] },
    ),
    evictionRate: perSecond,
    maxEvictionsPerWorkload: fc.record({
      count: fc.oneof(
        fc.integer({ min: 1 }),
        fc.integer({ min: 1, max: 100 }).map((part) => `${part}%`),
      ),
      windowMs: duration,
    }),
    releaseRate: perSecond,
    exclude: fc.array(selection, { maxLength: 3 }),
    include: fc.array(selection, { maxLength: 3 }),
    method: fc.oneof(
      fc.constant({ kind: 'delete' as const }),
      fc.record({
        kind: fc.constant('evict' as const),
        timeoutMs: duration,
        onTimeout: fc.constantFrom('delete', 'fail'),
      }),
    ),
    tolerationSecondsOverrides: fc.dictionary(word, fc.nat()),
    treatAsNoExecute: fc.array(word, { maxLength: 3 }),
    requireExpiredLease: fc.boolean(),
    giveUpAfterMs: duration,
  },
  {
    requiredKeys: [
      'mode',
      'guard',
      'releaseRate',
      'exclude',
      'include',
      'method',
      'tolerationSecondsOverrides',
      'requireExpiredLease',
      'treatAsNoExecute',
      'giveUpAfterMs',
    ],
  },
);

test('a policy survives conversion to a document and back', () => {
  fc.assert(
    fc.property(policies, (policy) => {
      assert.deepEqual(parsePolicyDocument(policyText(policy)), normal(policy));
    }),
  );
});

/** Removes null prototypes, which fast-check's dictionaries have and read documents do not have. */
const normal = (policy: Policy): Policy => JSON.parse(JSON.stringify(policy));

test('fills omitted settings with defaults', () => {
  assert.deepEqual(parsePolicyDocument('mode: observe'), DEFAULT_POLICY);
  assert.deepEqual(parsePolicyDocument('mode: enforce\nguard: { cluster: { percent: 40% } }').guard, {
    ...DEFAULT_POLICY.guard,
    cluster: { percent: 40, nodes: 3 },
  });
  assert.deepEqual(parsePolicyDocument('mode: enforce\nmethod: evict').method, {
    kind: 'evict',
    timeoutMs: 900_000,
    onTimeout: 'delete',
  });
});

test('disables one limit of the guard by name, or the whole guard', () => {
  const { guard } = parsePolicyDocument('mode: enforce\nguard: { cluster: off, customTaints: off }');
  assert.deepEqual(guard, { dryRun: false, zone: { percent: 55, nodes: 3 } });
  assert.deepEqual(parsePolicyDocument('mode: enforce\nguard: off').guard, { dryRun: false });
});

describe('treats as absent, as Kubernetes does,', () => {
  const full = {
    guard: null,
    evictionRate: null,
    maxEvictionsPerWorkload: null,
    releaseRate: null,
    exclude: null,
    method: null,
    evict: null,
    tolerationSecondsOverrides: null,
    requireExpiredLease: null,
    treatAsNoExecute: null,
    giveUpAfter: null,
  };
  for (const [what, written, same] of [
    ['every optional setting that is null', full, {}],
    ['settings of a mapping that are null', { guard: { dryRun: null, zone: { nodes: null } } }, {}],
    ['empty lists', { exclude: [], treatAsNoExecute: [] }, {}],
    [
      'parts of a selection that are null',
      { exclude: [{ namespaces: null, taints: ['a'], labels: null, until: null }] },
      { exclude: [{ taints: ['a'] }] },
    ],
    [
      'values of an expression without values that are null',
      {
        exclude: [
          {
            labels: { matchLabels: null, matchExpressions: [{ key: 'k', operator: 'Exists', values: null }] },
          },
        ],
      },
      { exclude: [{ labels: { matchExpressions: [{ key: 'k', operator: 'Exists' }] } }] },
    ],
  ] as const)
    test(what, () => {
      const policyOf = (settings: object) =>
        parseAppliedPolicy(JSON.stringify({ mode: 'enforce', ...settings }));
      assert.deepEqual(policyOf(written), policyOf(same));
    });
});

test('accepts empty values of an expression without values', () => {
  const labels = { matchLabels: { a: 'b' }, matchExpressions: [] };
  const matchExpressions = [{ key: 'k', operator: 'Exists', values: [] }];
  const exclude = [{ labels: { matchExpressions } }, { labels }];
  assert.deepEqual(parseAppliedPolicy(JSON.stringify({ mode: 'enforce', exclude })).exclude, exclude);
});

describe('reports each error in one sentence that names the setting', () => {
  const KNOWN =
    'mode, guard, evictionRate, maxEvictionsPerWorkload, releaseRate, exclude, include, method, evict, tolerationSecondsOverrides, requireExpiredLease, treatAsNoExecute, giveUpAfter';
  const cases: readonly (readonly [string, string])[] = [
    ['', 'The policy is not valid YAML (expected a document, but the input is empty).'],
    [
      `mode: observe\ninclude: [${'*a, '.repeat(21)}]\nexclude: [&a {namespaces: [x]}]`,
      'The policy is not valid YAML (line 2: unidentified alias "a").',
    ],
    ['mode: enforce\nmode: observe', 'The policy is not valid YAML (line 2: duplicated mapping key).'],
    ['[]', 'policy must be a mapping of settings.'],
    ['evictionRate: 5', 'policy.mode must be observe or enforce.'],
    ['mode: on', 'policy.mode must be observe or enforce.'],
    ['mode: enforce\nmodus: x', `policy has no setting modus: its settings are ${KNOWN}.`],
    [
      'mode: enforce\nguard: { cluster: { percent: 200 } }',
      'policy.guard.cluster.percent must be a number from 0 to 100, like 20 or 20%.',
    ],
    [
      'mode: enforce\nguard: { zone: { percent: most } }',
      'policy.guard.zone.percent must be a number from 0 to 100, like 20 or 20%.',
    ],
    [
      'mode: enforce\nguard: { customTaints: { window: 10 } }',
      'policy.guard.customTaints.window must be a duration like 90s, 15m, 4h or 4d, and 10000d at most.',
    ],
    [
      'mode: enforce\nguard: { cluster: { part: 2 } }',
      'policy.guard.cluster has no setting part: its settings are percent, nodes.',
    ],
    ['mode: enforce\nguard: 5', 'policy.guard must be off, or a mapping of settings.'],
    ['mode: enforce\nguard: { cluster: 20 }', 'policy.guard.cluster must be off, or a mapping of settings.'],
    [
      'mode: paused\npausedUntil: 2026-12-01T08:00:00Z',
      `policy.mode can't be paused: ${PAUSE_INSTEAD}. policy has no setting pausedUntil: ${PAUSE_INSTEAD}.`,
    ],
    ['mode: enforce\npausedUntil: soon', `policy has no setting pausedUntil: ${PAUSE_INSTEAD}.`],
    [
      // An exclusion that old couldn't be read back.
      'mode: enforce\nexclude: [{ taints: [a], until: 0001-01-01T00:00:00Z }]',
      'policy.exclude[0].until must be a time from 1970 on.',
    ],
    ['mode: enforce\nevict: { timeout: 5m }', 'policy.evict needs method: evict.'],
    [
      'mode: enforce\nmaxEvictionsPerWorkload: { count: 0 }',
      'policy.maxEvictionsPerWorkload.count must be a whole number from 1 on, or a whole percentage from 1% to 100%.',
    ],
    [
      'mode: enforce\nmaxEvictionsPerWorkload: { count: 2.5% }',
      'policy.maxEvictionsPerWorkload.count must be a whole number from 1 on, or a whole percentage from 1% to 100%.',
    ],
    [
      'mode: enforce\nevictionRate: 0',
      'policy.evictionRate must be a number of pods per second from 0.001 to 1000000.',
    ],
    [
      'mode: enforce\nexclude: [{ until: 2026-12-01T08:00:00Z }]',
      'policy.exclude[0] must name namespaces, labels, annotations, ownerKinds, priorityClassNames or taints, or it would be everything.',
    ],
    [
      'mode: enforce\nexclude: [{ annotations: { example.com/keep: true } }]',
      'policy.exclude[0].annotations.example.com/keep must be text: put it in quotes.',
    ],
    [
      'mode: enforce\nexclude: [{ annotations: { example.com/keep: null } }]',
      'policy.exclude[0].annotations.example.com/keep must be text: put it in quotes.',
    ],
    [
      // Longer values are never read, so the exclusion would never match.
      `mode: enforce\nexclude: [{ annotations: { example.com/keep: ${'x'.repeat(64)} } }]`,
      'policy.exclude[0].annotations.example.com/keep must have at most 63 characters: select by another annotation.',
    ],
    [
      'mode: enforce\nexclude: [{ ownerKinds: [] }]',
      'policy.exclude[0].ownerKinds must be a list of kinds, or left out.',
    ],
    [
      'mode: enforce\nexclude: [{ priorityClassNames: high }]',
      'policy.exclude[0].priorityClassNames must be a list of priority classes.',
    ],
    ['mode: enforce\ninclude:', 'policy.include must be a list of entries to include.'],
    ['mode: enforce\ninclude: []', 'policy.include must be a list of entries to include, or left out.'],
    [
      'mode: enforce\ninclude: [{ labels: {} }]',
      'policy.include[0].labels must have matchLabels or matchExpressions.',
    ],
    [
      'mode: enforce\ninclude: [{ labels: { matchLabels: { version: 1 } } }]',
      'policy.include[0].labels.matchLabels.version must be text: put it in quotes.',
    ],
    [
      'mode: enforce\nexclude: [{ labels: { matchExpressions: [{ key: a, operator: In }] } }]',
      'policy.exclude[0].labels.matchExpressions[0].values must be a list of values with the operators In and NotIn, and empty or left out with Exists and DoesNotExist.',
    ],
    [
      'mode: enforce\ntolerationSecondsOverrides: { maintenance: -1 }',
      'policy.tolerationSecondsOverrides.maintenance must be a whole number of seconds from 0 on.',
    ],
    [
      'mode: enforce\nexclude: [{ labels: { matchExpressions: [{ key: a, operator: NotIn, values: [] }] } }]',
      'policy.exclude[0].labels.matchExpressions[0].values must be a list of values with the operators In and NotIn, and empty or left out with Exists and DoesNotExist.',
    ],
    [
      'mode: enforce\nexclude: [{ labels: { matchExpressions: [] } }]',
      'policy.exclude[0].labels must have matchLabels or matchExpressions.',
    ],
    [
      'mode: enforce\nexclude: [{ labels: { matchLabels: { app: null } } }]',
      'policy.exclude[0].labels.matchLabels.app must be text: put it in quotes.',
    ],
    [
      'mode: enforce\nexclude: &a [*a, *a]',
      'policy.exclude[0] must be a mapping of settings. policy.exclude[1] must be a mapping of settings.',
    ],
    [
      'guard: { zone: { percent: 200, nodes: -1, pace: 1, rate: 2 } }',
      [
        'policy.mode must be observe or enforce.',
        'policy.guard.zone.percent must be a number from 0 to 100, like 20 or 20%.',
        'policy.guard.zone.nodes must be a whole number from 0 on.',
        'policy.guard.zone has no setting pace: its settings are percent, nodes.',
        'policy.guard.zone has no setting rate: its settings are percent, nodes.',
      ].join(' '),
    ],
    [
      `mode: enforce\nexclude: ${'['.repeat(90)}${']'.repeat(90)}`,
      'policy.exclude[0] must be a mapping of settings.',
    ],
    ['mode: enforce\nexclude: all', 'policy.exclude must be a list of entries to exclude.'],
    [
      'mode: enforce\nexclude: [{ namespaces: web }]',
      'policy.exclude[0].namespaces must be a list of namespaces.',
    ],
    [
      'mode: enforce\nexclude: [{ namespaces: [1] }]',
      'policy.exclude[0].namespaces[0] must be the name of a namespace.',
    ],
    [
      'mode: enforce\nexclude: [{ namespaces: [web, ""] }]',
      'policy.exclude[0].namespaces[1] must be the name of a namespace.',
    ],
    ['mode: enforce\nexclude: [{ taints: a }]', 'policy.exclude[0].taints must be a list of keys of taints.'],
    ['mode: enforce\nexclude: [{ taints: [1] }]', 'policy.exclude[0].taints[0] must be the key of a taint.'],
    [
      'mode: enforce\nexclude: [{ labels: { matchLabels: a } }]',
      'policy.exclude[0].labels.matchLabels must be a mapping of labels.',
    ],
    [
      'mode: enforce\nexclude: [{ labels: { matchExpressions: a } }]',
      'policy.exclude[0].labels.matchExpressions must be a list of expressions.',
    ],
    [
      'mode: enforce\nexclude: [{ labels: { matchExpressions: [{ key: "", operator: Exists }] } }]',
      'policy.exclude[0].labels.matchExpressions[0].key must be the key of a label.',
    ],
    [
      'mode: enforce\nexclude: [{ labels: { matchExpressions: [{ key: a, operator: is }] } }]',
      'policy.exclude[0].labels.matchExpressions[0].operator must be In, NotIn, Exists or DoesNotExist.',
    ],
    [
      'mode: enforce\nexclude: [{ labels: { matchExpressions: [{ key: a, operator: In, values: b }] } }]',
      'policy.exclude[0].labels.matchExpressions[0].values must be a list of values.',
    ],
    [
      'mode: enforce\nexclude: [{ labels: { matchExpressions: [{ key: a, operator: In, values: [1] }] } }]',
      'policy.exclude[0].labels.matchExpressions[0].values[0] must be text: put it in quotes.',
    ],
    [
      'mode: enforce\nguard: { cluster: { nodes: -1 } }',
      'policy.guard.cluster.nodes must be a whole number from 0 on.',
    ],
    ['mode: enforce\nguard: { dryRun: sometimes }', 'policy.guard.dryRun must be true or false.'],
    [
      'mode: enforce\nguard: { clusters: off }',
      'policy.guard has no setting clusters: its settings are dryRun, cluster, zone, customTaints.',
    ],
    ['mode: enforce\nmethod: drain', 'policy.method must be delete or evict.'],
    [
      'mode: enforce\nmethod: evict\nevict: { onTimeout: wait }',
      'policy.evict.onTimeout must be delete or fail.',
    ],
    [
      'mode: enforce\ntolerationSecondsOverrides: 60',
      'policy.tolerationSecondsOverrides must be a mapping of keys of taints to seconds.',
    ],
    ['mode: enforce\ntreatAsNoExecute: a', 'policy.treatAsNoExecute must be a list of keys of taints.'],
    ['mode: enforce\ntreatAsNoExecute: [1]', 'policy.treatAsNoExecute[0] must be the key of a taint.'],
    [
      'mode: enforce\nguard: { pausedUntil: 2026-12-01T08:00:00Z, dryRun: 1 }',
      'policy.guard.dryRun must be true or false. policy.guard has no setting pausedUntil: its settings are dryRun, cluster, zone, customTaints.',
    ],
    [
      'mode: enforce\ntolerationSecondsOverrides: { maintenance: null }',
      'policy.tolerationSecondsOverrides.maintenance must be a whole number of seconds from 0 on.',
    ],
    [
      'mode: enforce\ngiveUpAfter: 0s',
      'policy.giveUpAfter must be a duration like 90s, 15m, 4h or 4d, and 10000d at most.',
    ],
    [
      `mode: enforce\n${'#'.repeat(MAX_DOCUMENT_CHARACTERS)}`,
      'The policy has more than 32000 characters: shorten it.',
    ],
  ];
  for (const [document, message] of cases) {
    test(message, () => {
      assert.throws(() => parsePolicyDocument(document), { name: 'PolicyError', message });
    });
  }
});

test('returns all faults of a document, up to twenty, and throws what is no fault of it', () => {
  assert.deepEqual(
    orFaults(() => 1),
    { value: 1, faults: [] },
  );
  assert.deepEqual(
    orFaults(() => parsePolicyDocument('mode: paused\nguard: all')),
    {
      faults: [
        `policy.mode can't be paused: ${PAUSE_INSTEAD}.`,
        'policy.guard must be off, or a mapping of settings.',
      ],
    },
  );
  const many = `mode: enforce\nexclude: [${Array.from({ length: 30 }, () => 'web').join()}]`;
  assert.equal(orFaults(() => parsePolicyDocument(many)).faults.length, 20);
  assert.throws(() => orFaults(() => JSON.parse('{')), SyntaxError);
});

describe('reads each form of a value, and applies it', () => {
  const HOUR = 3_600_000;
  const NOON = Date.UTC(2026, 11, 1, 12);
  const forms: readonly (readonly [string, (policy: Policy) => unknown, unknown])[] = [
    ...([0, 1, 20.5, 100, '0%', '0.5%', '20.5%', '99%', '100%'] as const).map(
      (percent) =>
        [
          `guard: { cluster: { percent: ${percent} } }`,
          ({ guard }: Policy) => guard.cluster?.percent,
          Number.parseFloat(`${percent}`),
        ] as const,
    ),
    ...([1, 150, '1%', '99%', '100%'] as const).map(
      (count) =>
        [
          `maxEvictionsPerWorkload: { count: ${count} }`,
          ({ maxEvictionsPerWorkload }: Policy) => maxEvictionsPerWorkload?.count,
          count,
        ] as const,
    ),
    ...Object.entries({ '5400s': 1.5, '90m': 1.5, '1h30m': 1.5, '1d12h': 36, '100000m': 100_000 / 60 }).map(
      ([text, hours]) =>
        [`giveUpAfter: ${text}`, ({ giveUpAfterMs }: Policy) => giveUpAfterMs, hours * HOUR] as const,
    ),
    ...['12:00:00Z', '14:00:00+02:00', '06:30:00.000-05:30'].map(
      (time) =>
        [
          `exclude: [{ taints: [a], until: 2026-12-01T${time} }]`,
          ({ exclude }: Policy) => exclude[0]?.until,
          NOON,
        ] as const,
    ),
    ['evictionRate: 0.5', ({ evictionRate }) => evictionRate, 0.5],
    ['guard: off', ({ guard }) => guard, { dryRun: false }],
    ...[
      'namespaces: [kube-*, "*-system", a*b*c, web]',
      'annotations: { Example.com/keep: "" }',
      'labels: { matchExpressions: [{ key: a, operator: NotIn, values: [b] }] }',
      'labels: { matchLabels: { app: "" } }',
      'ownerKinds: [Rollout, Job, ReplicationController]',
      'priorityClassNames: [system-node-critical]',
    ].map((entry) => [`include: [{ ${entry} }]`, ({ include }: Policy) => include.length, 1] as const),
  ];
  for (const [written, part, read] of forms)
    test(written, () =>
      assert.deepEqual(part(parseAppliedPolicy(`mode: enforce\n${written}`, NOON - 1)), read),
    );

  test('but not an entry that ends now', () =>
    assert.throws(
      () =>
        parseAppliedPolicy('mode: enforce\nexclude: [{ taints: [a], until: 2026-12-01T12:00:00Z }]', NOON),
      PolicyError,
    ));
});

test('accepts a document of the maximum length', () => {
  const start = 'mode: enforce\n';
  const longest = `${start}${'#'.repeat(MAX_DOCUMENT_CHARACTERS - start.length)}`;
  assert.equal(parsePolicyDocument(longest).mode, 'enforce');
});

test('writes a short policy as a document of all defaults', () => {
  assert.deepEqual(documentOf(DEFAULT_POLICY), {
    mode: 'observe',
    guard: {
      dryRun: false,
      cluster: { percent: 20, nodes: 3 },
      zone: { percent: 55, nodes: 3 },
      customTaints: { percent: 30, nodes: 5, window: '10m' },
    },
    releaseRate: 50,
    method: 'delete',
    requireExpiredLease: true,
    giveUpAfter: '4d',
  });
});

test('the document in the guide contains every setting and can be applied', () => {
  const [, shown = ''] = /```yaml\n(.*?)```/s.exec(readFileSync(GUIDE, 'utf8')) ?? [];
  const { properties } = policyJsonSchema() as { readonly properties: Readonly<Record<string, unknown>> };
  const unsaid = Object.keys(properties).filter((name) => !new RegExp(`^${name}:`, 'm').test(shown));
  assert.deepEqual(unsaid, [], 'add the setting to the example in docs/reference/policy.md');
  assert.equal(parsePolicyDocument(shown).mode, 'enforce');
});

test('the published schema for editors is current', () => {
  assert.deepEqual(
    JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')),
    policyJsonSchema(),
    'docs/reference/policy.schema.json is stale: run npm run docs',
  );
});

test('the guide states the limits of settings', () => {
  const guide = readFileSync(GUIDE, 'utf8').replaceAll('\n', ' ');
  const aliases = (count: number) => `treatAsNoExecute: [&a x, ${Array(count).fill('*a').join(', ')}]`;
  const document = (characters: number) => `# ${'x'.repeat(characters - 'mode: observe\n'.length - 2)}`;
  for (const [sentence, last, beyond] of [
    ['from 0.001 to 1000000', 'evictionRate: 0.001', 'evictionRate: 0.0009'],
    ['from 0.001 to 1000000', 'releaseRate: 1000000', 'releaseRate: 1000001'],
    ['up to `10000d`', 'giveUpAfter: 10000d', 'giveUpAfter: 10000d1s'],
    [
      'from 1970 on',
      'exclude: [{ taints: [a], until: 1970-01-01T00:00:00Z }]',
      'exclude: [{ taints: [a], until: 1969-12-31T23:59:59Z }]',
    ],
    ['up to 20 aliases of YAML', aliases(20), aliases(21)],
    ['up to 32,000 characters', document(32_000), document(32_001)],
  ] as const) {
    assert.ok(guide.includes(sentence), sentence);
    assert.equal(parsePolicyDocument(`mode: observe\n${last}`).mode, 'observe', sentence);
    assert.throws(() => parsePolicyDocument(`mode: observe\n${beyond}`), PolicyError, sentence);
  }
});
