import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { Partition } from '#shared/eviction/records.ts';
import { toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { endedItem } from '#shared/state/dynamodb/history-items.ts';
import { scheduledItem } from '#shared/state/dynamodb/items.ts';
import { ENDED_WINDOW_MS } from '#shared/state/store.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, rules, tolerating } from '#test/unit/eviction/builders.ts';
import { World } from '#test/world/world.ts';
import { itemBytes } from './item-bytes.ts';

/** Bytes per read unit of a strongly consistent read. */
const READ_UNIT_BYTES = 4 * 1024;
/** A pod tolerates the taint for ten seconds and is recreated one second after its eviction. */
const ROUND_SECONDS = 11;
const ROUNDS_IN_WINDOW = Math.ceil(ENDED_WINDOW_MS / 1000 / ROUND_SECONDS);

const REF = { cluster: clusterName('c1'), node: nodeName('n1') };
/** Names as long as on EKS, for the size of stored items. */
const EKS = {
  cluster: clusterName('prod-eu-west-1'),
  node: nodeName('ip-10-0-12-34.eu-west-1.compute.internal'),
};

/** A node on which a pod is evicted and recreated indefinitely (kubernetes/kubernetes 117520). */
async function endlessLoop(): Promise<World> {
  const world = new World(at(0), rules.matching);
  world.cluster.putNode(liveNode('n1', 'a'));
  let born = 0;
  const newPod = () => {
    const uid = `0c7f4a52-7f0e-4f0b-9d0e-${String(born++).padStart(12, '0')}`;
    return livePod(uid, {
      name: `web-5d9c7b7f6b-${uid.slice(-5)}`,
      namespace: 'payments',
      tolerations: [tolerating('a', 10)],
      podSince: world.clock.now(),
    });
  };
  world.cluster.putPod(newPod());
  await world.deliver(await world.start());
  world.cluster.onDeleted = (gone) => {
    world.clock.setAlarm(world.clock.now() + 1_000, async () => {
      const { view } = world;
      if (!view) return;
      await world.deliver(view.deletePod({ ...gone, disrupted: true }, world.clock.now()));
      const next = newPod();
      world.cluster.putPod(next);
      await world.deliver(view.upsertPod(next, world.clock.now()));
    });
  };
  return world;
}

/** Returns the read units of a load of this partition from DynamoDB. */
function readUnits({ scheduled, ended }: Partition): number {
  const passes = Map.groupBy(ended.values(), ({ endedAt }) => endedAt);
  const items = [
    ...[...passes].map(([moment, pods]) =>
      endedItem({ ref: EKS, at: moment, pass: 'pass-id!', days: 7 }, pods),
    ),
    ...[...scheduled.values()].map((record) => scheduledItem(EKS, record, record.startedAt)),
  ];
  const bytes = items.map((item) => itemBytes(toAttributes(item))).reduce((sum, each) => sum + each, 0);
  return Math.ceil(bytes / READ_UNIT_BYTES);
}

test('limits the cost of a load to the ends of recent minutes when a pod is evicted and recreated indefinitely', async (t) => {
  const world = await endlessLoop();
  const loadAfter = async (minutes: number) => {
    await world.clock.advanceTo(at(minutes * 60));
    return world.store.load(REF, world.clock.now());
  };
  const soon = await loadAfter(23);
  const late = await loadAfter(60);
  assert.ok(late.ended.size <= ROUNDS_IN_WINDOW, `${late.ended.size} ends are read`);
  assert.ok(readUnits(late) <= 16, `${readUnits(late)} read units`);
  assert.ok(readUnits(late) <= readUnits(soon), 'it grows');
  t.diagnostic(`${late.ended.size} ends, ${readUnits(late)} read units a load`);
});
