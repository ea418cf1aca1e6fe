import assert from 'node:assert/strict';
import { test } from 'node:test';
import pMap from 'p-map';
import { latencyText } from './rig/figures.ts';
import { fileStage } from './rig/file-stage.ts';
import { until } from './rig/until.ts';
import { markingDeletion } from './rig/upstream-events.ts';

/** Set smaller numbers for smaller clusters. A kubelet runs 110 pods, so no node has more. */
const NODES = Number(process.env['SCALE_NODES'] ?? 100);
const PODS_PER_NODE = Number(process.env['SCALE_PODS_PER_NODE'] ?? 50);

const stage = fileStage('served');

/** Concurrent requests while the pods are created. */
const PARALLEL = 48;
const EVICTED_WITHIN_MS = 240_000;
/** The maximum resident memory of the service with 5,000 pods. */
const MAX_PEAK_MIB = 300;

test(`evicts all pods of ${NODES} nodes of ${PODS_PER_NODE} pods, tainted simultaneously, exactly once each`, async (t) => {
  const { cluster, service } = stage();
  const nodes = await pMap(
    Array.from({ length: NODES }, (_, index) => index),
    (index) => cluster.addNode(`scale-${index}`),
    { concurrency: PARALLEL },
  );
  const places = nodes.flatMap((node, n) =>
    Array.from({ length: PODS_PER_NODE }, (_, p) => ({ node, name: `scale-${n}-${p}` })),
  );
  const pods = await pMap(places, ({ node, name }) => cluster.addPod(node, name), { concurrency: PARALLEL });
  const spared = await cluster.addPod(await cluster.addNode('scale-spared'), 'scale-spared');
  const before = service.usage();

  const spans = await Promise.all(nodes.map((node) => cluster.taint(node, { key: 'scale' })));
  const taintedAt = new Map(nodes.map((node, index) => [node, spans[index]?.seenAt ?? 0]));
  await until(
    'every pod is evicted',
    () => pods.every(({ evictedAt }) => evictedAt !== undefined),
    EVICTED_WITHIN_MS,
  );
  const firstAt = Math.min(...taintedAt.values());
  const lastAt = Math.max(...pods.map(({ evictedAt = 0 }) => evictedAt));
  const latencies = pods.map(({ node, evictedAt = 0 }) => evictedAt - (taintedAt.get(node) ?? 0));
  t.diagnostic(
    `${pods.length} pods in ${lastAt - firstAt} ms: ` +
      `${((pods.length * 1000) / (lastAt - firstAt)).toFixed(0)} evictions/s, ${latencyText(latencies)}`,
  );

  await until('every pod is gone', () => pods.every(({ removedAt }) => removedAt !== undefined));
  await until('every Event is there', () => cluster.witness.taintManagerEvents().length >= pods.length);
  const after = service.usage();
  if (before && after) {
    const cpuSeconds = (after.cpuSeconds - before.cpuSeconds).toFixed(1);
    t.diagnostic(`the service used ${cpuSeconds} s of CPU, and ${after.peakMiB.toFixed(0)} MiB at its peak`);
    if (pods.length <= 5_000) assert.ok(after.peakMiB <= MAX_PEAK_MIB, 'it stays small');
  }
  assert.ok(
    pods.every(({ disruption }) => disruption?.beforeDeletion),
    'each had the condition first',
  );
  // The service renders its metrics once a second.
  await until(
    'all are counted',
    async () => (await service.metric('taint_eviction_controller_pod_deletions_total')) === pods.length,
  );
  const announced = cluster.witness.taintManagerEvents().map(({ message }) => message);
  const evicted = service.printed(': evicted (').map(({ text }) => /(\S+): evicted/.exec(text)?.[1] ?? text);
  for (const [found, expected] of [
    [announced, (name: string) => markingDeletion(cluster.namespace, name)],
    [evicted, (name: string) => `${cluster.namespace}/${name}`],
  ] as const) {
    const distinct = new Set(found);
    assert.equal(found.length, distinct.size, 'none twice');
    assert.deepEqual(
      pods.filter(({ name }) => !distinct.has(expected(name))),
      [],
      'none is missing',
    );
    assert.equal(distinct.size, pods.length, 'nobody else');
  }
  assert.equal(spared.evictedAt, undefined);
});
