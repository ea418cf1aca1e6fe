import * as z from 'zod';
import { type EpochMs, type NodeName, nodeName, type PodUid, podUid } from '#shared/eviction/identity.ts';

/** A pod that was evicted and whose grace period has been over for longer than a minute. */
export interface StuckPod {
  readonly node: NodeName;
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  /** When its grace period was over. */
  readonly overAt: EpochMs;
  /** What has to be done before it may go, by the names that are in its metadata. */
  readonly finalizers: readonly string[];
  /** Of its node: there, not reached by the node controller, or deleted. */
  readonly nodeState: 'there' | 'unreachable' | 'gone';
}

const text = z.string().min(1);

/** Stuck pods as they are stored. */
export const stuckSchema: z.ZodType<readonly StuckPod[]> = z.array(
  z.object({
    node: text.transform(nodeName),
    uid: text.transform(podUid),
    namespace: text,
    name: text,
    overAt: z.int(),
    finalizers: z.array(z.string()),
    nodeState: z.enum(['there', 'unreachable', 'gone']),
  }),
);

/** No more than these are stored of a cluster: they are for people. */
export const MAX_STUCK = 100;
