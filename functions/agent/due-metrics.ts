import { Counter, Gauge, type Registry } from 'prom-client';

export type DueMetrics = ReturnType<typeof dueMetrics>;

/** Metrics of an agent's queue of due evictions. */
export function dueMetrics(registry: Registry) {
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
    /** `kept` messages are redelivered: they failed, or they are not due yet. */
    handled(done: number, kept: number) {
      messages.inc({ outcome: 'done' }, done);
      messages.inc({ outcome: 'kept' }, kept);
    },
    receiveFailed: () => failures.inc(),
    /** Sets the source of the gauge of batches in flight. Each scrape calls `batchesInHand`. */
    observe(batchesInHand: () => number) {
      inHand = batchesInHand;
    },
  };
}
