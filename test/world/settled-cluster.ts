import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { clusterName } from '#shared/eviction/identity.ts';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import type { ContextFleet } from '#shared/operations/fleet/fleet.ts';
import type { LiveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { contextFleet } from '#shared/operations/fleet/open-fleet.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type SimulatedCluster, startSimulatedCluster } from '#simulator/cluster.ts';

/** 6 of web, 4 of checkout, 2 of db, one of logs on each of 4 nodes. */
const DEMO_PODS = 16;
const SETTLED_WITHIN_MS = 60_000;

export interface SettledCluster {
  readonly cluster: SimulatedCluster;
  /** A fleet with the context of the cluster, without stored state. */
  readonly fleet: ContextFleet;
  readonly live: LiveCluster;
  close(): Promise<void>;
}

/**
 * Starts the simulated cluster of the demo, and waits until all of its pods, including those that `prepare` made, are
 * ready and its budget counts them.
 */
export async function settledCluster(
  prepare: (live: LiveCluster) => Promise<number> = async () => 0,
): Promise<SettledCluster> {
  const dir = mkdtempSync(join(tmpdir(), 'settled-cluster-'));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir });
  const { context, kubeconfig } = cluster;
  const fleet = contextFleet({ kind: 'local-context', context, kubeconfig }, systemClock);
  const live = await fleet.cluster(clusterName(context));
  const pods = DEMO_PODS + (await prepare(live));
  const endsAt = Date.now() + SETTLED_WITHIN_MS;
  while (!(await isSettled(live, pods))) {
    if (Date.now() > endsAt) throw new Error('the simulated cluster did not settle');
    await sleep(50);
  }
  return {
    cluster,
    fleet,
    live,
    async close() {
      live.close();
      await cluster.close();
      rmSync(dir, { recursive: true });
    },
  };
}

/**
 * A preparation that adds the pod `default/debug` on node-1, which no controller re-creates. Returns the number of
 * added pods.
 */
export async function addBarePod({ objects }: LiveCluster): Promise<number> {
  await objects.create('/api/v1/namespaces/default/pods', {
    metadata: { name: 'debug' },
    spec: { nodeName: 'node-1', containers: [{ name: 'debug', image: 'busybox' }] },
  });
  return 1;
}

async function isSettled({ objects }: LiveCluster, pods: number): Promise<boolean> {
  const phases: unknown[] = [];
  for await (const { status } of objects.list('/api/v1/pods')) phases.push(fieldsOf(status)['phase']);
  if (phases.length !== pods || phases.some((phase) => phase !== 'Running')) return false;
  for await (const { status } of objects.list('/apis/policy/v1/poddisruptionbudgets'))
    if (fieldsOf(status)['disruptionsAllowed'] !== 1) return false;
  for await (const { spec, status } of objects.list('/apis/apps/v1/deployments'))
    if (fieldsOf(spec)['replicas'] !== fieldsOf(status)['readyReplicas']) return false;
  for await (const { spec, status } of objects.list('/apis/apps/v1/statefulsets'))
    if (fieldsOf(spec)['replicas'] !== fieldsOf(status)['readyReplicas']) return false;
  return true;
}
