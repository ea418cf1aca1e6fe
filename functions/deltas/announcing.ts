import { dueGroupId, encodeCancelled, encodeCountdowns } from '#shared/aws/due-message.ts';
import type { ApplyDeltasDeps } from '#shared/engine/decide/apply-deltas.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Announces by messages on `evictions-due`. */
export const announcingBy =
  (dueQueue: QueueSender, log: Log): ApplyDeltasDeps['announce'] =>
  async (ref, { cancelled, countdowns }) => {
    const bodies = [
      ...cancelled.flatMap((each) => encodeCancelled({ ...ref, ...each })),
      ...encodeCountdowns({ ...ref, pods: countdowns }),
    ];
    const groupId = dueGroupId(ref.cluster);
    const failures = await dueQueue.send(bodies.map((body) => ({ body, groupId })));
    // An Event is a courtesy: a queue that refuses the announcement must not hold the decision up.
    for (const { reason } of failures) log.warn('event.enqueue-failed', { ...ref, error: reason });
  };
