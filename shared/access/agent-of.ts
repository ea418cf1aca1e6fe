import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ClusterRegistry } from '#shared/state/registry.ts';
import { cached } from '#shared/time/cached.ts';
import type { Clock } from '#shared/time/clock.ts';

/**
 * For how long a registration that was read is relied on. What goes to the wrong queue meanwhile is sent on; and together with the
 * 20 s for which `RegisteredClusters` relies on it, a change takes effect within 30 s.
 */
const REGISTRATION_MAX_AGE_MS = 8_000;

/** The ID of the agent that carries out what is due in a cluster; `undefined`: `evict` does. Rejects with `StoreError`. */
export type AgentOf = (cluster: ClusterName) => Promise<string | undefined>;

/** Registrations as they were some seconds ago at most. */
export const recentRegistrations = (
  registry: Pick<ClusterRegistry, 'get'>,
  clock: Clock,
): Pick<ClusterRegistry, 'get'> => ({
  get: cached(REGISTRATION_MAX_AGE_MS, (cluster) => registry.get(cluster), clock),
});

/** Which agents clusters have, by their registrations. */
export const agentOf =
  (registrations: Pick<ClusterRegistry, 'get'>): AgentOf =>
  async (cluster) => {
    const access = (await registrations.get(cluster))?.access;
    return access?.kind === 'agent' ? access.agent : undefined;
  };
