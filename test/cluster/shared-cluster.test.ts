import { test } from 'node:test';
import { evictedAfter } from './rig/deadline.ts';
import { fileStage } from './rig/file-stage.ts';
import { until } from './rig/until.ts';

const stage = fileStage('bare');

const PODS = 30;
const NOTICED_WITHIN_MS = 5_000;

test('two services with states of their own on one cluster evict each pod once, and notice each other', async (t) => {
  const { cluster } = stage();
  const node = await cluster.addNode('shared');
  const pods = await Promise.all(
    Array.from({ length: PODS }, (_, index) => cluster.addPod(node, `shared-${index}`)),
  );
  const services = [await stage().start(), await stage().start()];
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  await Promise.all(pods.map((pod) => evictedAfter(pod, 0, tainted)));
  const noticed = () => services.filter((service) => service.said('cluster.shared').length > 0).length;
  await until('one of them notices the other', NOTICED_WITHIN_MS, () => noticed() > 0);
  t.diagnostic(`${noticed()} of them noticed the other`);
});
