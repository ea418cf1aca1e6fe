import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import type { ClusterName, NodeRef } from '#shared/eviction/identity.ts';

/**
 * Rejects messages that are due in a cluster other than the agent's own. Such a cluster was registered with
 * this agent by mistake.
 */
export const rejectOtherClusters =
  (own: ClusterName, agent: string) =>
  async ({ cluster }: NodeRef): Promise<boolean> => {
    if (cluster === own) return false;
    throw new RejectedMessageError(
      `due message rejected: it names cluster ${cluster}, but agent ${agent} manages only cluster ${own}. Register ${cluster} with the agent that runs there`,
    );
  };
