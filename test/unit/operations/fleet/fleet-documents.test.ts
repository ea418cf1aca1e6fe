import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { clusterName } from '#shared/eviction/identity.ts';
import { type FleetPlan, type PresentFleet, planFleet } from '#shared/operations/acts/fleet-plan.ts';
import { parseFleet, resolvePolicies } from '#shared/operations/fleet/fleet-documents.ts';
import type { RegisteredCluster } from '#shared/state/registry.ts';
import { NO_RULES, parsePolicyOnce } from '#shared/state/stored-rules.ts';

const NOW = Date.UTC(2026, 10, 29);
const cluster = (name: string, access = `{ kind: eks, clusterName: ${name}, region: eu-west-1 }`) =>
  `apiVersion: taintward.dev/v1\nkind: Cluster\nmetadata: { name: ${name} }\nspec:\n  access: ${access}\n`;
const policy = (name: string, clusters: string, settings = '{ mode: enforce }') =>
  `apiVersion: taintward.dev/v1\nkind: Policy\nmetadata: { name: ${name} }\nspec:\n  clusters: ${clusters}\n  policy: ${settings}\n`;
const parsed = (...texts: readonly string[]) =>
  parseFleet(
    texts.map((text, index) => ({ path: `${index + 1}.yaml`, text })),
    NOW,
  );
const documents = (...texts: readonly string[]) => parsed(texts.join('---\n'));

describe('documents of a fleet', () => {
  for (const [what, text, ...faults] of [
    ['no kind', 'mode: enforce\n', 'document 1: kind must be Cluster or Policy.'],
    [
      'another group',
      policy('p', '[a]').replace('dev/v1', 'dev/v9'),
      'Policy p: apiVersion must be taintward.dev/v1.',
    ],
    ['no YAML', 'a: [\n', 'It is not valid YAML (line 2: deficient indentation).'],
    [
      'unknown fields',
      `${cluster('a', '{ kind: agent, agent: edge-1, port: 1 }')}  color: red\n`,
      'Cluster a: spec.access has no field port: leave it out.',
      'Cluster a: spec has no field color: leave it out.',
    ],
    [
      'an unknown access',
      cluster('a', '{ kind: pigeon }'),
      'Cluster a: spec.access.kind must be eks, kubeconfig-secret, local-context, or agent.',
    ],
    [
      'an ARN that is none',
      cluster('a', '{ kind: kubeconfig-secret, secretArn: prod }'),
      'Cluster a: spec.access.secretArn must be the ARN of a secret, like arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME.',
    ],
    [
      'a relative path',
      cluster('a', '{ kind: local-context, context: a, kubeconfig: kubeconfig }'),
      'Cluster a: spec.access.kubeconfig must be an absolute path.',
    ],
    ['no clusters', policy('p', '[]'), 'Policy p: spec.clusters must name a cluster or a pattern.'],
    ['no settings', policy('p', '[a]', 'off'), 'Policy p: spec.policy must be a mapping of settings.'],
    [
      'an unknown setting',
      policy('p', '[a]', '{ mode: enforce, speed: 1 }'),
      /^1\.yaml: Policy p: spec\.policy has no setting speed: its settings are mode, /,
    ],
    [
      'a setting that has expired',
      policy('p', '[a]', '{ mode: enforce, exclude: [{ namespaces: [a], until: 2026-01-01T00:00:00Z }] }'),
      'Policy p: spec.policy.exclude[0].until is over: remove the entry, or write a time to come.',
    ],
    [
      'the same name twice',
      `${policy('p', '[a]')}---\n${policy('p', '[b]')}`,
      'Policy p: metadata.name is that of a document in 1.yaml, too: remove one of them.',
    ],
  ] as const)
    test(`with ${what} are rejected`, () => {
      const found = parsed(text).faults;
      assert.equal(found.length, faults.length, found.join('\n'));
      for (const [index, fault] of faults.entries())
        if (typeof fault === 'string') assert.equal(found[index], `1.yaml: ${fault}`);
        else assert.match(found[index] ?? '', fault);
    });

  test('without any are rejected, also with --prune', () => {
    for (const files of [[], [{ path: 'a.yaml', text: '# nothing\n' }]])
      assert.deepEqual(parseFleet(files, NOW).faults, [
        'No documents found: specify a file, or a directory with *.yaml files.',
      ]);
  });

  test('are reported with all faults of all files', () => {
    const { faults, names } = parsed('kind: Cluster\nmetadata: { name: a }\n', policy('p', '[]'), 'b: [\n');
    assert.deepEqual([...new Set(faults.map((fault) => fault.slice(0, 6)))], ['3.yaml', '1.yaml', '2.yaml']);
    assert.deepEqual(names, ['a'], 'its policies report no unknown cluster');
  });
});

describe('policies by cluster', () => {
  const NAMES = ['prod-eu', 'prod-us', 'stage', 'late'].map(clusterName);
  const chosen = (...policies: readonly string[]) => {
    const found = resolvePolicies(documents(...policies), NAMES);
    const modes = [...found.policies].map(([name, { where }]) => [name, where.replace(/.* /, '')]);
    return { modes: Object.fromEntries(modes), faults: found.faults };
  };

  test('are chosen by name, then by the most specific pattern, then by default', () => {
    assert.deepEqual(
      chosen(policy('all', "['*']"), policy('prod', '[prod-*]'), policy('us', '[prod-us, st*]')),
      { modes: { 'prod-eu': 'prod', 'prod-us': 'us', stage: 'us', late: 'all' }, faults: [] },
    );
  });

  test('are rejected if they match nothing, or two are as specific', () => {
    assert.deepEqual(
      chosen(policy('a', '[prod, dev-*]'), policy('b', '[s*]'), policy('c', "['*e']")).faults,
      [
        '1.yaml: Policy a: spec.clusters: cluster "prod" not found. Correct the name, or add a document of kind Cluster.',
        '1.yaml: Policy a: spec.clusters: dev-* matches no cluster. Correct or remove it.',
        '1.yaml: Policy c: spec.clusters is as specific for cluster stage as that of 1.yaml: Policy b. Name the cluster in one of them.',
      ],
    );
  });
});

const registered = (name: string, region = 'eu-west-1'): RegisteredCluster => ({
  name: clusterName(name),
  access: { kind: 'eks', clusterName: name, region },
  addedAt: 1,
});

/** A fleet in which these clusters have these policies, or none. */
function present(policies: Readonly<Record<string, string | undefined>>, owner?: string): PresentFleet {
  const clusters = Object.keys(policies).map(clusterName);
  const rules = clusters.map((name) => {
    const text = policies[name];
    if (text === undefined) return [name, NO_RULES] as const;
    const stored = {
      text,
      read: parsePolicyOnce(text),
      revision: 1,
      ...(owner === undefined ? {} : { owner }),
    };
    return [name, { ...NO_RULES, orders: { ...NO_RULES.orders, policy: stored } }] as const;
  });
  return { clusters, registered: clusters.map((name) => registered(name)), rules: new Map(rules) };
}

const acts = ({ registrations, policies, faults }: FleetPlan) => [
  ...registrations.map((act) => `${act.kind} ${(act.kind === 'remove' ? act.from : act.to).name}`),
  ...policies.map(({ kind, cluster: name }) => `${kind} ${name}`),
  ...faults,
];

/** The fleet after all acts of a plan. */
function performed({ registrations, policies }: FleetPlan, before: PresentFleet): PresentFleet {
  const known = new Map(before.registered?.map((each) => [each.name, each]));
  for (const act of registrations)
    if (act.kind === 'remove') known.delete(act.from.name);
    else known.set(act.to.name, act.to);
  const rules = new Map(before.rules);
  for (const act of policies)
    if (act.kind === 'withdraw-policy') rules.delete(act.cluster);
    else rules.set(act.cluster, present({ [act.cluster]: act.text }).rules.get(act.cluster) ?? NO_RULES);
  return { clusters: [...known.keys()], registered: [...known.values()], rules };
}

describe('the plan of a fleet', () => {
  const OPTIONS = { prune: false, now: NOW };
  const PRUNE = { prune: true, now: NOW };

  for (const [what, texts, before, options, expected] of [
    ['adds what is not registered', [cluster('a')], {}, OPTIONS, ['add a']],
    [
      'leaves what is so, however it is written',
      [cluster('a'), policy('p', '[a]')],
      { a: '# why\nmode: enforce' },
      OPTIONS,
      [],
    ],
    [
      'changes access in place',
      [cluster('a', '{ kind: eks, clusterName: a, region: eu-north-1 }')],
      { a: undefined },
      OPTIONS,
      ['change a'],
    ],
    [
      'rejects a change of an agent',
      [cluster('a', '{ kind: agent, agent: edge-1 }')],
      { a: undefined },
      OPTIONS,
      [
        'change a',
        '1.yaml: Cluster a: spec.access changes an agent, whose evictions would be lost. Remove the cluster first.',
      ],
    ],
    [
      'applies policies also to registered clusters without a document',
      [policy('p', "['*']")],
      { a: 'mode: observe', b: undefined },
      OPTIONS,
      ['apply-policy a', 'apply-policy b'],
    ],
    ['removes nothing without --prune', [cluster('a')], { a: 'mode: enforce', b: undefined }, OPTIONS, []],
    [
      'removes with --prune',
      [cluster('a')],
      { a: 'mode: enforce', b: undefined },
      PRUNE,
      ['remove b', 'withdraw-policy a'],
    ],
    [
      'rejects --prune of all clusters',
      [policy('p', "['*']")],
      { a: 'mode: enforce' },
      PRUNE,
      [
        'remove a',
        '--prune would remove all clusters: no document is of kind Cluster. Add one for each cluster.',
      ],
    ],
  ] as const)
    test(what, () => {
      assert.deepEqual(acts(planFleet(documents(...texts), present(before), options)), expected);
    });

  test('withdraws no policy that a file owns', () => {
    const owned = present({ a: 'mode: enforce' }, '/etc/policy.yaml');
    assert.deepEqual(acts(planFleet(documents(cluster('a')), owned, PRUNE)), []);
  });

  test('adds no cluster to one process', () => {
    const process = { ...present({ a: 'mode: observe' }), registered: undefined };
    assert.deepEqual(acts(planFleet(documents(cluster('a'), cluster('b')), process, PRUNE)), [
      'withdraw-policy a',
      '1.yaml: Cluster b: it is not managed, and only the start of the service adds clusters. Remove the document, or add the cluster there.',
    ]);
  });

  test('is empty after it was performed', () => {
    const name = fc.constantFrom('a', 'b', 'ab', 'abc');
    const settings = fc.constantFrom(
      'mode: observe',
      'mode: enforce',
      'mode: enforce\nguard: off',
      undefined,
    );
    const patterns = fc.uniqueArray(fc.constantFrom('*', 'a*', '*b', 'a', 'abc'), { minLength: 1 });
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(name, fc.constantFrom('eu-west-1', 'eu-north-1')), {
          selector: ([one]) => one,
        }),
        fc.array(
          fc.tuple(patterns, fc.constantFrom('{ mode: observe }', '{ mode: enforce, evictionRate: 5 }')),
        ),
        fc.dictionary(name, settings),
        fc.boolean(),
        (clusters, policies, before, prune) => {
          const wanted = documents(
            ...clusters.map(([one, region]) =>
              cluster(one, `{ kind: eks, clusterName: ${one}, region: ${region} }`),
            ),
            ...policies.map(([some, text], index) => policy(`p${index}`, JSON.stringify(some), text)),
          );
          const found = present(before);
          const plan = planFleet(wanted, found, { prune, now: NOW });
          fc.pre(plan.faults.length === 0);
          const again = planFleet(wanted, performed(plan, found), { prune, now: NOW });
          assert.deepEqual(acts(again), []);
        },
      ),
      { numRuns: 40 },
    );
  });
});
