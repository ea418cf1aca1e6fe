import { announce } from '#shared/engine/evict/events.ts';
import { evictNode, tryAgain } from '#shared/engine/evict/evict-node.ts';
import type { EvictDeps, SetAside } from '#shared/engine/evict/ports.ts';
import { whyNotEvicting } from '#shared/engine/evict/proofs.ts';
import { type Again, WORK_BACKOFF } from '#shared/engine/timers.ts';
import { type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import { isProbed, probeSentAt } from '#shared/eviction/probe.ts';
import { backoffMs } from '#shared/time/backoff.ts';
import type { Consumption } from './consume.ts';
import { type DueMessage, parseDueMessage } from './due-message.ts';

export interface DueDeps extends EvictDeps {
  readonly setAside: SetAside;
  /**
   * Forwards a message that another process handles: `true`. Rejects with `RejectedMessageError` if no process does, or
   * with the error that prevented sending. Absent: this process handles every message.
   */
  readonly sendOn?: (ref: NodeRef, body: string) => Promise<boolean>;
}

/** The longest batch that is received: small, so that a slow cluster's node delays few others. */
export const EVICT_BATCH_SIZE = 5;
/** Less than the function's timeout, because all messages of a batch are processed concurrently. */
export const EVICT_RECORD_DEADLINE_MS = 50_000;

/**
 * A failed eviction has a timer of its own for the retry, so its message ends. A message is redelivered only when its
 * state could not be read or recorded.
 */
export function dueConsumption(deps: DueDeps): Consumption<DueMessage> {
  /** The pass of each node that has not started: messages that arrive meanwhile share it, and it sees what they saw. */
  const next = new Map<string, Promise<Again | undefined>>();
  /** Resolves when the running pass of a node has recorded its results. No two passes delete the same pod. */
  const recorded = new Map<string, Promise<void>>();
  /** Keys of nodes with a redelivered message. The next pass over the node takes the redelivery into account. */
  const cameBefore = new Set<string>();

  const evict = async (ref: NodeRef, key: string): Promise<Again | undefined> => {
    await recorded.get(key);
    next.delete(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    recorded.set(key, promise);
    try {
      return await evictNode(ref, deps, cameBefore.delete(key), resolve);
    } finally {
      resolve();
      if (recorded.get(key) === promise) recorded.delete(key);
    }
  };

  const process = (ref: NodeRef, receives: number): Promise<Again | undefined> => {
    const key = nodeKey(ref);
    if (receives > 1) cameBefore.add(key);
    const pass = next.get(key) ?? evict(ref, key);
    next.set(key, pass);
    return pass;
  };

  const perform: Consumption<DueMessage>['perform'] = async (message, { receives, groupId, body }) => {
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
        if (leftMs <= 0) return process(ref, receives);
        // The timer fired early: the platform cannot delay it that long in one step, or it was a little early.
        if (groupId !== undefined) return { againInSeconds: leftMs / 1000 };
        // A schedule cannot set a group on a standard queue. Armed again, the message has its cluster's (fair queues).
        await deps.timers.arm(ref, [message.at]);
        return undefined;
      }
      case 'canceled': {
        await announce(ref, { canceled: [message], countdowns: [] }, deps);
        return undefined;
      }
      case 'countdowns': {
        await announce(ref, { canceled: [], countdowns: message.pods }, deps);
        return undefined;
      }
      case 'retry':
        await tryAgain(ref, message.pods, deps, receives > 1);
        return process(ref, receives);
      default:
        return message satisfies never;
    }
  };

  return {
    parse: parseDueMessage,
    perform,
    deadlineMs: EVICT_RECORD_DEADLINE_MS,
    retrySeconds: (receives) => Math.ceil(backoffMs(receives, WORK_BACKOFF) / 1000),
    about: ({ cluster, node }) => ({ cluster, node }),
  };
}
