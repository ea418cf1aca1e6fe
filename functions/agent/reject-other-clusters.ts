import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import type { ClusterName, NodeRef } from '#shared/eviction/identity.ts';

/** Has what is due in another cluster than an agent's own set aside, with a sentence: somebody registered that as this agent's. */
export const rejectOtherClusters =
  (own: ClusterName, agent: string) =>
  async ({ cluster }: NodeRef): Promise<boolean> => {
    if (cluster === own) return false;
    throw new RejectedMessageError(
      `due message rejected: it names cluster ${cluster}, but agent ${agent} manages only cluster ${own}. Register ${cluster} with the agent that runs there`,
    );
  };
