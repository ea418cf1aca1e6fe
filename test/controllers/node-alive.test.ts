import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { Account, MIN_PERMISSIONS } from '#test/cluster/rig/account.ts';
import { ControllerManager } from '#test/cluster/rig/controller-manager.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { LEASE_SECONDS, MortalNodes } from '#test/cluster/rig/mortal-nodes.ts';
import { momentComes } from '#test/cluster/rig/on-time.ts';
import { Stage } from '#test/cluster/rig/stage.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';

const TOLERATED_SECONDS = 2;
const LEASE_MS = LEASE_SECONDS * 1000;
/** Longer than the duration of a Lease that is not renewed. */
const ALIVE_MS = LEASE_MS + 10_000;
const READ_LEASES = { group: 'coordination.k8s.io', resource: 'leases', verbs: ['get'] };

let stage: Stage;
let controller: ControllerManager | undefined;
let nodes: MortalNodes;

const addPod = (node: string, name: string): Promise<PodLife> =>
  stage.cluster.addPod(node, name, { tolerations: [tolerates(NODE_UNREACHABLE, TOLERATED_SECONDS)] });

/** Taints a node as a node controller does whose view of the node's Lease is stale. */
const callUnreachable = (node: string) => stage.cluster.setTaints(node, [{ key: NODE_UNREACHABLE }]);

const evicted = (pod: PodLife) => until(`${pod.name} is evicted`, () => pod.evictedAt);

describe('a node with a Lease that its kubelet renews', () => {
  let node: string;
  let pod: PodLife;
  before(async () => {
    stage = await Stage.open();
    const { cluster } = stage;
    nodes = new MortalNodes(cluster);
    const { token } = await Account.create(cluster, 'lease-reader', [...MIN_PERMISSIONS, READ_LEASES]);
    const kubeconfig = await stage.writeKubeconfig('lease-reader', cluster.connection, token);
    await stage.start({ kubeconfig });
    node = await nodes.add('alive');
    pod = await addPod(node, 'kept');
  });
  afterEach(() => {
    stage.cluster.check();
    controller?.check();
    nodes.check();
  });
  after(async () => {
    await controller?.stop();
    await nodes?.close();
    await stage?.close();
  });

  test('keeps its pods when a stale control plane calls it unreachable', async () => {
    await callUnreachable(node);
    const from = Date.now();
    await momentComes(from + ALIVE_MS);
    assertUntouched(pod);
    assert.equal(stage.service.printed('kept: eviction held (on a live node)').length, 1);
  });

  test('loses its pods once its Lease has expired', async (t) => {
    const diedAt = Date.now();
    nodes.die(node);
    const evictedAt = await evicted(pod);
    t.diagnostic(`evicted ${evictedAt - diedAt} ms after its last sign of life`);
    assert.ok(evictedAt - diedAt > LEASE_MS - 5_000, `evicted ${evictedAt - diedAt} ms after`);
  });

  test('loses its pods when the real node controller finds it dead', async (t) => {
    controller = await ControllerManager.start('node-lifecycle-controller');
    for (let steady = 0; steady < 5; steady++) await nodes.add(`steady-${steady}`);
    const mortal = await nodes.add('mortal');
    const going = await addPod(mortal, 'going');
    nodes.die(mortal);
    await nodes.untilDown([mortal]);
    const downAt = Date.now();
    const evictedAt = await evicted(going);
    t.diagnostic(`evicted ${evictedAt - downAt} ms after the node was found down`);
  });
});
