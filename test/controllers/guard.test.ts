import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Trip } from '#shared/eviction/policy.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { ControllerManager } from '#test/cluster/rig/controller-manager.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { MortalNodes } from '#test/cluster/rig/mortal-nodes.ts';
import { Ruling } from '#test/cluster/rig/ruling.ts';
import { Stage } from '#test/cluster/rig/stage.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';

/*
 * Sixty nodes in three zones die under the real node controller. Policy treats their NoSchedule taints as NoExecute, as
 * in clusters where that controller's NoExecute taints are not admitted. The node controller withholds these itself
 * where most of a zone is down.
 */

const POLICY = `mode: enforce\ntreatAsNoExecute: [${NODE_NOT_READY}, ${NODE_UNREACHABLE}]\n`;
const ZONES = ['a', 'b', 'c'] as const;
const NODES_OF_ZONE = 20;
/** Seconds for which the pods tolerate that their node is down. */
const TOLERATED_SECONDS = 3;
/** The time for which due pods must stay. */
const HELD_MS = 6_000;

let stage: Stage;
let controller: ControllerManager;
let nodes: MortalNodes;
let ruling: Ruling;
/** All nodes except the first, which has been down for a long time. */
let living: { readonly node: string; readonly pod: PodLife }[];
let longDead: string;

const addPod = (node: string, name: string): Promise<PodLife> =>
  stage.cluster.addPod(node, name, {
    tolerations: [NODE_NOT_READY, NODE_UNREACHABLE].map((key) => tolerates(key, TOLERATED_SECONDS)),
  });

/** Stops the living nodes from `from` up to `to`; returns their pods. */
async function die(from: number, to: number): Promise<readonly PodLife[]> {
  const dying = living.slice(from, to);
  for (const { node } of dying) nodes.die(node);
  await nodes.untilDown(dying.map(({ node }) => node));
  return dying.map(({ pod }) => pod);
}

const evicted = (pods: readonly PodLife[]) =>
  Promise.all(pods.map((pod) => until(`${pod.name} is evicted`, () => pod.evictedAt)));

/** Waits until the pods are due, and asserts that they stay. */
async function assertHeld(pods: readonly PodLife[]): Promise<void> {
  const from = Date.now();
  await until('time has passed', () => Date.now() - from >= TOLERATED_SECONDS * 1000 + HELD_MS);
  assertUntouched(...pods);
}

/** Returns the tripped scopes: zones by name, the cluster with the number of nodes that were down then. */
const inShort = (all: readonly Trip[]) =>
  all.map(({ scope, zone, nodes: down, outOf }) => zone ?? `${scope} ${down} of ${outOf}`).sort();

describe('a guard of sixty nodes under the real node controller', () => {
  before(async () => {
    stage = await Stage.open();
    const { cluster } = stage;
    nodes = new MortalNodes(cluster);
    const names = Array.from({ length: NODES_OF_ZONE * ZONES.length }, (_, index) => ({
      name: `n${index}`,
      zone: ZONES[index % ZONES.length] ?? 'a',
    }));
    longDead = await nodes.addDead('n0', 'a', 20 * 60);
    const added = await Promise.all(names.slice(1).map(({ name, zone }) => nodes.add(name, zone)));
    living = await Promise.all(
      added.map(async (node, index) => ({ node, pod: await addPod(node, `p${index + 1}`) })),
    );
    controller = await ControllerManager.start('node-lifecycle-controller');
    ruling = new Ruling(await stage.start({ policy: stage.write('policy.yaml', POLICY) }));
  });
  afterEach(() => {
    stage.cluster.check();
    controller.check();
    nodes.check();
  });
  after(async () => {
    await controller?.stop();
    await nodes?.close();
    await stage?.close();
  });

  test('allows the eviction of pods with 11 of 60 nodes down', async () => {
    await evicted(await die(0, 10));
    assert.deepEqual(await ruling.trips(), []);
  });

  test('trips at the twelfth node with 20 of 60 down, and holds the pods of that node and of later ones', async () => {
    const pods = await die(10, 19);
    await assertHeld(pods);
    assert.deepEqual(inShort(await ruling.trips()), ['cluster 12 of 60']);
  });

  test('allows the eviction of a due pod on a node that was down for 15 minutes before', async () => {
    await evicted([await addPod(longDead, 'of-long-dead')]);
    assert.equal((await ruling.trips()).length, 1);
  });

  test('trips for the zones, too, with 40 of 60 down', async () => {
    const pods = await die(19, 39);
    await assertHeld(pods);
    assert.deepEqual(inShort(await ruling.trips()), ['a', 'b', 'c', 'cluster 12 of 60']);
  });

  test('releases all held pods, and no others, when an operator releases it', async () => {
    await ruling.releaseGuard();
    await evicted(living.slice(10, 39).map(({ pod }) => pod));
    assertUntouched(...living.slice(39).map(({ pod }) => pod));
    assert.deepEqual(await ruling.trips(), []);
  });

  test('trips again at the next node with all nodes down', async () => {
    const pods = await die(39, 59);
    await assertHeld(pods);
    assert.ok(inShort(await ruling.trips()).includes('cluster 41 of 60'));
  });

  test('spares the pods of nodes that return before it is released', async () => {
    const back = living.slice(39);
    for (const { node } of back) nodes.revive(node);
    await nodes.untilUp(back.map(({ node }) => node));
    await ruling.releaseGuard();
    await assertHeld(back.map(({ pod }) => pod));
  });
});
