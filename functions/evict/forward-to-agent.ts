import type { AgentOf } from '#shared/access/agent-of.ts';
import type { DueQueues } from '#shared/aws/routed-sender.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { Log } from '#shared/telemetry/log.ts';

export interface ForwardToAgentDeps {
  readonly agentOf: AgentOf;
  readonly log: Log;
}

/**
 * Sends what is due in a cluster of an agent on to that one: it was sent here before the cluster was registered so. What it does
 * rejects with `StoreError` or `QueueError`.
 */
export const forwardToAgent =
  ({ ofAgent }: Pick<DueQueues, 'ofAgent'>, { agentOf, log }: ForwardToAgentDeps) =>
  async (ref: NodeRef, body: string): Promise<boolean> => {
    const agent = await agentOf(ref.cluster);
    if (agent === undefined) return false;
    const [failure] = await ofAgent(agent).send([{ body, groupId: ref.cluster }]);
    if (failure) throw new Error(`the queue of agent ${agent} rejected it: ${failure.reason}`);
    log.info('message.forwarded', { ...ref, agent });
    return true;
  };
