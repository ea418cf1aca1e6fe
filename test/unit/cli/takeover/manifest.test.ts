import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadAll } from 'js-yaml';
import * as z from 'zod';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';

const Policy = z.object({
  kind: z.string(),
  apiVersion: z.string(),
  spec: z.looseObject({
    failurePolicy: z.literal('Ignore'),
    matchConstraints: z.object({
      namespaceSelector: z.object({ matchExpressions: z.array(z.looseObject({ key: z.string() })) }),
    }),
    matchConditions: z.array(z.object({ name: z.string(), expression: z.string() })),
    variables: z.array(z.strictObject({ name: z.string(), expression: z.string() })),
    mutations: z.tuple([
      z.strictObject({ patchType: z.literal('JSONPatch'), jsonPatch: z.object({ expression: z.string() }) }),
    ]),
  }),
});

/** Returns the output of the command. */
async function printed(...args: readonly string[]): Promise<string> {
  let text = '';
  const print = (part: string) => {
    text += part;
  };
  const program = createProgram({ print } as CliDeps);
  for (const command of [program, ...program.commands.flatMap((each) => [each, ...each.commands])])
    command.exitOverride().configureOutput({ writeErr: () => undefined });
  await program.parseAsync(['takeover', 'manifest', ...args], { from: 'user' });
  return text;
}

const objects = async (...args: readonly string[]): Promise<readonly { readonly kind: string }[]> =>
  loadAll(await printed(...args)) as { kind: string }[];

const variable = (policy: z.infer<typeof Policy>, name: string) =>
  policy.spec.variables.find((each) => each.name === name)?.expression;

describe('the manifest of a takeover', () => {
  test("lists, at node level, the definition, the heartbeat, the relay's role, the policy, and last the binding", async () => {
    const kinds = (await objects()).map(({ kind }) => kind);
    assert.deepEqual(kinds, [
      'CustomResourceDefinition',
      'Takeover',
      'ClusterRole',
      'ClusterRoleBinding',
      'MutatingAdmissionPolicy',
      'MutatingAdmissionPolicyBinding',
    ]);
  });

  test('passes, at node level, heartbeat timeout and keys to the relay and the policy', async () => {
    const text = await printed('--heartbeat-timeout', '20', '--keys', 'node.kubernetes.io/unreachable');
    assert.match(text, /duration\("20s"\)/);
    assert.match(text, /lapseSeconds: 20\n/);
    assert.doesNotMatch(text, /"node.kubernetes.io\/not-ready"/);
  });

  test('never contains a heartbeat, because a repeated apply must not overwrite it', async () => {
    const live = (await objects()).find(({ kind }) => kind === 'Takeover');
    assert.deepEqual((live as { spec?: object }).spec, {
      keys: ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'],
      lapseSeconds: 90,
    });
  });

  const keptOut = [
    {
      key: 'kubernetes.io/metadata.name',
      operator: 'NotIn',
      values: ['kube-system', 'kube-node-lease', 'taintward'],
    },
    { key: 'taintward.dev/takeover', operator: 'NotIn', values: ['disabled', 'off'] },
  ];

  test('matches, at pod level, labeled namespaces except those that the service needs and its own', async () => {
    const policy = Policy.parse((await objects('--level', 'pod'))[0]);
    assert.deepEqual(policy.spec.matchConstraints.namespaceSelector.matchExpressions, [
      ...keptOut,
      { key: 'taintward.dev/takeover', operator: 'In', values: ['enabled', 'on'] },
    ]);
    assert.deepEqual([variable(policy, 'fallback'), policy.kind], ['3600', 'MutatingAdmissionPolicy']);
  });

  test("excludes, at pod level, the service's own pods by label in every namespace, also with Kyverno", async () => {
    for (const flags of [[], ['--kyverno']]) {
      const policy = Policy.parse((await objects('--level', 'pod', ...flags))[0]);
      const condition = policy.spec.matchConditions.find(({ name }) => name === 'not-our-own');
      assert.equal(
        condition?.expression,
        '!has(object.metadata.labels) || !("app.kubernetes.io/name" in object.metadata.labels) || object.metadata.labels["app.kubernetes.io/name"] != "taintward"',
      );
    }
  });

  test('accepts, at pod level, other namespaces, keys, and delays', async () => {
    const selector = 'team=web, tier!=gold,env in (test, prod),zone notin (a),!legacy,labelled';
    const flags = ['--namespace-selector', selector, '--fallback-delay', '60', '--keys', 'a.io/b,c'];
    const policy = Policy.parse((await objects('--level', 'pod', ...flags))[0]);
    assert.deepEqual(policy.spec.matchConstraints.namespaceSelector.matchExpressions, [
      ...keptOut,
      { key: 'team', operator: 'In', values: ['web'] },
      { key: 'tier', operator: 'NotIn', values: ['gold'] },
      { key: 'env', operator: 'In', values: ['test', 'prod'] },
      { key: 'zone', operator: 'NotIn', values: ['a'] },
      { key: 'legacy', operator: 'DoesNotExist' },
      { key: 'labelled', operator: 'Exists' },
    ]);
    assert.deepEqual([variable(policy, 'fallback'), variable(policy, 'keys')], ['60', '["a.io/b", "c"]']);
  });

  test('is one equivalent MutatingPolicy for Kyverno, at pod level only', async () => {
    const [one, ...others] = await objects('--level', 'pod', '--kyverno');
    assert.deepEqual(others, []);
    const { spec, kind, apiVersion } = Policy.parse(one);
    assert.deepEqual([kind, apiVersion], ['MutatingPolicy', 'policies.kyverno.io/v1']);
    const { autogen, evaluation, reinvocationPolicy, ...common } = spec;
    assert.deepEqual(autogen, { podControllers: { controllers: [] } });
    assert.deepEqual(evaluation, { admission: { enabled: true }, mutateExisting: { enabled: false } });
    assert.equal(reinvocationPolicy, 'IfNeeded');
    const { reinvocationPolicy: _, ...native } = Policy.parse((await objects('--level', 'pod'))[0]).spec;
    assert.deepEqual(common, native);
  });
});

describe('rejects a manifest in a sentence with a remedy', () => {
  const rows: readonly (readonly [what: string, args: readonly string[], says: RegExp])[] = [
    ['a fallback at nodes', ['--fallback-delay', '60'], /--fallback-delay applies only to --level pod/],
    [
      'a lapse at pods',
      ['--level', 'pod', '--heartbeat-timeout', '60'],
      /--heartbeat-timeout applies only to --level node/,
    ],
    ['Kyverno at nodes', ['--kyverno'], /--kyverno belongs to --level pod/],
    [
      'a key without a twin at nodes',
      ['--keys', 'gpu'],
      /"gpu" cannot be taken over at node level\. Specify node.kubernetes.io\/not-ready or /,
    ],
    ['a key that is none', ['--level', 'pod', '--keys', 'a"b'], /"a"b" is not a taint key/],
    ['no seconds', ['--heartbeat-timeout', '0'], /whole number of seconds/],
    ['half a second', ['--level', 'pod', '--fallback-delay', '0.5'], /whole number of seconds/],
    [
      'a selector that is none',
      ['--level', 'pod', '--namespace-selector', 'a in b'],
      /label selector part "a in b"/,
    ],
  ];
  for (const [what, args, says] of rows) {
    test(what, () => assert.rejects(printed(...args), says));
  }
});
