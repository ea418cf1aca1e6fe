import type { AgentOf } from '#shared/access/agent-of.ts';
import { type ConsumerDeps, consume } from '#shared/aws/consume.ts';
import { type DueDeps, dueConsumption } from '#shared/aws/due-consumption.ts';
import type { DueQueues } from '#shared/aws/due-queues.ts';
import type { Log } from '#shared/telemetry/log.ts';

export type EvictHandlerDeps = DueDeps & ConsumerDeps;

/** Makes the Lambda handler of `evictions-due`. */
export const createHandler = (deps: EvictHandlerDeps) => consume(dueConsumption(deps), deps);

/**
 * Forwards a due message to the agent of its cluster: it was sent before the cluster was registered with the
 * agent. So `evict` arms no timers of agents. Rejects with `StoreError`, `QueueError`, or `Error`.
 */
export const forwardToAgent =
  (
    { ofAgent }: Pick<DueQueues, 'ofAgent'>,
    { agentOf, log }: { readonly agentOf: AgentOf; readonly log: Log },
  ): NonNullable<DueDeps['sendOn']> =>
  async (ref, body) => {
    const agent = await agentOf(ref.cluster);
    if (agent === undefined) return false;
    const [failure] = await ofAgent(agent).send([{ body, groupId: ref.cluster }]);
    if (failure) throw new Error(`the queue of agent ${agent} rejected it: ${failure.reason}`);
    log.info('message.forwarded', { ...ref, agent });
    return true;
  };
