import { dueGroupId, encodeCancelled, encodeCountdowns } from '#shared/aws/due-message.ts';
import type { ApplyDeltasDeps } from '#shared/engine/decide/apply-deltas.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Announces decisions by messages on `evictions-due`. */
export const announcingBy =
  (dueQueue: QueueSender, log: Log): ApplyDeltasDeps['announce'] =>
  async (ref, { cancelled, countdowns }) => {
    const bodies = [
      ...cancelled.flatMap((each) => encodeCancelled({ ...ref, ...each })),
      ...encodeCountdowns({ ...ref, pods: countdowns }),
    ];
    const groupId = dueGroupId(ref.cluster);
    const failures = await dueQueue.send(bodies.map((body) => ({ body, groupId })));
    // Events are optional: if the queue rejects the announcement, the decision is not delayed.
    for (const { reason } of failures) log.warn('event.enqueue-failed', { ...ref, error: reason });
  };
