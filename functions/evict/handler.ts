import { type EpochMs, type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { type ConsumerDeps, consume } from '#shared/queues/consumer.ts';
import { EVICTIONS_DUE_MAX_RECEIVES } from '#shared/queues/queue-set.ts';
import { type DueMessage, parseDueMessage } from '#shared/timers/due-message.ts';
import { type EvictDeps, EvictionsFailedError, evictNode } from './evict-node.ts';
import { cancellingDeletion, gaveUpDeletion } from './pod-events.ts';
import { postEvents } from './post-events.ts';
import { retryDelaySeconds } from './retry-backoff.ts';
import { SingleFlight } from './single-flight.ts';

export type EvictHandlerDeps = EvictDeps & ConsumerDeps;

/** The longest batch the event source may hand over: small, so that a slow cluster's node holds up few others. */
export const EVICT_BATCH_SIZE = 5;
/** What the work of one message may take: less than the function may, because all of a batch are done at once. */
export const EVICT_RECORD_DEADLINE_MS = 50_000;

/**
 * Handles `evictions-due`: "look at that node". A message whose work failed comes back after a growing delay,
 * for as long as the queue keeps it; then it is a dead letter.
 */
export function createHandler(deps: EvictHandlerDeps) {
  const passes = new SingleFlight();

  const perform = async (message: DueMessage): Promise<void> => {
    const ref: NodeRef = { cluster: message.cluster, node: message.node };
    if (message.kind === 'cancelled') {
      const api = await deps.clusters.api(ref.cluster);
      await postEvents(
        api,
        message.pods.map((pod) => cancellingDeletion(pod, message.version)),
        deps,
      );
    } else if (message.at > deps.clock.now()) {
      await deps.timers.arm(ref, await momentsUpTo(message.at, ref));
    } else {
      await passes.run(nodeKey(ref), (free) => evictNode(ref, deps, free));
    }
  };

  /** A timer sent ahead of time, because none reaches further, waits for the exact moments the records name. */
  const momentsUpTo = async (at: EpochMs, ref: NodeRef): Promise<readonly EpochMs[]> => {
    const { scheduled } = await deps.store.load(ref, deps.clock.now());
    const moments = [...scheduled.values()].map(({ fireAt }) => fireAt);
    return [...new Set(moments.filter((fireAt) => fireAt <= at))];
  };

  return consume<DueMessage>(
    {
      parse: parseDueMessage,
      perform: (message, receives) =>
        perform(message).catch(async (error: unknown) => {
          await countFailure(message, receives, error, deps);
          throw error;
        }),
      order: 'none',
      deadlineMs: EVICT_RECORD_DEADLINE_MS,
      retrySeconds,
      describe: ({ cluster, node }) => ({ cluster, node }),
    },
    deps,
  );
}

function retrySeconds(receives: number, error: unknown): number | undefined {
  // The queue dead-letters it when it is due by its visibility.
  if (receives >= EVICTIONS_DUE_MAX_RECEIVES) return undefined;
  const answered = error instanceof EvictionsFailedError || error instanceof ApiError;
  return retryDelaySeconds(receives, answered ? error.retryAfterSeconds : undefined);
}

async function countFailure(
  { cluster, node }: DueMessage,
  receives: number,
  error: unknown,
  deps: EvictHandlerDeps,
): Promise<void> {
  // Those met pod by pod are counted where they are met.
  if (error instanceof ApiError) deps.metrics.requestRefused();
  if (receives < EVICTIONS_DUE_MAX_RECEIVES) {
    deps.metrics.retried();
    return;
  }
  deps.log.error('eviction.gave-up', { cluster, node, receives, reason: error });
  if (!(error instanceof EvictionsFailedError)) return;
  const api = await deps.clusters.api(cluster);
  await postEvents(api, error.pods.map(gaveUpDeletion), deps);
}
