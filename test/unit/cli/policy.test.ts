import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { AccessAnswer } from '#shared/access/access-check.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import { parsePolicyDocument, policyJsonSchema } from '#shared/state/policy-document.ts';
import type { Access, ClusterRegistry } from '#shared/state/registry.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { running } from '#test/world/embedded-fleet.ts';
import { shownCluster } from '#test/world/shown-cluster.ts';
import { commandLine, NOW } from './command-line.ts';

const prod = clusterName('prod');

/** Clusters that allow everything, also to the evicting process. */
const ALLOWING: Partial<Fleet> = { service: running, cluster: async () => shownCluster({}, NOW) };

/** The command line and a file that contains `text`. */
function withFile(t: TestContext, text: string, parts = ALLOWING) {
  const dir = mkdtempSync(join(tmpdir(), 'policy-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'policy.yaml');
  writeFileSync(file, text);
  const bench = commandLine(t, parts);
  const modes = async () => {
    const read = await bench.rulesStore.readAll([prod, clusterName('stage')]);
    return [...read.values()].map(({ orders }) => orders.policy?.read.mode);
  };
  /** Commits this number of due pods in observe mode to prod. */
  const observed = async (count: number) => {
    const held = { by: { kind: 'observe' as const }, since: NOW };
    const schedule = Array.from({ length: count }, () => aRecord({ dueAt: NOW, held }));
    await bench.store.commit(
      aRef(prod),
      0,
      { node: aNode(), schedule: [...schedule, aRecord()], end: [], live: true },
      NOW,
    );
  };
  return { ...bench, file, modes, observed };
}

test('applies a policy to the named clusters or all, and prints it as written', async (t) => {
  const text = '# of the platform team\nmode: observe # since May\n';
  const { run, file, modes } = withFile(t, text);
  assert.equal(
    await run('policy', 'apply', '-f', file, 'prod'),
    'The policy is applied to cluster prod. It takes effect within 5s.\n',
  );
  assert.deepEqual(await modes(), ['observe', undefined]);
  assert.equal(
    await run('policy', 'apply', '-f', file, '--all'),
    'Cluster prod already has this policy.\nThe policy is applied to cluster stage. It takes effect within 5s.\n',
  );
  assert.equal(await run('policy', 'get', 'prod'), text);
});

for (const [name, service, when] of [
  ['does not run', async () => undefined, 'runs'],
  ['does not respond', () => Promise.reject(new FleetError('It is frozen.')), 'responds'],
] as const) {
  test(`says when a policy takes effect if npm start ${name}`, async (t) => {
    const { run, file } = withFile(t, 'mode: observe', { ...ALLOWING, service });
    assert.equal(
      await run('policy', 'apply', '-f', file, 'prod'),
      `The policy is applied to cluster prod. It takes effect once npm start ${when}.\n`,
    );
  });
}

test('prints the default policy as a valid document where none is applied', async (t) => {
  const { run } = commandLine(t);
  const printed = await run('policy', 'get', 'stage');
  assert.match(printed, /^# No policy is applied to stage\. These are the defaults\.\nmode: observe\n/);
  assert.deepEqual(parsePolicyDocument(printed), DEFAULT_POLICY);
});

test('prints how many observed pods will be evicted and prompts before enforcing', async (t) => {
  const { run, file, modes, observed, state, questions } = withFile(t, 'mode: enforce');
  await observed(2);
  state.answer = false;
  await assert.rejects(run('policy', 'apply', '-f', file, '--all'), {
    name: 'CliError',
    message: 'Canceled. Nothing was changed.',
  });
  assert.deepEqual(state.printed.split('\n'), [
    'Effect of enforce mode in cluster prod:',
    '2 pods are due and will be evicted, at 50 per second.',
    '1 more will be evicted at its deadline.',
    'NODE     NAMESPACE   PODS',
    'node-1   default     2',
    'Effect of enforce mode in cluster stage:',
    'No pending evictions are held or released by it.',
    '',
  ]);
  assert.deepEqual(await modes(), [undefined, undefined]);
  state.answer = true;
  await run('policy', 'apply', '-f', file, '--all');
  assert.deepEqual(await modes(), ['enforce', 'enforce']);
  assert.equal(questions.length, 2);
  await run('policy', 'apply', '-f', file, 'prod');
  assert.equal(questions.length, 2, 'what is enforced already is not asked for again');
});

test('requires --yes for enforcing without a terminal', async (t) => {
  const { run, file, modes } = withFile(t, 'mode: enforce');
  await assert.rejects(run('policy', 'apply', '-f', file, 'prod'), {
    name: 'CliError',
    message: 'Cannot prompt: standard input is not a terminal. To proceed, rerun with --yes.',
  });
  await run('policy', 'apply', '-f', file, 'prod', '--yes');
  assert.deepEqual(await modes(), ['enforce', undefined]);
});

test('prompts in each cluster where a policy frees or hastens evictions, and in no other', async (t) => {
  const { run, file, state, questions, rulesStore, fleet } = withFile(t, 'mode: enforce\nguard: off\n');
  const operator = await fleet.operator();
  await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: enforce\n' }, operator);
  await perform(
    { kind: 'apply-policy', cluster: clusterName('stage'), text: 'mode: enforce\nguard: off # here, too\n' },
    operator,
  );
  await assert.rejects(run('policy', 'apply', '-f', file, '--all'), {
    name: 'CliError',
    message: 'Cannot prompt: standard input is not a terminal. To proceed, rerun with --yes.',
  });
  assert.match(
    state.printed,
    /^Effect of the policy in cluster prod:\nNo pending evictions are held or released by it\.\nSETTING +CURRENT +NEW\nguard\.cluster +percent: 20, nodes: 3 +off\nguard\.zone .*\nguard\.customTaints .*\n$/,
  );
  assert.equal((await rulesStore.read(prod)).orders.policy?.text, 'mode: enforce\n');
  state.answer = true;
  await run('policy', 'apply', '-f', file, '--all');
  assert.deepEqual(questions, ['Apply the policy?']);
  writeFileSync(file, 'mode: enforce\nevictionRate: 5\nexclude: [{ namespaces: [kube-*] }]\n');
  await run('policy', 'apply', '-f', file, '--all');
  assert.equal(questions.length, 1, 'what tightens is not asked for');
});

test('records in the audit log what a policy changed', async (t) => {
  const { run, file, rulesStore } = withFile(t, '');
  const apply = async (settings: string) => {
    writeFileSync(file, `mode: enforce\nguard: off\n${settings}\n`);
    await run('policy', 'apply', '-f', file, 'prod', '--yes');
    const { policy } = (await rulesStore.read(prod)).orders;
    const entries = await rulesStore.audit({ from: 0, to: NOW * 2 });
    return entries.find((entry) => entry.policy?.text === policy?.text)?.message;
  };
  assert.equal(
    await apply('evictionRate: 5'),
    'applied a policy: enforce, guard.cluster: off, guard.zone: off, guard.customTaints: off, evictionRate: 5',
  );
  assert.equal(
    await apply(`exclude: [{ namespaces: [${'some-namespace, '.repeat(9)}another] }]`),
    'applied a policy: enforce, no evictionRate, exclude',
  );
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}: 1`);
  await apply(`tolerationSecondsOverrides: { k: 1, ${keys.join(', ')} }`);
  const what = await apply('tolerationSecondsOverrides: { k: 1 }');
  assert.match(what ?? '', /^applied a policy: enforce, no tolerationSecondsOverrides\.k0, .*, 10 more$/);
});

describe('policy apply, where pods may not be evicted in enforce mode', () => {
  const EKS = { kind: 'eks', clusterName: 'c', region: 'eu-west-1' } as const;
  /** A deployed fleet whose evict lacks these permissions, by cluster. */
  const deployed = (answers: Readonly<Record<string, AccessAnswer>>, access: Access = EKS) => {
    const questions: string[] = [];
    const parts: Partial<Fleet> = {
      kind: 'deployed',
      registry: { get: async (name: ClusterName) => ({ name, access }) } as unknown as ClusterRegistry,
      checkAccess: async ({ name }) => {
        questions.push(name);
        return answers[name] ?? { reached: true, missing: [] };
      },
      cluster: () => assert.fail("the caller's permissions were examined"),
    };
    return { parts, questions };
  };
  const LACKS = { reached: true, missing: ['delete pods', 'create pods/eviction'] } as const;
  const UNVERIFIED = 'Pods may not be evicted. Nothing was changed. To proceed, rerun with --yes.';

  test('names each missing permission of evict, and changes nothing without --yes', async (t) => {
    const { parts, questions } = deployed({ stage: LACKS });
    const { run, file, modes, state, questions: prompts } = withFile(t, 'mode: enforce', parts);
    state.answer = true;
    await assert.rejects(run('policy', 'apply', '-f', file, '--all'), {
      name: 'CliError',
      message: UNVERIFIED,
    });
    assert.equal(
      state.printed,
      'Cluster stage: evict lacks permissions that the service needs: delete pods. Grant them with the roles in cdk/rbac, in all namespaces unless one is named.\n',
    );
    assert.deepEqual([await modes(), prompts, questions], [[undefined, undefined], [], ['prod', 'stage']]);
    assert.match(await run('policy', 'apply', '-f', file, '--all', '--yes'), /^Cluster stage: evict lacks /);
    assert.deepEqual(await modes(), ['enforce', 'enforce']);
    await run('policy', 'apply', '-f', file, '--all');
    assert.equal(questions.length, 4, 'clusters in enforce mode are not checked again');
  });

  test('checks the permissions that the new policy needs', async (t) => {
    const { parts } = deployed({ prod: { reached: true, missing: ['create pods/eviction'] } });
    const { run, file, modes, state } = withFile(t, 'mode: enforce\nmethod: evict', parts);
    await assert.rejects(run('policy', 'apply', '-f', file, 'prod'), { message: UNVERIFIED });
    assert.match(state.printed, /needs: create pods\/eviction\. /);
    writeFileSync(file, 'mode: enforce');
    state.answer = true;
    await run('policy', 'apply', '-f', file, 'prod');
    assert.deepEqual((await modes())[0], 'enforce');
  });

  test('says that nothing is verified if evict cannot be asked, or an agent evicts', async (t) => {
    const refusing = deployed({});
    const refuse = () => Promise.reject(new FleetError('Check lambda:InvokeFunction.'));
    for (const [parts, doubt] of [
      [{ ...refusing.parts, checkAccess: refuse }, 'evict are not verified: Check lambda:InvokeFunction.'],
      [deployed({}, { kind: 'agent', agent: 'edge-1' }).parts, 'agent edge-1 are not verified: '],
      [deployed({ prod: { reached: false, reason: 'It is rejected.' } }).parts, 'cluster: It is rejected.'],
    ] as const) {
      const { run, file, modes, state } = withFile(t, 'mode: enforce', parts);
      await assert.rejects(run('policy', 'apply', '-f', file, 'prod'), { message: UNVERIFIED });
      assert.ok(state.printed.includes(doubt), state.printed);
      await run('policy', 'apply', '-f', file, 'prod', '--yes');
      assert.deepEqual(await modes(), ['enforce', undefined]);
    }
  });

  test('checks a service in one process, and its account in a cluster', async (t) => {
    const unreachable = withFile(t, 'mode: enforce', {});
    await assert.rejects(unreachable.run('policy', 'apply', '-f', unreachable.file, 'prod'), {
      message: UNVERIFIED,
    });
    assert.match(
      unreachable.state.printed,
      /^Cluster prod: The permissions of the service are not verified: /,
    );
    const lacking = async () => {
      const live = shownCluster({}, NOW);
      return { ...live, api: Object.assign(live.api, { allowed: async () => false }) };
    };
    const local = withFile(t, 'mode: enforce', { cluster: lacking });
    await assert.rejects(local.run('policy', 'apply', '-f', local.file, 'prod'), { message: UNVERIFIED });
    assert.match(local.state.printed, /^Cluster prod: The credentials lack .*: list nodes, .* delete pods, /);
    const create = async () => ({ status: { allowed: false } });
    const inCluster = withFile(t, 'mode: enforce', {
      serviceAccount: { namespace: 'evictions', name: 'taintward' },
      cluster: async () => ({ ...shownCluster({}, NOW), objects: { create } as unknown as ClusterObjects }),
    });
    await assert.rejects(inCluster.run('policy', 'apply', '-f', inCluster.file, 'prod'), {
      message: UNVERIFIED,
    });
    assert.match(inCluster.state.printed, /^Cluster prod: ServiceAccount evictions\/taintward lacks /);
  });

  test('is not checked for a policy that observes', async (t) => {
    const { parts, questions } = deployed({ prod: LACKS, stage: LACKS });
    const { run, file } = withFile(t, 'mode: observe', parts);
    await run('policy', 'apply', '-f', file, '--all');
    assert.deepEqual(questions, []);
  });

  test('is an effect of a dry run, which changes nothing and succeeds', async (t) => {
    const { parts } = deployed({ prod: LACKS });
    const { run, file, modes } = withFile(t, 'mode: enforce', parts);
    const printed = await run('policy', 'apply', '-f', file, '--all', '--dry-run');
    assert.match(printed, /^Dry run: [\s\S]*\nCluster prod: evict lacks permissions .*: delete pods\. /);
    assert.doesNotMatch(printed, /Cluster stage: evict/);
    assert.deepEqual(await modes(), [undefined, undefined]);
  });
});

test('names the permission for pods/eviction when applying method evict', async (t) => {
  const { run, file } = withFile(t, 'mode: observe\nmethod: evict');
  assert.match(
    await run('policy', 'apply', '-f', file, 'prod'),
    /requires the permission to create pods\/eviction in the cluster/,
  );
  assert.doesNotMatch(await run('policy', 'apply', '-f', file, 'prod'), /eviction/);
});

test('requires existing clusters or --all', async (t) => {
  const { run, file } = withFile(t, 'mode: observe');
  const either = { message: 'Specify either cluster names or --all.' };
  await assert.rejects(run('policy', 'apply', '-f', file), either);
  await assert.rejects(run('policy', 'apply', '-f', file, 'prod', '--all'), either);
  await assert.rejects(run('policy', 'apply', '-f', file, 'prd'), {
    message: 'Cluster "prd" not found. Specify one of: prod, stage.',
  });
});

test('prints the changes of a policy by setting', async (t) => {
  const { run, file } = withFile(t, 'mode: enforce\nevictionRate: 5\nguard: { cluster: off }');
  assert.deepEqual((await run('policy', 'diff', '-f', file, 'prod')).split('\n'), [
    'SETTING         CURRENT                 NEW',
    'mode            observe                 enforce',
    'guard.cluster   percent: 20, nodes: 3   off',
    'evictionRate    -                       5',
    '',
  ]);
  await run('policy', 'apply', '-f', file, 'prod', '--yes');
  assert.equal(
    await run('policy', 'diff', '-f', file, 'prod'),
    'No settings of cluster prod would change.\n',
  );
});

test('validates a document without a cluster and names file and setting of an error', async (t) => {
  const { run, file, state } = withFile(t, 'mode: enforce');
  assert.equal(await run('policy', 'validate', '-f', file), `${file} is a valid policy with mode enforce.\n`);
  writeFileSync(file, 'mode: enforce\nguard: { cluster: { percent: 200 } }');
  await assert.rejects(run('policy', 'validate', '-f', file), {
    name: 'PolicyError',
    message: `${file}: policy.guard.cluster.percent must be a number from 0 to 100, like 20 or 20%.`,
  });
  assert.equal(state.where, undefined);
});

test('warns of a taint for which another controller evicts', async (t) => {
  const { run, file } = withFile(t, 'mode: enforce\ntreatAsNoExecute: [karpenter.sh/disrupted, a]');
  const warning =
    /Warning: another controller evicts for karpenter\.sh\/disrupted, so with treatAsNoExecute both would evict/;
  assert.match(await run('policy', 'validate', '-f', file), warning);
  assert.match(await run('policy', 'apply', 'prod', '-f', file, '--dry-run'), warning);
});

test('rejects policies with impossible settings or an expired end in validate and apply', async (t) => {
  const { run, file, modes } = withFile(t, 'mode: observe\ntreatAsNoExecute: [readiness.k8s.io/*]');
  const refused = {
    name: 'PolicyError',
    message: `${file}: policy.treatAsNoExecute[0] must be the key of a taint, written out: a * matches nothing, so list each one.`,
  };
  await assert.rejects(run('policy', 'validate', '-f', file), refused);
  await assert.rejects(run('policy', 'apply', '-f', file, 'prod'), refused);
  const until = (at: number) => new Date(at).toISOString();
  writeFileSync(file, `mode: observe\nexclude: [{ taints: [a], until: ${until(NOW)} }]`);
  const over = {
    message: `${file}: policy.exclude[0].until is over: remove the entry, or write a time to come.`,
  };
  await assert.rejects(run('policy', 'validate', '-f', file), over);
  await assert.rejects(run('policy', 'apply', '-f', file, 'prod'), over);
  assert.deepEqual(await modes(), [undefined, undefined]);
  writeFileSync(file, `mode: observe\nexclude: [{ taints: [a], until: ${until(NOW + 60_000)} }]`);
  await run('policy', 'apply', '-f', file, 'prod');
  assert.deepEqual(await modes(), ['observe', undefined]);
});

test('prints the schema for editors', async (t) => {
  const { run } = commandLine(t);
  assert.deepEqual(JSON.parse(await run('policy', 'schema')), policyJsonSchema());
});
