import { defined } from '#shared/defined.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import { projectNode } from '#shared/kubernetes/project.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import type { Fleet } from '../fleet/fleet.ts';

const READ_WITHIN_MS = 5_000;
const VALID_MS = 60_000;

/** The nodes of the zones for which the guard tripped. Only the cluster has them. */
export interface Zones {
  readonly at: EpochMs;
  readonly guardRevision: number;
  /** Absent: no zone tripped, or the cluster did not answer. */
  readonly nodes?: ReadonlyMap<NodeName, string>;
}

/** `before`: an earlier answer, which a caller that reads often gets again. Never rejects. */
export async function zonesOf(
  fleet: Pick<Fleet, 'cluster'>,
  cluster: ClusterName,
  { guard }: Pick<StoredRules, 'guard'>,
  at: EpochMs,
  before?: Partial<Zones>,
): Promise<Zones> {
  const zones = guard.trips.flatMap(({ zone = [] }) => zone);
  const read = { at, guardRevision: guard.revision };
  if (zones.length === 0) return read;
  const { at: readAt = 0, guardRevision, nodes } = before ?? {};
  if (guardRevision === guard.revision && at - readAt < VALID_MS)
    return { ...read, at: readAt, ...defined({ nodes }) };
  const over = new AbortController();
  try {
    const late = pause(READ_WITHIN_MS, over.signal).then(() => read);
    return await Promise.race([nodesIn(zones, fleet, cluster).then((nodes) => ({ ...read, nodes })), late]);
  } catch {
    return read;
  } finally {
    over.abort();
  }
}

async function nodesIn(zones: readonly string[], fleet: Pick<Fleet, 'cluster'>, cluster: ClusterName) {
  const live = await fleet.cluster(cluster);
  try {
    const nodes = new Map<NodeName, string>();
    const labelSelector = `topology.kubernetes.io/zone in (${zones.join()})`;
    for await (const json of live.objects.list('/api/v1/nodes', { labelSelector })) {
      const { name, zone = '' } = projectNode(json);
      nodes.set(name, zone);
    }
    return nodes;
  } finally {
    live.close();
  }
}
