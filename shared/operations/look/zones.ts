import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import { projectNode } from '#shared/kubernetes/project.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { withCluster } from '../fleet/live-cluster.ts';

const READ_WITHIN_MS = 5_000;
const VALID_MS = 60_000;

/** The nodes of the zones for which the guard tripped. Only the cluster has them. */
export interface Zones {
  readonly at: EpochMs;
  readonly guardRevision: number;
  /** Absent: no zone tripped, or the cluster did not answer. */
  readonly nodes?: ReadonlyMap<NodeName, string | undefined>;
}

/** `before`: an earlier answer, which a caller that reads often gets again. Never rejects. */
export async function zonesOf(
  fleet: Pick<Fleet, 'cluster'>,
  cluster: ClusterName,
  { guard }: Pick<StoredRules, 'guard'>,
  at: EpochMs,
  before?: Zones,
): Promise<Zones> {
  const zones = guard.trips.flatMap(({ zone = [] }) => zone);
  if (zones.length > 0 && before?.guardRevision === guard.revision && at - before.at < VALID_MS)
    return before;
  const over = new AbortController();
  const read =
    zones.length === 0 ? undefined : withCluster(fleet, cluster, ({ objects }) => zonesIn(objects, zones));
  const nodes = await Promise.race([read, pause(READ_WITHIN_MS, over.signal)]).catch(() => undefined);
  over.abort();
  return { at, guardRevision: guard.revision, ...(nodes ? { nodes } : {}) };
}

/** Returns the zone of each node, of these zones or of all. Rejects with `ApiError`. */
export async function zonesIn(
  objects: ClusterObjects,
  zones?: readonly string[],
): Promise<ReadonlyMap<NodeName, string | undefined>> {
  const query = zones ? { labelSelector: `topology.kubernetes.io/zone in (${zones.join()})` } : {};
  const nodes = await Array.fromAsync(objects.list('/api/v1/nodes', query));
  return new Map(nodes.map(projectNode).map(({ name, zone }) => [name, zone]));
}
