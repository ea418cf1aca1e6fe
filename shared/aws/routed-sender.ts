import type { AgentOf } from '#shared/access/agent-of.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';

/** Queues of what is due: the service's own, and those of agents. */
export interface DueQueues {
  /** `evictions-due`, which `evict` works off. */
  readonly own: QueueSender;
  /** That of the agent of this ID. */
  readonly ofAgent: (agent: string) => QueueSender;
}

/**
 * Sends what is due to whoever carries it out: to the queue of the agent that works in a message's cluster, which is the message's
 * group, or else to our own, where those go, too, that have no group. Rejects also with `StoreError`.
 */
export class RoutedSender implements QueueSender {
  readonly #queues: DueQueues;
  readonly #agentOf: AgentOf;

  constructor(queues: DueQueues, agentOf: AgentOf) {
    this.#queues = queues;
    this.#agentOf = agentOf;
  }

  async send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]> {
    const placed = await Promise.all(
      messages.map(async (message, index) => {
        const { groupId } = message;
        const agent = groupId === undefined ? undefined : await this.#agentOf(clusterName(groupId));
        return { message, index, agent };
      }),
    );
    const failures: SendFailure[] = [];
    for (const [agent, some] of Map.groupBy(placed, (each) => each.agent)) {
      const queue = agent === undefined ? this.#queues.own : this.#queues.ofAgent(agent);
      for (const failure of await queue.send(some.map(({ message }) => message)))
        failures.push({ ...failure, index: some[failure.index]?.index ?? failure.index });
    }
    return failures.sort((a, b) => a.index - b.index);
  }
}
