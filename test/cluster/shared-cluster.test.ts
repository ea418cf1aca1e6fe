import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileStage } from './rig/file-stage.ts';
import { evictedOnTime } from './rig/on-time.ts';

const stage = fileStage('bare');

const PODS = 10;
/**
 * Chance decides which of the two services is first. A service for which no pods are left sees no marks of the other on
 * them.
 */
const MAX_NODES = 20;

test('evicts each pod once with two services of separate state on one cluster, which notice each other and survive each other', async (t) => {
  const { cluster } = stage();
  const services = [await stage().start(), await stage().start()];
  const noticed = () =>
    services.filter((service) => service.printed('cluster.conflicting-installation').length > 0).length;
  let nodes = 0;
  for (; noticed() === 0 && nodes < MAX_NODES; nodes++) {
    const node = await cluster.addNode(`shared-${nodes}`);
    const pods = await Promise.all(
      Array.from({ length: PODS }, (_, index) => cluster.addPod(node, `shared-${nodes}-${index}`)),
    );
    const tainted = await cluster.taint(node, { key: 'maintenance' });
    await Promise.all(pods.map((pod) => evictedOnTime(pod, 0, tainted)));
  }
  assert.ok(noticed() > 0, `neither noticed the other in ${nodes} nodes`);
  t.diagnostic(`${noticed()} of them noticed the other, at node ${nodes}`);

  const next = await cluster.addNode('next');
  const pod = await cluster.addPod(next, 'next');
  await services[0]?.kill();
  await evictedOnTime(pod, 0, await cluster.taint(next, { key: 'maintenance' }));
});
