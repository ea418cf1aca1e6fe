import type { AgentOf } from '#shared/access/agent-of.ts';
import { type Timers, timerError } from '#shared/engine/timers.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { agentSchedules } from './agent-names.ts';
import { AwsTimers, awsTimersOf, type OneQueue, type TimersOfDeps } from './aws-timers.ts';
import { sqsDueQueues } from './due-queues.ts';
import type { agentsVariables, Variables } from './environment.ts';

export interface RoutedTimersDeps {
  /** Timers for the evictions of `evict`. */
  readonly own: Timers;
  readonly ofAgent: (agent: string) => Timers;
  readonly agentOf: AgentOf;
}

/** Arms each cluster's timers with the process that evicts there: the cluster's agent, or `evict`. */
export class RoutedTimers implements Timers {
  readonly #deps: RoutedTimersDeps;

  constructor(deps: RoutedTimersDeps) {
    this.#deps = deps;
  }

  async arm(ref: NodeRef, times: readonly EpochMs[]): Promise<void> {
    // Most deltas arm no timer and must not cost a read.
    if (times.length === 0) return;
    const timers = await this.#timersOf(ref);
    await timers.arm(ref, times);
  }

  async #timersOf(ref: NodeRef): Promise<Timers> {
    const { own, ofAgent, agentOf } = this.#deps;
    try {
      const agent = await agentOf(ref.cluster);
      return agent === undefined ? own : ofAgent(agent);
    } catch (error) {
      throw timerError(ref, error);
    }
  }
}

export function routedTimersOf(
  environment: OneQueue & Variables<typeof agentsVariables>,
  { agentOf, ...deps }: TimersOfDeps & { readonly agentOf: AgentOf },
): Timers {
  const { EVICTIONS_DUE_ARN: arn, AGENT_PREFIX: prefix } = environment;
  const { scheduler, clock } = deps;
  const queues = sqsDueQueues(environment, deps.sqs);
  return new RoutedTimers({
    own: awsTimersOf(environment, deps),
    ofAgent: (agent) =>
      new AwsTimers({
        dueQueue: queues.ofAgent(agent),
        ...agentSchedules(arn, prefix, agent),
        scheduler,
        clock,
      }),
    agentOf,
  });
}
