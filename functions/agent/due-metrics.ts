import { Counter, Gauge, type Registry } from 'prom-client';

/** Metrics of an agent's queue of due evictions. */
export interface DueMetrics {
  /** `kept` messages are redelivered: they failed, or they are not due yet. */
  handled(done: number, kept: number): void;
  receiveFailed(): void;
  /** Sets the source of the gauge of batches in flight. Each scrape calls `batchesInHand`. */
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
  // Prometheus sees no increase in a series that begins with 1.
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
