import { type ConsumerDeps, consume, type ReceivedMessage } from '#shared/aws/consume.ts';
import { messageGroupId, parseDelta } from '#shared/aws/delta-message.ts';
import { dueGroupId, encodeCanceled, encodeCountdowns } from '#shared/aws/due-message.ts';
import type { CanSend } from '#shared/aws/lease-senders.ts';
import { DELTA_MAX_RECEIVES } from '#shared/aws/queue-set.ts';
import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import { type ApplyDeltasDeps, applyDeltas, mayJoin } from '#shared/engine/decide/apply-deltas.ts';
import { passProbeOn } from '#shared/engine/decide/probe.ts';
import { type Delta, deltaId } from '#shared/eviction/facts.ts';
import { probeOf } from '#shared/eviction/probe.ts';
import type { ProofStore } from '#shared/state/proofs.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Dependencies of a delta handler: those of applying deltas, and those of every consumer of a queue. */
export interface DeltaHandlerDeps extends Omit<ApplyDeltasDeps, 'announce'>, ConsumerDeps {
  readonly dueQueue: QueueSender;
  /** Absent: only the relay can send. */
  readonly canSend?: CanSend;
  /** Absent: probes leave no trace. */
  readonly trace?: Pick<ProofStore, 'notedDelta'>;
}

/** Maximum number of records in a batch. */
export const DELTA_BATCH_SIZE = 5;
/**
 * One record's share of the function's time. If the function times out, its whole batch fails. So a batch of
 * maximum size must end before the queue's `functionTimeoutSeconds`, even if every record uses up its share.
 */
export const DELTA_RECORD_DEADLINE_MS = 5_000;

/**
 * Makes the Lambda handler of two queues. A message of `node-deltas.fifo` decides one whole node. A message
 * of `pod-deltas.fifo` is one pod that was added to, changed on, or removed from a tainted node.
 * - Within a batch, the records of one node are applied in order, and adjacent pods are written together.
 * - After a failed record, the remaining records of its node are returned to the queue, too. Other nodes
 *   continue, and do not wait for it.
 * - A delta from a sender other than the cluster's relays, or in the message group of another node, becomes a
 *   dead letter.
 */
export function createHandler(deps: DeltaHandlerDeps) {
  const applying = { ...deps, announce: announcingBy(deps.dueQueue, deps.log) };
  return consume<Delta>(
    {
      parse: parseDelta,
      admit: async (delta, received) => {
        checkGroup(delta, received);
        await checkSender(delta, received, deps);
      },
      perform: async (delta, _received, behind) => {
        const probe = probeOf(delta);
        if (probe) await passProbeOn(delta.ref, probe, applying);
        else await applyDeltas([delta, ...behind], applying);
        return undefined;
      },
      joins: (before, next) => probeOf(next) === undefined && mayJoin(before, next),
      deadlineMs: DELTA_RECORD_DEADLINE_MS,
      retrySeconds: deltaRetrySeconds,
      about: ({ ref, version }) => ({ ...ref, delta: deltaId(version) }),
    },
    deps,
  );
}

/**
 * Rejects a delta in the message group of another node. This check comes first because it reads nothing.
 * Otherwise, a sender that damaged the state of its own cluster could have its delta redelivered, and so
 * delay the node of that group.
 */
function checkGroup({ ref }: Delta, { groupId, senderId }: ReceivedMessage): void {
  if (groupId === messageGroupId(ref)) return;
  throw new RejectedMessageError(
    `delta rejected: ${senderId} sent it, a delta of node ${ref.node} of cluster ${ref.cluster}, in the message group of another node. Identify the sender and check who has its keys`,
  );
}

async function checkSender(
  { ref: { cluster } }: Delta,
  { senderId }: ReceivedMessage,
  { canSend }: DeltaHandlerDeps,
): Promise<void> {
  if ((await canSend?.(cluster, senderId)) ?? true) return;
  throw new RejectedMessageError(
    `delta rejected: ${senderId} sent it for cluster ${cluster}, but never held that cluster's lease. Identify the sender and check who has its keys`,
  );
}

/**
 * Returns 1, 6, 36, and 216 s. A lost race is soon retried, and an outage of the table may last minutes.
 * After the last attempt, returns 0: only then does the queue dead-letter the message and continue with its
 * node.
 */
export const deltaRetrySeconds = (receives: number): number =>
  receives < DELTA_MAX_RECEIVES ? 6 ** (receives - 1) : 0;

/** Announces decisions by messages on `evictions-due`. */
export const announcingBy =
  (dueQueue: QueueSender, log: Log): ApplyDeltasDeps['announce'] =>
  async (ref, { canceled, countdowns }) => {
    const bodies = [
      ...canceled.flatMap((each) => encodeCanceled({ ...ref, ...each })),
      ...encodeCountdowns({ ...ref, pods: countdowns }),
    ];
    const groupId = dueGroupId(ref.cluster);
    const failures = await dueQueue.send(bodies.map((body) => ({ body, groupId })));
    // Events are optional: if the queue rejects the announcement, the decision is not delayed.
    for (const { reason } of failures) log.warn('event.enqueue-failed', { ...ref, error: reason });
  };
