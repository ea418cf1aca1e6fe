import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import { TAKEOVER_PATH } from '#shared/kubernetes/takeover.ts';
import { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { NODE_TAKEOVER, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import { POD_TAKEOVER, podTakeover } from '#shared/operations/takeover/at-pods.ts';
import { type Manifest, pathOf } from '#shared/operations/takeover/manifest.ts';
import { takenOver } from '#shared/operations/takeover/taken-tolerations.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { TAKEOVER_ANNOTATION } from '#shared/taints/takeover-note.ts';
import { runName, TestCluster } from './rig/test-cluster.ts';
import { FOREVER, tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';
import { WatchedNode, WatchedPod, type WatchedTaint, type WatchedToleration } from './rig/watched.ts';

const MANIFESTS = [...nodeTakeover(NODE_TAKEOVER), ...podTakeover(POD_TAKEOVER)];
const LAPSE_MS = NODE_TAKEOVER.lapseSeconds * 1000;
const BEAT = Date.UTC(2026, 10, 24, 12);

let cluster: TestCluster;
let objects: ClusterObjects;
let node: string;
before(async () => {
  cluster = await TestCluster.open('KUBECONFIG', runName());
  objects = new ClusterObjects(cluster.connection);
  node = await cluster.addNode('taken');
  for (const manifest of MANIFESTS) await applied(manifest);
});
after(async () => {
  for (const manifest of MANIFESTS.toReversed()) await objects.remove(pathOf(manifest));
  objects.close();
  await cluster.close();
});

/** The API server serves a new kind shortly after its definition. */
const applied = (manifest: Manifest) =>
  until(`${manifest.kind} is applied`, () =>
    objects.apply(pathOf(manifest), manifest, 'suite').then(
      () => true,
      () => false,
    ),
  );

const taint = (key: string, effect: string, at?: number): WatchedTaint => ({
  key,
  effect,
  ...(at === undefined ? {} : { timeAdded: new Date(at).toISOString().replace('.000', '') }),
});
const down = (at?: number) => [NODE_NOT_READY, NODE_UNREACHABLE].map((key) => taint(key, 'NoExecute', at));

/** Writes these taints to the node; returns the taints that it has afterwards. */
async function written(taints: readonly WatchedTaint[]): Promise<readonly WatchedTaint[]> {
  const answer = await cluster.api.patch(`/api/v1/nodes/${node}`, { spec: { taints } });
  return WatchedNode.parse(answer).spec.taints;
}

/** Sets the heartbeat, and waits until the admission policy applies it. */
async function beat(heartbeat: string | null): Promise<void> {
  await cluster.api.patch(TAKEOVER_PATH, { spec: { heartbeat } });
  const at = heartbeat === null ? BEAT : Date.parse(heartbeat);
  // No time after a heartbeat in the year 9999 can be written.
  if (at > Date.UTC(9998)) return;
  await until(`the policy goes by ${heartbeat}`, async () => {
    const kept = (await written(down(at))).length;
    return kept === (heartbeat === null ? 2 : 0);
  });
}

describe('at nodes, by a heartbeat', () => {
  test('keeps out taints of nodes that are down, and leaves all others unchanged', async () => {
    await beat(new Date(BEAT).toISOString());
    const others = [
      taint(NODE_NOT_READY, 'NoSchedule', BEAT),
      taint(NODE_UNREACHABLE, 'NoSchedule'),
      { ...taint('gpu', 'NoExecute', BEAT), value: 'a' },
      taint('maintenance', 'NoExecute'),
      { ...taint('pool', 'PreferNoSchedule'), value: 'b' },
    ];
    for (const at of [BEAT, BEAT + LAPSE_MS - 1000, BEAT - LAPSE_MS + 1000])
      assert.deepEqual(await written([...down(at), ...others]), others);
  });

  for (const [what, at] of [
    ['after its lapse', BEAT + LAPSE_MS],
    ['as long before it', BEAT - LAPSE_MS],
    ['without a moment, as kubectl sets them', undefined],
  ] as const) {
    test(`admits taints ${what}`, async () => {
      await beat(new Date(BEAT).toISOString());
      assert.deepEqual(await written(down(at)), down(at));
    });
  }

  for (const heartbeat of ['2027-01-01T00:00:00Z', '2200-01-01T00:00:00Z', '9999-12-31T23:59:59Z', null]) {
    test(`admits current taints with the heartbeat of ${heartbeat ?? 'nobody'}`, async () => {
      await beat(heartbeat);
      assert.deepEqual(await written(down(BEAT)), down(BEAT));
    });
  }
});

describe('at pods', () => {
  const seconds = (toleration: WatchedToleration | undefined) => toleration?.tolerationSeconds;

  before(async () => {
    await cluster.api.patch(`/api/v1/namespaces/${cluster.namespace}`, {
      metadata: { labels: { 'taintward.dev/takeover': 'enabled' } },
    });
    await until('pods are taken over', async () => 'note' in (await made([])));
  });

  /** Returns the annotation and the tolerations of a pod that is created as a dry run. */
  async function made(tolerations: readonly WatchedToleration[], namespace = cluster.namespace) {
    const pod = await objects.tryCreate(`/api/v1/namespaces/${namespace}/pods`, {
      metadata: { generateName: 'tried-' },
      spec: {
        tolerations,
        automountServiceAccountToken: false,
        containers: [{ name: 'main', image: 'main' }],
      },
    });
    const note = fieldsOf(fieldsOf(pod['metadata'])['annotations'])[TAKEOVER_ANNOTATION];
    const { spec } = WatchedPod.pick({ spec: true }).parse(pod);
    return { ...(note === undefined ? {} : { note }), tolerations: spec.tolerations };
  }

  for (const [what, own, tolerations, places] of [
    ['without tolerations', 300, [], 2],
    ['with a wildcard', 40, [{ ...FOREVER, effect: 'NoExecute', tolerationSeconds: 40 }], 3],
    ['with one for each key', 40, [NODE_NOT_READY, NODE_UNREACHABLE].map((key) => tolerates(key, 40)), 2],
  ] as const) {
    test(`adds the fallback and its annotation to a pod ${what}`, async () => {
      const pod = await made(tolerations);
      assert.equal(
        pod.note,
        `${NODE_NOT_READY}=${own}+3600,${NODE_UNREACHABLE}=${own}+3600`,
        JSON.stringify(pod),
      );
      assert.equal(pod.tolerations.length, places);
      for (const key of [NODE_NOT_READY, NODE_UNREACHABLE])
        assert.equal(seconds(pod.tolerations.find((each) => each.key === key)), own + 3600);
    });
  }

  test('leaves a pod that tolerates indefinitely unchanged', async () => {
    const tolerations = [FOREVER];
    assert.deepEqual(await made(tolerations), { tolerations });
  });

  test('changes a pod as adopting does, regardless of its tolerations', async () => {
    const keys = fc.constantFrom(NODE_NOT_READY, NODE_UNREACHABLE, 'maintenance');
    // The API server applies the policy twice. Just below 2 ** 31 the policy treats its own sum as too long to matter:
    // the sum is 68 years.
    const forSeconds = fc.record(
      { tolerationSeconds: fc.constantFrom(-5, 0, 1, 300, 2_000_000_000, 2 ** 31, Number.MAX_SAFE_INTEGER) },
      { requiredKeys: [] },
    );
    const aimed = fc.oneof(
      forSeconds.map((more) => ({ effect: 'NoExecute', ...more })),
      fc.constantFrom({}, { effect: 'NoSchedule' }),
    );
    const matching = fc.oneof(
      keys.map((key) => ({ key, operator: 'Exists' })),
      fc.record({ key: keys, operator: fc.constant('Equal'), value: fc.constantFrom('', 'v') }),
      fc.constant({ operator: 'Exists' }),
    );
    const toleration = fc.tuple(matching, aimed).map(([match, aim]) => ({ ...match, ...aim }));
    await fc.assert(
      fc.asyncProperty(fc.array(toleration, { maxLength: 4 }), async (tolerations) => {
        // The default namespace is not taken over, so these are the API server's own defaults.
        const { tolerations: before } = await made(tolerations, 'default');
        const adopted = takenOver({ tolerations: before, note: '' }, POD_TAKEOVER);
        const { note = '', tolerations: after } = await made(tolerations);
        assert.deepEqual({ note, tolerations: after }, adopted ?? { note: '', tolerations: before });
      }),
      { numRuns: 100 },
    );
  });
});
