import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Api } from '#shared/console/api.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import type { LiveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { aNode, aRecord, NOW } from '#test/contracts/partition-builders.ts';
import { servedConsole } from './served-console.ts';

const PROD = clusterName('prod');
const TEXT = '# Ours.\nmode: enforce # since May\nexclude:\n- namespaces: [default]\n';

const pod = (namespace: string, labels: object) => ({
  metadata: { name: 'web', uid: 'u', namespace, labels, creationTimestamp: '2026-11-01T00:00:00Z' },
});

/** Returns a console of a cluster with two pods, one pending eviction that its policy excludes, and a way to ask for drafts. */
async function excluded(t: TestContext) {
  let closed = 0;
  const objects = {
    async *list() {
      yield pod('default', { app: 'web' });
      yield pod('kube-system', {});
    },
  };
  const live = { objects, close: () => closed++ } as unknown as LiveCluster;
  const served = await servedConsole(t, { parts: { cluster: async () => live } });
  const operator = await served.fleet.operator();
  await perform({ kind: 'apply-policy', cluster: PROD, text: TEXT }, operator);
  const record = aRecord({ name: 'web', dueAt: NOW });
  const ref = { cluster: PROD, node: nodeName('node-1') };
  await served.store.commit(ref, 0, { node: aNode(), schedule: [record], end: [], live: true }, NOW);
  const { ask } = await served.enter();
  const draft = (text: string, more: Partial<Api['POST api/policy']['asks']> = {}) =>
    ask('POST api/policy', { cluster: 'prod', text, ...more });
  return { ...served, operator, ask, draft, closes: () => closed };
}

test('reports all faults of a document, with its values for a form', async (t) => {
  const { draft } = await excluded(t);
  assert.deepEqual(await draft('mode: never\nevictionRate: 0\n'), {
    text: 'mode: never\nevictionRate: 0\n',
    document: { mode: 'never', evictionRate: 0 },
    faults: [
      'policy.mode must be observe or enforce.',
      'policy.evictionRate must be a number of pods per second from 0.001 to 1000000.',
    ],
  });
  const { faults, document } = await draft('exclude: &all [*all]\nmode: [');
  assert.match(faults.join(), /^The policy is not valid YAML \(line 2: .*\)\.$/);
  assert.equal(document, undefined);
});

test('returns a valid document with aliases without values for a form', async (t) => {
  const { draft } = await excluded(t);
  const text = 'mode: observe\nexclude: &all [{ taints: [a] }]\ninclude: *all\n';
  const { faults, document } = await draft(text);
  assert.deepEqual([faults, document], [[], undefined]);
});

test('previews an edit of a setting as the act itself does, and changes nothing', async (t) => {
  const { ask, draft, rulesStore } = await excluded(t);
  const { text, effects, settings } = await draft(TEXT, { edit: { setting: 'exclude' } });
  assert.equal(text, '# Ours.\nmode: enforce # since May\n');
  assert.deepEqual(effects, ['1 pod is due and will be evicted, at 50 per second.']);
  assert.deepEqual(settings, [{ setting: 'exclude', now: '[{"namespaces":["default"]}]', next: '-' }]);
  const act = { kind: 'apply-policy', cluster: 'prod', text, reason: 'agreed' } as const;
  const preview = await ask('POST api/preview', act);
  assert.deepEqual([preview.effects, preview.settings], [effects, settings]);
  assert.equal((await rulesStore.read(PROD)).orders.policy?.text, TEXT);
  await ask('POST api/acts', { act, confirm: preview.confirm });
  const [{ policy, reason } = {}] = await ask('GET api/audit', {});
  assert.deepEqual([policy, reason], [{ revision: 2, text, settings }, 'agreed']);
});

test('counts the pods that each entry selects now', async (t) => {
  const { draft, closes } = await excluded(t);
  const entries =
    'exclude: [{ labels: { matchLabels: { app: web } } }]\ninclude: [{ namespaces: [kube-*], taints: [a] }, { namespaces: [shop] }]';
  await draft(TEXT);
  const before = closes();
  const { effects = [] } = await draft(`mode: observe\n${entries}`, { count: true });
  assert.deepEqual(effects.slice(-3), [
    'exclude[0] selects 1 of 2 pods.',
    'include[0] selects 1 of 2 pods.',
    'include[1] selects 0 of 2 pods.',
  ]);
  assert.equal(closes(), before + 1);
});

test('names the owner of a policy that operators cannot change, and rejects the act', async (t) => {
  const { ask, operator } = await excluded(t);
  assert.equal((await ask('GET api/policy', { cluster: 'prod' })).refusal, undefined);
  await perform({ kind: 'apply-policy', cluster: PROD, text: TEXT, owner: '/etc/policy.yaml' }, operator);
  const { refusal } = await ask('GET api/policy', { cluster: 'prod' });
  assert.match(
    refusal ?? '',
    /^The policy of cluster prod belongs to \/etc\/policy\.yaml: change it there\./,
  );
  const act = { kind: 'apply-policy', cluster: 'prod', text: 'mode: observe\n', reason: 'x' } as const;
  await assert.rejects(ask('POST api/preview', act), /422 .*belongs to \/etc\/policy\.yaml/);
});

test('rejects a policy that has expired or an unknown cluster, and an act whose policy changed since its preview', async (t) => {
  const { ask, operator, rulesStore } = await excluded(t);
  const act = { kind: 'apply-policy', cluster: 'prod', text: 'mode: observe\n', reason: 'x' } as const;
  const over = 'mode: observe\nexclude: [{ taints: [a], until: 2001-01-01T00:00:00Z }]';
  await assert.rejects(ask('POST api/preview', { ...act, text: over }), /422 .*until is over/);
  await assert.rejects(ask('POST api/policy', { cluster: 'none', text: TEXT }), /422 .*not found/);
  const { confirm } = await ask('POST api/preview', act);
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce\n' }, operator);
  await assert.rejects(ask('POST api/acts', { act, confirm }), /409 .*look at it again/);
  assert.equal((await rulesStore.read(PROD)).orders.policy?.text, 'mode: enforce\n');
});

test('warns before enforce mode if the permissions of the service are not verified', async (t) => {
  const { enter } = await servedConsole(t);
  const { ask } = await enter();
  const act = { kind: 'apply-policy', cluster: 'prod', text: 'mode: enforce\n', reason: 'x' } as const;
  const { effects } = await ask('POST api/preview', act);
  assert.match(
    effects.at(-1) ?? '',
    /^Cluster prod: The permissions of the service are not verified: it cannot be asked/,
  );
});

test('says which permission the operator lacks for a policy that is kept in the cluster, instead of offering the editor', async (t) => {
  const reviewed: unknown[] = [];
  let allowed = false;
  const api = {
    host: 'the cluster',
    async allowed(right: object) {
      reviewed.push(right);
      return allowed;
    },
  };
  const live = { api, close: () => undefined } as unknown as LiveCluster;
  const serviceAccount = { namespace: 'taintward', name: 'taintward' };
  const { enter, clock } = await servedConsole(t, { parts: { serviceAccount, cluster: async () => live } });
  const { ask } = await enter();
  const refusal = async () => (await ask('GET api/policy', { cluster: 'prod' })).refusal;
  const text = /^The credentials for the cluster lack permissions: .*: update evictionrules in taintward\.$/;
  for (const _ of ['once', 'for some seconds']) assert.match(`${await refusal()}`, text);
  assert.deepEqual(reviewed, [
    { verb: 'update', group: 'taintward.dev', resource: 'evictionrules', namespace: 'taintward' },
  ]);
  allowed = true;
  await clock.advanceTo(NOW + 30_000);
  assert.equal(await refusal(), undefined);
});
