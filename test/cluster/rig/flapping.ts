import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type Exposure, exposure, taintedTimes } from './exposure.ts';
import { latencyText } from './figures.ts';
import { momentComes } from './on-time.ts';
import type { TestCluster } from './test-cluster.ts';
import { until } from './until.ts';

const PODS = 100;
const TAINTED_MS = 1_000;
const UNTAINTED_MS = 1_000;
/** Evictions have ended when none was seen for this long. */
const QUIET_MS = 2_000;
/**
 * The time for which the last taint stays, and the time on a tainted node after which a remaining pod counts as missed,
 * not late.
 */
const HELD_MS = 12_000;
const MISSED_AFTER_MS = 8_000;
const LATE_AFTER_UNTAINT_MS = 1_000;

/**
 * Runs a hundred pods, each re-created after its eviction, on a node that is tainted for a second `cycles` times, and
 * finally for {@link HELD_MS}. Fails unless the service on that cluster evicts all pods that it must evict and no
 * others. Reports the delays.
 */
export async function flap(cluster: TestCluster, cycles: number, t: TestContext): Promise<void> {
  const node = await cluster.addNode(`flap-${cycles}`);
  const names = Array.from({ length: PODS }, (_, index) => `flap-${cycles}-${index}`);
  await Promise.all(names.map((name) => cluster.addPod(node, name, { comesBack: true })));

  for (let cycle = 0; cycle < cycles; cycle++) {
    await cluster.taint(node, { key: 'flapping' });
    await passes(TAINTED_MS);
    await cluster.untaint(node);
    await passes(UNTAINTED_MS);
  }
  await quiet(cluster, node);
  await cluster.taint(node, { key: 'flapping' });
  await passes(HELD_MS);
  const missed = livingFor(cluster, node, MISSED_AFTER_MS);
  await cluster.untaint(node);
  await quiet(cluster, node);

  const exposures = exposuresOn(cluster, node);
  const count = (kind: Exposure['kind']) => exposures.filter((each) => each.kind === kind).length;
  const late = exposures.filter(
    (each) => each.kind === 'after untaint' && each.afterMs > LATE_AFTER_UNTAINT_MS,
  );
  const latencies = exposures.flatMap((each) => (each.kind === 'while tainted' ? [each.afterMs] : []));
  t.diagnostic(
    `evictions: ${exposures.length}, of these while tainted ${count('while tainted')} (${latencyText(latencies)}), ` +
      `after untaint ${count('after untaint')} (later than 1 s: ${late.length}), ` +
      `node never tainted in the pod's life ${count('never tainted')}; missed ${missed}`,
  );
  assert.equal(count('never tainted'), 0);
  assert.equal(late.length, 0);
  assert.equal(missed, 0);
}

async function passes(ms: number): Promise<void> {
  const endAt = Date.now() + ms;
  await momentComes(endAt);
}

const podsOn = (cluster: TestCluster, node: string) =>
  [...cluster.witness.pods.values()].filter((pod) => pod.node === node);

async function quiet(cluster: TestCluster, node: string): Promise<void> {
  const beganAt = Date.now();
  await until('evictions end', () => {
    const last = Math.max(beganAt, ...podsOn(cluster, node).map(({ evictedAt = 0 }) => evictedAt));
    return Date.now() > last + QUIET_MS;
  });
}

const livingFor = (cluster: TestCluster, node: string, ms: number): number =>
  podsOn(cluster, node).filter(({ evictedAt, seenAt }) => evictedAt === undefined && Date.now() > seenAt + ms)
    .length;

function exposuresOn(cluster: TestCluster, node: string): readonly Exposure[] {
  const times = taintedTimes(cluster.witness.nodes.get(node) ?? []);
  return podsOn(cluster, node).flatMap((pod) =>
    pod.evictedAt === undefined ? [] : [exposure(pod, pod.evictedAt, times)],
  );
}
