import { type ConsumerDeps, consume, type Delivery } from '#shared/aws/consumer.ts';
import { type DueMessage, parseDueMessage } from '#shared/aws/due-message.ts';
import type { Again } from '#shared/engine/again.ts';
import { announce } from '#shared/engine/evict/announce.ts';
import { type EvictDeps, evictNode } from '#shared/engine/evict/evict-node.ts';
import type { SetAside } from '#shared/engine/evict/ports.ts';
import { whyNotEvicting } from '#shared/engine/evict/probe.ts';
import { tryAgain } from '#shared/engine/evict/try-again.ts';
import { type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import { isProbed, probeSentAt } from '#shared/eviction/probe.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { SingleFlight } from './single-flight.ts';

export type EvictHandlerDeps = EvictDeps &
  ConsumerDeps & {
    readonly setAside: SetAside;
    /**
     * Sends a message on that somebody else is to carry out; resolves with whether it was. Rejects with `RejectedMessageError` for one
     * that nobody is, and with what kept it from being sent. Absent: all that comes is ours.
     */
    readonly sendOn?: (ref: NodeRef, body: string) => Promise<boolean>;
  };

/** The longest batch the event source may hand over: small, so that a slow cluster's node holds up few others. */
export const EVICT_BATCH_SIZE = 5;
/** What the work of one message may take: less than the function may, because all of a batch are done at once. */
export const EVICT_RECORD_DEADLINE_MS = 50_000;

/** What could not be read or recorded: the table, or a queue, is away for a moment, or for longer. */
const RETRY: Backoff = { firstMs: 1_000, longestMs: 300_000 };

/**
 * Handles `evictions-due`: "look at that node". What fails there is tried again by a timer of its own, so a failed try
 * ends its message. Only one that could not even read or record what it was about comes again
 * itself.
 */
export function createHandler(deps: EvictHandlerDeps) {
  const passes = new SingleFlight<Again | undefined>();

  /** Nodes on which a message waits for a look that came before: whoever looks next looks for it, too. */
  const cameBefore = new Set<string>();

  const look = (ref: NodeRef, receives: number) => {
    const key = nodeKey(ref);
    if (receives > 1) cameBefore.add(key);
    return passes.run(key, (free) => evictNode(ref, deps, cameBefore.delete(key), free));
  };

  const perform = async (
    message: DueMessage,
    { receives, groupId, body }: Delivery,
  ): Promise<Again | undefined> => {
    const ref: NodeRef = { cluster: message.cluster, node: message.node };
    if (await deps.sendOn?.(ref, body)) return undefined;
    switch (message.kind) {
      case 'due': {
        if (isProbed(ref) && deps.proofs) {
          const failure = await whyNotEvicting(ref.cluster, deps);
          await deps.proofs.probed(ref.cluster, probeSentAt(message.at), failure);
          return undefined;
        }
        const leftMs = message.at - deps.clock.now();
        if (leftMs <= 0) return look(ref, receives);
        // A timer that no timer of the platform reaches in one go, or one that came a moment early.
        if (groupId !== undefined) return { againInSeconds: leftMs / 1000 };
        // A schedule's, which can name no group on such a queue: from here on its cluster is one among others.
        await deps.timers.arm(ref, [message.at]);
        return undefined;
      }
      case 'cancelled': {
        await announce(ref, { cancelled: [message], countdowns: [] }, deps);
        return undefined;
      }
      case 'countdowns': {
        await announce(ref, { cancelled: [], countdowns: message.pods }, deps);
        return undefined;
      }
      case 'retry':
        await tryAgain(ref, message.pods, deps);
        return look(ref, receives);
      default:
        return message satisfies never;
    }
  };

  return consume<DueMessage>(
    {
      parse: parseDueMessage,
      perform,
      order: 'none',
      deadlineMs: EVICT_RECORD_DEADLINE_MS,
      retrySeconds: (receives) => Math.ceil(backoffMs(receives, RETRY) / 1000),
      about: ({ cluster, node }) => ({ cluster, node }),
    },
    deps,
  );
}
