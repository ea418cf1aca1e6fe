import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { parseAppliedPolicy, parsePolicyDocument } from '#shared/state/policy-document.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const NOW = Date.UTC(2026, 10, 24, 12);
const GUIDE = join(import.meta.dirname, '../../../docs/reference/policy.md');
const EMPTY = 'must have at least one label, or be left out: without one it selects everything';
const LONG = 'a'.repeat(64);
const LABEL_RULE = "use letters, digits, '-', '_' and '.', with a letter or digit at both ends";

describe('rejects a readable policy in one sentence with setting and fix:', () => {
  const cases: readonly (readonly [string, string])[] = [
    [
      'guard: { cluster: { percent: 0.2 } }',
      'policy.guard.cluster.percent must be a percentage from 1 to 100, or 0: for 20 %, write 20.',
    ],
    ['exclude: [{ labels: { matchLabels: {} } }]', `policy.exclude[0].labels.matchLabels ${EMPTY}.`],
    [
      'include: [{ labels: { matchLabels: {}, matchExpressions: [{ key: a, operator: Exists }] } }]',
      `policy.include[0].labels.matchLabels ${EMPTY}.`,
    ],
    [
      'exclude: [{ annotations: {} }]',
      'policy.exclude[0].annotations must have at least one annotation, or be left out: without one it selects everything.',
    ],
    [
      'include: [{ annotations: { "Example.com/a b": x } }]',
      `policy.include[0].annotations.Example.com/a b has a character in its name that is not allowed: ${LABEL_RULE}.`,
    ],
    [
      'exclude: [{ annotations: { "example.com/*": x } }]',
      'policy.exclude[0].annotations.example.com/* must be the key of an annotation, written out: a * matches nothing, so list each one.',
    ],
    ...['DaemonSet', 'Job', 'Node', 'ReplicaSet', 'ReplicationController', 'StatefulSet'].map(
      (kind) =>
        [
          `exclude: [{ ownerKinds: [${kind.toLowerCase()}s] }]`,
          `policy.exclude[0].ownerKinds[0] must be ${kind}, as Kubernetes writes it.`,
        ] as const,
    ),
    [
      'exclude: [{ ownerKinds: [Job, deployment] }]',
      'policy.exclude[0].ownerKinds[1] selects no pod: each pod of a Deployment is owned by a ReplicaSet, so write ReplicaSet.',
    ],
    [
      'exclude: [{ ownerKinds: [DaemonSet/kube-proxy] }]',
      'policy.exclude[0].ownerKinds[0] must be a kind alone, like DaemonSet.',
    ],
    [
      'exclude: [{ priorityClassNames: [system-*] }]',
      'policy.exclude[0].priorityClassNames[0] must be the name of a priority class, written out: a * matches nothing, so list each one.',
    ],
    [
      'exclude: [{ priorityClassNames: [High] }]',
      "policy.exclude[0].priorityClassNames[0] has a character that is not allowed: use lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part.",
    ],
    [
      'exclude: [{ labels: { matchLabels: { __proto__: x } } }]',
      `policy.exclude[0].labels.matchLabels.__proto__ has a character in its name that is not allowed: ${LABEL_RULE}.`,
    ],
    [
      'exclude: [{ labels: { matchLabels: { app: web, __proto__: x } } }]',
      `policy.exclude[0].labels.matchLabels.__proto__ has a character in its name that is not allowed: ${LABEL_RULE}.`,
    ],
    [
      'exclude: [{ labels: { matchLabels: { "app.*": web } } }]',
      'policy.exclude[0].labels.matchLabels.app.* must be the key of a label, written out: a * matches nothing, so list each one.',
    ],
    [
      'exclude: [{ labels: { matchLabels: { app: "web*" } } }]',
      `policy.exclude[0].labels.matchLabels.app has a character that is not allowed: ${LABEL_RULE}.`,
    ],
    [
      `exclude: [{ labels: { matchLabels: { app: ${LONG} } } }]`,
      'policy.exclude[0].labels.matchLabels.app must have at most 63 characters: shorten it.',
    ],
    [
      'include: [{ labels: { matchExpressions: [{ key: a/b/c, operator: Exists }] } }]',
      "policy.include[0].labels.matchExpressions[0].key must be a name with at most one prefix before a '/', for example example.com/gpu.",
    ],
    [
      'include: [{ labels: { matchExpressions: [{ key: a, operator: In, values: [b, "c d"] }] } }]',
      `policy.include[0].labels.matchExpressions[0].values[1] has a character that is not allowed: ${LABEL_RULE}.`,
    ],
    [
      'exclude: [{ labels: { matchLabels: { a: "1" }, matchExpressions: [{ key: a, operator: In, values: ["2"] }] } }]',
      'policy.exclude[0].labels can never match: no pod has a=1 and a=2. Change or remove one of these conditions.',
    ],
    [
      'include: [{ labels: { matchExpressions: [{ key: a, operator: In, values: [b] }, { key: a, operator: DoesNotExist }] } }]',
      'policy.include[0].labels can never match: no pod has a=b and !a. Change or remove one of these conditions.',
    ],
    [
      'exclude: [{ namespaces: [shop, "**"] }]',
      'policy.exclude[0].namespaces[1] must not match all namespaces: name some, or write a pattern like kube-*.',
    ],
    [
      'exclude: [{ namespaces: [Kube-*] }]',
      "policy.exclude[0].namespaces[0] has a character that is not allowed: use lower-case letters, digits and '-', with a letter or digit at both ends.",
    ],
    [
      'exclude: [{ namespaces: [Kube_System] }]',
      "policy.exclude[0].namespaces[0] has a character that is not allowed: use lower-case letters, digits and '-', with a letter or digit at both ends.",
    ],
    [
      `exclude: [{ namespaces: [${LONG}] }]`,
      'policy.exclude[0].namespaces[0] must have at most 63 characters: shorten it.',
    ],
    [
      'exclude: [{ taints: ["maintenance=now:NoSchedule"] }]',
      'policy.exclude[0].taints[0] must be the key of a taint alone: leave out =now:NoSchedule.',
    ],
    [
      'include: [{ taints: ["maintenance:NoExecute"] }]',
      'policy.include[0].taints[0] must be the key of a taint alone: leave out :NoExecute.',
    ],
    [
      'treatAsNoExecute: [maintenance, readiness.k8s.io/*]',
      'policy.treatAsNoExecute[1] must be the key of a taint, written out: a * matches nothing, so list each one.',
    ],
    [
      'tolerationSecondsOverrides: { node.kubernetes.io/*: 60 }',
      'policy.tolerationSecondsOverrides.node.kubernetes.io/* must be the key of a taint, written out: a * matches nothing, so list each one.',
    ],
    [
      'tolerationSecondsOverrides: { __proto__: 60 }',
      `policy.tolerationSecondsOverrides.__proto__ has a character in its name that is not allowed: ${LABEL_RULE}.`,
    ],
    [
      'treatAsNoExecute: [Example.com/a]',
      "policy.treatAsNoExecute[0] must have a DNS subdomain before the '/': use lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part.",
    ],
    [
      'exclude: [{ taints: [a], until: 2026-11-24T12:00:00Z }]',
      'policy.exclude[0].until is over: remove the entry, or write a time to come.',
    ],
    [
      'include: [{ taints: [a] }, { taints: [b], until: 2026-11-24T13:00:00+02:00 }]',
      'policy.include[1].until is over: remove the entry, or write a time to come.',
    ],
  ];
  for (const [setting, message] of cases) {
    test(message, () => {
      const document = `mode: enforce\n${setting}`;
      parsePolicyDocument(document);
      assert.throws(() => parseAppliedPolicy(document, NOW), { name: 'PolicyError', message });
    });
  }
});

test('applies a policy with valid names and future ends unchanged', () => {
  const real = [
    'exclude: [{ taints: [a], until: 2026-11-24T12:00:01Z }, { namespaces: [kube-system, 0day] }]',
    'exclude: [{ annotations: { Example.com/Keep: "a *b, c", constructor: "" }, ownerKinds: [Node, Rollout, CloneSet, constructor] }]',
    'exclude: [{ priorityClassNames: [system-node-critical, a.b] }]',
    'include: [{ labels: { matchLabels: { app.kubernetes.io/name: Web_1.0, empty: "" } } }]',
    'treatAsNoExecute: [readiness.k8s.io/network, A_b.C]',
    'tolerationSecondsOverrides: { node.kubernetes.io/not-ready: 0, constructor: 5 }',
  ];
  for (const setting of real) {
    const document = `mode: enforce\n${setting}`;
    assert.deepEqual(parseAppliedPolicy(document, NOW), parsePolicyDocument(document), setting);
  }
  const [, shown = ''] = /```yaml\n(.*?)```/s.exec(readFileSync(GUIDE, 'utf8')) ?? [];
  assert.equal(parseAppliedPolicy(shown, NOW).mode, 'enforce', 'the one that the guide shows');
});

describe('a policy that an earlier release accepted and this release rejects', () => {
  const prod = clusterName('prod');
  const written = 'mode: enforce # ours\nexclude: [{ namespaces: [kube], taints: [a=b] }]\n';

  /** An operator of a cluster with a policy that an earlier release stored. */
  async function stored() {
    const rulesStore = new SqliteRulesStore({ database: openRulesDatabase(':memory:') });
    const operator = { rulesStore, clock: new DrivenClock(NOW), actor: 'anna' };
    const policy = { text: written, read: parsePolicyDocument(written), revision: 1 };
    const { orders } = await rulesStore.read(prod);
    const entry = {
      cluster: prod,
      actor: 'anna',
      at: NOW,
      kind: 'policy',
      message: 'applied a policy',
    } as const;
    await rulesStore.changeOrders(prod, orders, { ...orders, policy }, entry);
    return { operator, text: async () => (await rulesStore.read(prod)).orders.policy?.text };
  }

  test('is rejected once it is changed, and the applied policy stays', async () => {
    const { operator, text } = await stored();
    await assert.rejects(
      perform({ kind: 'apply-policy', cluster: prod, text: `${written}evictionRate: 5\n` }, operator),
      {
        name: 'PolicyError',
        message: /^policy\.exclude\[0\]\.taints\[0\] must be the key of a taint alone/,
      },
    );
    assert.equal(await text(), written);
  });
});
