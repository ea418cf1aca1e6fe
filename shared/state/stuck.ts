import * as z from 'zod';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';

const text = z.string().min(1);

/** Stuck pods in their stored form. */
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

/** Maximum of stored pods of a cluster, because they are for people. */
export const MAX_STUCK = 100;
