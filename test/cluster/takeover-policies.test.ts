import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { TAKEOVER_PATH } from '#shared/kubernetes/takeover.ts';
import { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { NODE_TAKEOVER, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import { type Manifest, pathOf } from '#shared/operations/takeover/manifest.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { runName, TestCluster } from './rig/test-cluster.ts';
import { until } from './rig/until.ts';
import { WatchedNode, type WatchedTaint } from './rig/watched.ts';

const MANIFESTS = nodeTakeover(NODE_TAKEOVER);
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

describe('the policy of a takeover', () => {
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
