import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import type { ContextFleet, Fleet } from '#shared/operations/fleet/fleet.ts';
import type { LiveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { timeText } from '#shared/time/time-text.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { shownCluster } from '#test/world/shown-cluster.ts';
import { servedConsole } from './served-console.ts';

const prod = clusterName('prod');
const TEMPLATE = '/apis/apps/v1/namespaces/shop/deployments/web';
const GPU = { key: 'gpu', operator: 'Exists', effect: 'NoExecute' };
const NOW_EVICTED = [{ ...GPU, tolerationSeconds: 0 }];
const change = { namespace: 'shop', kind: 'Deployment', name: 'web', list: [GPU], pods: false };
const act = { kind: 'change-tolerations', cluster: 'prod', change, reason: 'gpu nodes are drained' } as const;
const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', controller: true };
const podOf = (name: string) => ({
  metadata: {
    namespace: 'shop',
    name,
    uid: `uid-${name}`,
    creationTimestamp: timeText(NOW),
    ownerReferences: [owner],
  },
  spec: { nodeName: 'n1', tolerations: [{ ...GPU, tolerationSeconds: 60 }] },
});

/** A console of cluster prod with Deployment web, started with the operator's own context. */
async function bench(t: TestContext, { context = true, uid = 'prod' } = {}) {
  const template: Record<string, unknown> = {
    metadata: { name: 'web', resourceVersion: '7' },
    spec: { template: { spec: {} } },
  };
  const shown = {
    [TEMPLATE]: template,
    '/api/v1/namespaces/shop/pods': [podOf('web-0'), podOf('web-1')],
    '/api/v1/nodes': [{ metadata: { name: 'n1' }, spec: { taints: [{ key: 'gpu', effect: 'NoExecute' }] } }],
  };
  const live = shownCluster(shown, NOW);
  const reviewed: Permission[] = [];
  const state = { allowed: true, closed: 0, patches: [] as unknown[], broken: false };
  const api = Object.assign(live.api, {
    uids: async () => ({ system: uid, nodes: [] }),
    async allowed(right: Permission) {
      reviewed.push(right);
      return state.allowed;
    },
  });
  const patch = async (...args: Parameters<ClusterObjects['patch']>) => {
    if (state.broken && state.patches.length > 0) throw new ApiError('It broke.', 500, 'Broken');
    state.patches.push(args);
  };
  const mine: LiveCluster = {
    api,
    objects: Object.assign(live.objects, { patch }),
    close: () => void state.closed++,
  };
  const own = {
    kind: 'context',
    where: 'context mine',
    cluster: async () => mine,
  } as unknown as ContextFleet;
  const leases = {
    read: async () => ({ uids: { system: 'prod', nodes: [] } }),
  } as unknown as Fleet['leases'];
  // The service's own credentials could write, and must not.
  const served = await servedConsole(t, {
    parts: { leases, cluster: async () => shownCluster(shown, NOW) },
    live: true,
    own: context ? own : undefined,
  });
  await perform(
    { kind: 'apply-policy', cluster: prod, text: 'mode: enforce' },
    await served.fleet.operator(),
  );
  const { ask } = await served.enter();
  const shownList = (list: readonly object[] = change.list, pods = '') =>
    ask('GET api/tolerations', { ...change, cluster: 'prod', list: JSON.stringify(list), pods });
  const noted = async () =>
    (await served.rulesStore.audit({ from: 0, to: NOW + 1 })).find(
      ({ kind }) => kind === 'tolerations-changed',
    );
  return { ...served, ask, shownList, template, reviewed, state, noted };
}

describe('a change of tolerations on the page', () => {
  test("is made by the operator's own context as previewed, and is in the audit log with its reason", async (t) => {
    const { ask, shownList, state, reviewed, noted } = await bench(t);
    assert.equal((await shownList()).refusal, undefined);
    assert.deepEqual(reviewed, [
      { verb: 'patch', resource: 'deployments', group: 'apps', namespace: 'shop', name: 'web' },
    ]);
    const { change: sentence, effects, pods, confirm } = await ask('POST api/preview', act);
    assert.match(
      sentence,
      /^Tolerations of shop\/Deployment\/web in cluster prod .* credentials of context mine: deployment web\.$/,
    );
    assert.match(
      effects.join('\n'),
      /^A rollout follows.*\nIf GitOps manages .*\nPods: 2, now evicted in 1m, with this list stays \(tolerated\)\.$/s,
    );
    assert.deepEqual([pods.evictedNow, state.patches], [0, []]);
    assert.equal((await ask('POST api/acts', { act, confirm })).message, 'Changed deployment web.');
    assert.deepEqual(state.patches, [
      [
        TEMPLATE,
        [
          { op: 'replace', path: '/metadata/resourceVersion', value: '7' },
          { op: 'add', path: '/spec/template/spec/tolerations', value: [GPU] },
        ],
        'taintward-cli',
      ],
    ]);
    const { actor, reason } = (await noted()) ?? assert.fail();
    assert.deepEqual([actor, reason], ['anna', act.reason]);
    assert.equal(state.closed, 3);
  });

  test('is rejected if the object changed since the preview', async (t) => {
    const { ask, template, state } = await bench(t);
    const { confirm } = await ask('POST api/preview', act);
    template['metadata'] = { name: 'web', resourceVersion: '8' };
    await assert.rejects(ask('POST api/acts', { act, confirm }), /^Error: 409 .*Something has changed/);
    assert.deepEqual(state.patches, []);
  });

  test('is rejected with the reason, and not offered', async (t) => {
    const owned = {
      manager: 'argocd',
      fieldsV1: { 'f:spec': { 'f:template': { 'f:spec': { 'f:tolerations': {} } } } },
    };
    for (const [given, refuse, message] of [
      [
        { context: false },
        () => undefined,
        /start the console with your own credentials: taintward console --context/,
      ],
      [{ uid: 'stage' }, () => undefined, /cluster of context mine is not prod, or cannot be identified/],
      [
        {},
        (on) => Object.assign(on.state, { allowed: false }),
        /lack permissions: grant them, .*: patch deployments web in shop\./,
      ],
      [
        {},
        (on) => Object.assign(on.template['metadata'] as object, { managedFields: [owned] }),
        /field manager argocd owns/,
      ],
    ] as readonly [object, (on: Awaited<ReturnType<typeof bench>>) => unknown, RegExp][]) {
      const on = await bench(t, given);
      const { confirm } = await on.ask('POST api/preview', act).catch(() => ({ confirm: '' }));
      refuse(on);
      const { refusal, obstacles, effects } = await on.shownList();
      assert.match(`${refusal ?? obstacles}`, message);
      assert.notEqual(effects.length, 0);
      await assert.rejects(on.ask('POST api/preview', act), message);
      await assert.rejects(on.ask('POST api/acts', { act, confirm }), message);
      assert.deepEqual(on.state.patches, []);
    }
  });

  test('adds to the same running pods, and records which were changed if it breaks', async (t) => {
    const { ask, state, reviewed, noted } = await bench(t);
    const ofPods = { ...act, change: { ...change, list: NOW_EVICTED, pods: true } };
    const { pods, confirm } = await ask('POST api/preview', ofPods);
    assert.equal(pods.evictedNow, 2);
    assert.deepEqual(reviewed, [
      { verb: 'patch', resource: 'pods', group: '', namespace: 'shop', name: 'web-0' },
    ]);
    state.broken = true;
    await assert.rejects(ask('POST api/acts', { act: ofPods, confirm }), /^Error: 502 .*It broke\./);
    assert.equal((await noted())?.message, 'changed tolerations of shop/Deployment/web: pod web-0');
  });
});
