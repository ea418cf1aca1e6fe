import { Counter, Gauge, type Registry } from 'prom-client';

/** What an agent counts of its queue of what is due. */
export interface DueMetrics {
  /** So many messages of a batch were done, and so many come again: they failed, or their moment has not come. */
  handled(done: number, kept: number): void;
  /** The queue gave no answer. */
  receiveFailed(): void;
  /** Has the batches that are handled counted when they are asked for. */
  observe(batchesInHand: () => number): void;
}

export function dueMetrics(registry: Registry): DueMetrics {
  const registers = [registry];
  const messages = new Counter({
    name: 'taintward_agent_messages_total',
    help: 'Messages of due evictions that an agent received, by outcome: done, or kept because they failed or are not due yet.',
    labelNames: ['outcome'] as const,
    registers,
  });
  const failures = new Counter({
    name: 'taintward_agent_receive_failures_total',
    help: 'Failed calls to receive messages from the queue of due evictions.',
    registers,
  });
  // A series that begins with 1 is no increase to Prometheus.
  for (const outcome of ['done', 'kept']) messages.inc({ outcome }, 0);
  let inHand = () => 0;
  new Gauge({
    name: 'taintward_agent_batches_in_flight',
    help: 'Batches of messages that an agent is processing.',
    registers,
    collect() {
      this.set(inHand());
    },
  });
  return {
    handled(done, kept) {
      messages.inc({ outcome: 'done' }, done);
      messages.inc({ outcome: 'kept' }, kept);
    },
    receiveFailed: () => failures.inc(),
    observe(batchesInHand) {
      inHand = batchesInHand;
    },
  };
}
