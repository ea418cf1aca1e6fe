import { z } from 'zod';

/** The fields that the suite reads from the objects it watches. */
const Metadata = z.object({
  name: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().optional(),
  deletionGracePeriodSeconds: z.int().optional(),
  generation: z.int().optional(),
  labels: z.record(z.string(), z.string()).default({}),
});

const Taint = z.object({
  key: z.string(),
  value: z.string().optional(),
  effect: z.string(),
  timeAdded: z.string().optional(),
});
export type WatchedTaint = z.infer<typeof Taint>;

const Toleration = z.object({
  key: z.string().optional(),
  operator: z.string().optional(),
  value: z.string().optional(),
  effect: z.string().optional(),
  tolerationSeconds: z.int().optional(),
});
export type WatchedToleration = z.infer<typeof Toleration>;

const Condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
  lastTransitionTime: z.string().nullish(),
  observedGeneration: z.int().optional(),
});
export type WatchedCondition = z.infer<typeof Condition>;

export const WatchedNode = z.object({
  metadata: Metadata,
  spec: z.object({ taints: z.array(Taint).default([]) }),
});
export type WatchedNode = z.infer<typeof WatchedNode>;

export const WatchedPod = z.object({
  metadata: Metadata,
  spec: z.looseObject({ nodeName: z.string().default(''), tolerations: z.array(Toleration).default([]) }),
  status: z.object({ phase: z.string().default(''), conditions: z.array(Condition).default([]) }),
});
export type WatchedPod = z.infer<typeof WatchedPod>;

export const WatchedEvent = z.object({
  metadata: z.object({ name: z.string() }),
  involvedObject: z.record(z.string(), z.string()),
  type: z.string(),
  reason: z.string(),
  message: z.string(),
  source: z.object({ component: z.string().optional() }),
  reportingComponent: z.string().optional(),
  count: z.int().optional(),
  firstTimestamp: z.string().nullish(),
});
export type WatchedEvent = z.infer<typeof WatchedEvent>;
