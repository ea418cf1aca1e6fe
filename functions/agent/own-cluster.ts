import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import type { ClusterName, NodeRef } from '#shared/eviction/identity.ts';
import type { ClusterRegistry, RegisteredCluster } from '#shared/state/registry.ts';
import type { Log } from '#shared/telemetry/log.ts';

export interface OwnRegistrationDeps {
  readonly registry: Pick<ClusterRegistry, 'get'>;
  readonly cluster: ClusterName;
  /** The agent's ID. */
  readonly agent: string;
  readonly log: Log;
}

/** The agent's own cluster, while registered with it; a warning when that ends. `list` rejects with `StoreError`. */
export function ownRegistration({
  registry,
  cluster,
  agent,
  log,
}: OwnRegistrationDeps): Pick<ClusterRegistry, 'list'> {
  let wasOurs = true;
  const isOurs = ({ access }: RegisteredCluster) => access.kind === 'agent' && access.agent === agent;
  return {
    async list() {
      const found = await registry.get(cluster);
      const clusters = found && isOurs(found) ? [found] : [];
      if (clusters.length === 0 && wasOurs) log.warn('agent.cluster-not-registered', { cluster, agent });
      wasOurs = clusters.length > 0;
      return { clusters, strays: [] };
    },
  };
}

/** A message for another cluster: it was registered with this agent by mistake. */
export const rejectOtherClusters =
  (own: ClusterName, agent: string) =>
  async ({ cluster }: NodeRef): Promise<boolean> => {
    if (cluster === own) return false;
    throw new RejectedMessageError(
      `due message rejected: it names cluster ${cluster}, but agent ${agent} manages only cluster ${own}. Register ${cluster} with the agent that runs there`,
    );
  };
