import { fauxqsInternals } from './fauxqs-internals.ts';

interface FifoMessage {
  readonly sentTimestamp: number;
  readonly sequenceNumber?: string;
}

/** What is used here of fauxqs's queue. */
interface FifoQueue {
  readonly fifoMessages: Map<string, FifoMessage[]>;
  /** Messages in flight, by group; a group with any is withheld. */
  readonly fifoLockedGroups: Map<string, number>;
  dequeueFifo(this: FifoQueue, maxCount: number, ...rest: readonly unknown[]): unknown[];
}

const patched = new WeakSet<object>();

/**
 * SQS fills a receive with as many messages of one group as are there. fauxqs hands out one, so that a node whose
 * pods come and go waits for a round trip per pod (60 to 100 a second, measured). This lets its queues hand out
 * more, and puts what came back unhandled into its order again, which fauxqs, with one at a time, need not.
 */
export async function fillFifoReceives(): Promise<void> {
  const { SqsQueue } = await fauxqsInternals<{ SqsQueue: { prototype: FifoQueue } }>('sqs/sqsStore.js');
  const { prototype } = SqsQueue;
  if (patched.has(prototype)) return;
  patched.add(prototype);
  const takeOneOfEach = prototype.dequeueFifo;
  prototype.dequeueFifo = function (maxCount, ...rest) {
    for (const messages of this.fifoMessages.values()) messages.sort(inSendingOrder);
    const lockedByOthers = new Set(this.fifoLockedGroups.keys());
    const locks = new Map<string, number>();
    const received: unknown[] = [];
    for (;;) {
      const taken = takeOneOfEach.call(this, maxCount - received.length, ...rest);
      received.push(...taken);
      // What this receive locked is opened for its next round, and locked by as many messages in the end.
      for (const [group, count] of this.fifoLockedGroups) {
        if (lockedByOthers.has(group)) continue;
        locks.set(group, (locks.get(group) ?? 0) + count);
        this.fifoLockedGroups.delete(group);
      }
      if (taken.length === 0 || received.length === maxCount) break;
    }
    for (const [group, count] of locks) this.fifoLockedGroups.set(group, count);
    return received;
  };
}

function inSendingOrder(a: FifoMessage, b: FifoMessage): number {
  return a.sentTimestamp - b.sentTimestamp || compareText(a.sequenceNumber ?? '', b.sequenceNumber ?? '');
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
