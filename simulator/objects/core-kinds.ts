import * as z from 'zod';

/** The fields of nodes, pods, Events and namespaces (`v1`) that the simulation uses. */

const text = z.string();
export const stringMap = z.record(text, text);
const INT64_MAX = 2n ** 63n - 1n;

const condition = z.looseObject({
  type: text.default(''),
  status: text.default(''),
  reason: text.exactOptional(),
  message: text.exactOptional(),
  lastTransitionTime: text.exactOptional(),
});
export type ConditionObject = z.infer<typeof condition>;
export const conditions = z.array(condition);

const taint = z.looseObject({
  key: text.default(''),
  value: text.exactOptional(),
  effect: text.default(''),
});

const toleration = z.looseObject({
  key: text.exactOptional(),
  operator: text.exactOptional(),
  value: text.exactOptional(),
  effect: text.exactOptional(),
  tolerationSeconds: z
    .union(
      [
        z.int(),
        z
          .bigint()
          .min(-INT64_MAX - 1n)
          .max(INT64_MAX),
      ],
      'must be a 64-bit integer',
    )
    .exactOptional(),
});
export type TolerationObject = z.infer<typeof toleration>;

const container = z.looseObject({
  name: text.default(''),
  image: text.exactOptional(),
  ports: z.array(z.looseObject({})).exactOptional(),
});

const nodeSelectorTerm = z.looseObject({
  matchFields: z
    .array(z.looseObject({ key: text, operator: text, values: z.array(text).default([]) }))
    .exactOptional(),
});

const affinity = z.looseObject({
  nodeAffinity: z
    .looseObject({
      requiredDuringSchedulingIgnoredDuringExecution: z
        .looseObject({ nodeSelectorTerms: z.array(nodeSelectorTerm) })
        .exactOptional(),
    })
    .exactOptional(),
});

export const podSpec = z
  .looseObject({
    nodeName: text.exactOptional(),
    nodeSelector: stringMap.exactOptional(),
    affinity: affinity.exactOptional(),
    schedulerName: text.exactOptional(),
    terminationGracePeriodSeconds: z.int().exactOptional(),
    containers: z.array(container).default([]),
    tolerations: z.array(toleration).exactOptional(),
  })
  .default({ containers: [] });
export type PodSpec = z.infer<typeof podSpec>;

export const node = {
  spec: z
    .looseObject({ taints: z.array(taint).exactOptional(), unschedulable: z.boolean().exactOptional() })
    .default({}),
  status: z.looseObject({ conditions: conditions.exactOptional() }).default({}),
};

export const pod = {
  spec: podSpec,
  status: z.looseObject({ phase: text.exactOptional(), conditions: conditions.exactOptional() }).default({}),
};

export const event = {
  involvedObject: z
    .looseObject({ kind: text.exactOptional(), namespace: text.exactOptional(), name: text.exactOptional() })
    .default({}),
  reason: text.exactOptional(),
  message: text.exactOptional(),
  type: text.exactOptional(),
};

export const namespace = {
  spec: z.looseObject({}).default({}),
  status: z.looseObject({ phase: text.exactOptional() }).default({}),
};
