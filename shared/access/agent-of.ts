import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ClusterRegistry } from '#shared/state/registry.ts';
import { cached } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';

/**
 * Maximum age of a registration. With the 20 s of `registeredClusters`, a change takes effect within 30 s; messages in
 * the wrong queue meanwhile are forwarded.
 */
export const REGISTRATION_MAX_AGE_MS = 8_000;

/** The agent that carries out a cluster's due evictions; `undefined`: `evict` does. Rejects with `StoreError`. */
export type AgentOf = (cluster: ClusterName) => Promise<string | undefined>;

/** Returns the registrations, at most some seconds old. */
export const recentRegistrations = (
  registry: Pick<ClusterRegistry, 'get'>,
  clock: Clock,
): Pick<ClusterRegistry, 'get'> => ({
  get: cached(REGISTRATION_MAX_AGE_MS, (cluster) => registry.get(cluster), clock),
});

export const agentOf =
  (registrations: Pick<ClusterRegistry, 'get'>): AgentOf =>
  async (cluster) => {
    const access = (await registrations.get(cluster))?.access;
    return access?.kind === 'agent' ? access.agent : undefined;
  };
