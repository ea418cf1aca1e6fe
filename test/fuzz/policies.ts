import fc from 'fast-check';
import { dump } from 'js-yaml';
import { clusterName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { PolicyError, parsePolicyDocument, policyText } from '#shared/state/policy-document.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { garbage, sameMeaning, spoilt, torn } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { must, refusal } from './refusal.ts';

const NOW = Date.UTC(2026, 10, 22, 12);
const CLUSTER = clusterName('prod');

/** Samples that cover all settings. */
const SAMPLES = [
  { mode: 'observe' },
  {
    mode: 'enforce',
    guard: {
      dryRun: true,
      cluster: { percent: '20%', nodes: 3 },
      zone: 'off',
      customTaints: { percent: 30, nodes: 5, window: '10m' },
    },
    evictionRate: 2.5,
    maxEvictionsPerWorkload: { count: '10%', window: '10m' },
    requireExpiredLease: false,
    releaseRate: 50,
    giveUpAfter: '4d',
  },
  {
    mode: 'enforce',
    guard: 'off',
    exclude: [
      {
        namespaces: ['kube-system'],
        labels: {
          matchLabels: { app: 'db' },
          matchExpressions: [
            { key: 'tier', operator: 'In', values: ['gold'] },
            { key: 'tier', operator: 'Exists' },
          ],
        },
        annotations: { 'example.com/keep': 'true' },
        ownerKinds: ['DaemonSet', 'CloneSet'],
        priorityClassNames: ['system-node-critical'],
        taints: ['maintenance'],
        until: '2026-12-01T08:00:00+01:00',
      },
    ],
    include: [{ namespaces: ['shop'] }],
    method: 'evict',
    evict: { timeout: '15m', onTimeout: 'fail' },
    tolerationSecondsOverrides: { 'node.kubernetes.io/unreachable': 60 },
    treatAsNoExecute: ['node.kubernetes.io/unreachable'],
  },
];

/** Syntax that YAML has and JSON lacks. */
const PIECES = [
  ...[
    '&a ',
    '*a',
    '<<: *a',
    '- ',
    '? ',
    ': ',
    '| \n',
    '> \n',
    '--- \n',
    '... \n',
    '# ',
    '%YAML 1.1\n',
    '\t',
    '\r\n',
    '\ufeff',
  ],
  ...[
    '!!js/function ',
    '!!binary ',
    '!!set ',
    '!!timestamp ',
    '!!float ',
    '.inf',
    '.nan',
    '0o17',
    '0x1f',
    '1_000',
    '~',
    'yes',
  ],
];
const BOMBS = [
  `mode: observe\nexclude:\n${bomb(400)}`,
  'mode: observe\nexclude: &a\n  - *a\n',
  'a: &a [x]\nmode: *a\n',
  `mode: observe\ntolerationSecondsOverrides: {${Array.from({ length: 1_500 }, (_, n) => `k${n}: ${n}`).join(', ')}}\n`,
  'mode: observe\ntolerationSecondsOverrides: {__proto__: 5, constructor: 6}\n',
  'mode: observe\n__proto__: {evictionRate: 5}\n',
  `mode: observe\ngiveUpAfter: ${'9'.repeat(15)}d\n`,
];

/** Returns a short document that expands to a very large value. */
function bomb(times: number): string {
  const values = `[${Array.from({ length: times }, () => 'v').join(', ')}]`;
  const again = (name: string) => `[${Array.from({ length: times }, () => `*${name}`).join(', ')}]`;
  return [
    `  - labels: {matchExpressions: [&e {key: k, operator: In, values: &v ${values}}]}`,
    `  - &s {labels: {matchExpressions: ${again('e')}}}`,
    ...Array.from({ length: times }, () => '  - *s'),
    '',
  ].join('\n');
}

const yaml = (json: unknown): string => dump(JSON.parse(JSON.stringify(json) ?? 'null'));

/**
 * Policy documents as they are applied. An accepted document is read back from both rules stores with the same meaning, so no
 * user can leave unreadable rules behind.
 */
export const policies: Kind<string> = {
  name: 'policies',
  open: async () => ({
    inputs: fc.oneof(
      { weight: 1, arbitrary: fc.constantFrom(...SAMPLES).map(yaml) },
      { weight: 12, arbitrary: spoilt(SAMPLES).map(yaml) },
      { weight: 5, arbitrary: torn(SAMPLES.map(yaml)) },
      {
        weight: 3,
        arbitrary: fc
          .tuple(
            fc.constantFrom(...SAMPLES),
            fc.array(fc.tuple(fc.constantFrom(...PIECES), fc.nat()), { minLength: 1, maxLength: 3 }),
          )
          .map(([sample, pieces]) =>
            pieces.reduce((text, [piece, where]) => {
              const from = where % (text.length + 1);
              return text.slice(0, from) + piece + text.slice(from);
            }, yaml(sample)),
          ),
      },
      { weight: 2, arbitrary: garbage },
      { weight: 1, arbitrary: fc.constantFrom(...BOMBS) },
    ),
    feed,
    close: () => undefined,
  }),
};

async function feed(text: string): Promise<Outcome> {
  let policy: ReturnType<typeof parsePolicyDocument>;
  try {
    policy = parsePolicyDocument(text);
  } catch (error) {
    return refusal(error, [PolicyError]);
  }
  must(
    sameMeaning(parsePolicyDocument(policyText(policy)), policy),
    'is another policy when it is written again',
  );
  const database = openRulesDatabase(':memory:');
  const fake = new FakeDynamoDb({ now: () => NOW });
  const table = new DynamoDbTable({
    client: fakeClient(async (command) => fake.perform(command)),
    tableName: 't',
  });
  for (const rulesStore of [new SqliteRulesStore({ database }), new DynamoDbRulesStore(table)]) {
    const operator = { rulesStore, clock: { now: () => NOW }, actor: 'anna' };
    try {
      await perform({ kind: 'apply-policy', cluster: CLUSTER, text, reason: 'a drill' }, operator);
    } catch (error) {
      // A readable document may name something that is invalid.
      database.close();
      return refusal(error, [PolicyError]);
    }
    const { orders } = await rulesStore.read(CLUSTER);
    must(sameMeaning(orders.policy?.read, policy), 'is another policy when it was stored');
  }
  database.close();
  return 'accepted';
}
