import { type ConsumerDeps, consume, type Delivery } from '#shared/aws/consumer.ts';
import { messageGroupId, parseDelta } from '#shared/aws/delta-message.ts';
import type { CanSend } from '#shared/aws/lease-senders.ts';
import { DELTA_MAX_RECEIVES } from '#shared/aws/queue-set.ts';
import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import { type ApplyDeltasDeps, applyDeltas, mayJoin } from '#shared/engine/decide/apply-deltas.ts';
import { passProbeOn } from '#shared/engine/decide/probe.ts';
import { type Delta, deltaId } from '#shared/eviction/facts.ts';
import { probeOf } from '#shared/eviction/probe.ts';
import type { ProbeTrace } from '#shared/state/proofs.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { announcingBy } from './announcing.ts';

/** What a delta handler needs: the world deltas are applied to, and what every consumer of a queue needs. */
export interface DeltaHandlerDeps extends Omit<ApplyDeltasDeps, 'announce'>, ConsumerDeps {
  /** `evictions-due`. */
  readonly dueQueue: QueueSender;
  /** Absent: nobody but the relay can send. */
  readonly canSend?: CanSend;
  /** Absent: no probe leaves a trace. */
  readonly trace?: ProbeTrace;
}

/** The longest batch the event source may hand over. */
export const DELTA_BATCH_SIZE = 5;
/**
 * One record's share of the function's time. A function that times out fails its whole batch, so a batch of the
 * longest kind must end before the queue's `functionTimeoutSeconds` even when every record uses up its share.
 */
export const DELTA_RECORD_DEADLINE_MS = 5_000;

/**
 * The Lambda handler of `node-deltas.fifo`, each message of which decides one whole node, and of `pod-deltas.fifo`,
 * each of which is one pod that appeared on, changed on, or left a tainted node. Within a batch, records of one node
 * are applied in order, and pods next to each other are written together; after one that fails, the rest of that node's are
 * given back too, and other nodes go on. A delta that was sent by somebody else than the cluster's relays, or in the
 * message group of another node, becomes a dead letter.
 */
export function createHandler(deps: DeltaHandlerDeps) {
  const applying = { ...deps, announce: announcingBy(deps.dueQueue, deps.log) };
  return consume<Delta>(
    {
      parse: parseDelta,
      admit: async (delta, delivery) => {
        checkGroup(delta, delivery);
        await checkSender(delta, delivery, deps);
      },
      perform: async (delta, _delivery, behind) => {
        const probe = probeOf(delta);
        if (probe) await passProbeOn(delta.ref, probe, applying);
        else await applyDeltas([delta, ...behind], applying);
        return undefined;
      },
      order: 'group',
      joins: (before, next) => probeOf(next) === undefined && mayJoin(before, next),
      deadlineMs: DELTA_RECORD_DEADLINE_MS,
      retrySeconds: deltaRetrySeconds,
      about: ({ ref, version }) => ({ ...ref, delta: deltaId(version) }),
    },
    deps,
  );
}

/**
 * Comes first, for it asks nobody: a sender who damaged what is known of its own cluster could otherwise have its delta come again and
 * again, and hold up the node whose group it is in.
 */
function checkGroup({ ref }: Delta, { groupId, senderId }: Delivery): void {
  if (groupId === messageGroupId(ref)) return;
  throw new RejectedMessageError(
    `delta rejected: ${senderId} sent it, a delta of node ${ref.node} of cluster ${ref.cluster}, in the message group of another node. Identify the sender and check who has its keys`,
  );
}

async function checkSender(
  { ref: { cluster } }: Delta,
  { senderId }: Delivery,
  { canSend }: DeltaHandlerDeps,
): Promise<void> {
  if ((await canSend?.(cluster, senderId)) ?? true) return;
  throw new RejectedMessageError(
    `delta rejected: ${senderId} sent it for cluster ${cluster}, but never held that cluster's lease. Identify the sender and check who has its keys`,
  );
}

/**
 * 1, 6, 36 and 216 s: a lost race is made up for at once, and a table that is away for minutes outlived. After the
 * last try at once, because only then the queue dead-letters the message and lets its node go on.
 */
const deltaRetrySeconds = (receives: number): number =>
  receives < DELTA_MAX_RECEIVES ? 6 ** (receives - 1) : 0;
