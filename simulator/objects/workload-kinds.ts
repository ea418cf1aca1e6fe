import * as z from 'zod';
import { conditions, podSpec, stringMap } from './core-kinds.ts';

/** The fields of workloads (`apps/v1`) and of disruption budgets (`policy/v1`) that the simulation uses. */

/** Upstream: `metav1.LabelSelector`. */
export const labelSelectorSchema = z.looseObject({
  matchLabels: stringMap.exactOptional(),
  matchExpressions: z
    .array(z.looseObject({ key: z.string(), operator: z.string(), values: z.array(z.string()).default([]) }))
    .exactOptional(),
});
export type LabelSelector = z.infer<typeof labelSelectorSchema>;

/** A number, or a share such as `25%`. Upstream: `intstr.IntOrString`. */
const intOrPercent = z.union([z.int(), z.string()], 'must be a whole number or a percentage');
export type IntOrPercent = z.infer<typeof intOrPercent>;

const podTemplate = z
  .looseObject({
    metadata: z
      .looseObject({ labels: stringMap.exactOptional(), annotations: stringMap.exactOptional() })
      .default({}),
    spec: podSpec,
  })
  .prefault({});
export type PodTemplate = z.infer<typeof podTemplate>;

const rolling = z.looseObject({
  maxSurge: intOrPercent.exactOptional(),
  maxUnavailable: intOrPercent.exactOptional(),
});

const strategy = z
  .looseObject({ type: z.string().exactOptional(), rollingUpdate: rolling.exactOptional() })
  .exactOptional();

const common = {
  selector: labelSelectorSchema.default({}),
  template: podTemplate,
  minReadySeconds: z.int().exactOptional(),
  revisionHistoryLimit: z.int().exactOptional(),
};

const counted = { ...common, replicas: z.int().exactOptional() };

const status = z
  .looseObject({
    observedGeneration: z.int().exactOptional(),
    replicas: z.int().exactOptional(),
    readyReplicas: z.int().exactOptional(),
    availableReplicas: z.int().exactOptional(),
    conditions: conditions.exactOptional(),
  })
  .default({});

export const deployment = {
  spec: z.looseObject({ ...counted, strategy, paused: z.boolean().exactOptional() }).prefault({}),
  status,
};

export const replicaSet = { spec: z.looseObject(counted).prefault({}), status };

export const statefulSet = {
  spec: z
    .looseObject({
      ...counted,
      serviceName: z.string().exactOptional(),
      podManagementPolicy: z.string().exactOptional(),
      updateStrategy: strategy,
    })
    .prefault({}),
  status: status.unwrap().extend({ currentRevision: z.string().exactOptional() }).default({}),
};

export const daemonSet = {
  spec: z.looseObject({ ...common, updateStrategy: strategy }).prefault({}),
  status,
};

export const disruptionBudget = {
  spec: z
    .looseObject({
      minAvailable: intOrPercent.exactOptional(),
      maxUnavailable: intOrPercent.exactOptional(),
      selector: labelSelectorSchema.exactOptional(),
      unhealthyPodEvictionPolicy: z.string().exactOptional(),
    })
    .default({}),
  status: z
    .looseObject({
      observedGeneration: z.int().exactOptional(),
      /** The pods whose eviction was granted, by name, with the time. */
      disruptedPods: stringMap.exactOptional(),
      disruptionsAllowed: z.int().default(0),
      currentHealthy: z.int().default(0),
      desiredHealthy: z.int().default(0),
      expectedPods: z.int().default(0),
      conditions: conditions.exactOptional(),
    })
    .default({ disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }),
};
