import * as z from 'zod';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';

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
