import * as z from 'zod';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { duration } from '#shared/time/written.ts';
import type { Owner } from './facts.ts';
import type { NodeName, PodUid } from './identity.ts';
import { contradiction, type LabelSelector } from './selectors.ts';
import {
  annotationValues,
  byTaintKey,
  count,
  end,
  inMs,
  LIMIT,
  labelKey,
  labelValue,
  labelValues,
  listOf,
  namespace,
  OFF,
  orNone,
  orOff,
  ownerKind,
  percent,
  perSecond,
  priorityClassName,
  type Settings,
  settings,
  taintKey,
  taintKeys,
  trueOrFalse,
  whenApplied,
} from './settings.ts';

/*
 * Declares every setting of a policy once: its written form, default, purpose, and how it is read and written. The
 * policy type, the editor schema, the guide, and the diffs follow from these declarations.
 */

const SECONDS = 'must be a whole number of seconds from 0 on';

const affected = (percentage: number, nodes: number) => ({
  percent: percent.prefault(percentage),
  nodes: count.prefault(nodes),
});

const guard = settings({
  dryRun: trueOrFalse
    .prefault(false)
    .meta({ description: 'The guard only logs that it would have held evictions.' }),
  cluster: orOff(settings(affected(20, 3))).meta({
    description: 'Limit for nodes of the cluster that are down at the same time; or off.',
  }),
  zone: orOff(settings(affected(55, 3))).meta({
    description: 'Limit for nodes of one zone that are down at the same time; or off.',
  }),
  customTaints: orOff(
    inMs(settings({ ...affected(30, 5), window: duration.prefault('10m') }), 'window'),
  ).meta({
    description:
      'Limit for nodes with taints that Kubernetes does not set itself: percentage and number of nodes tainted within the window; or off.',
  }),
});

const expression = settings({
  key: labelKey,
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist'], 'must be In, NotIn, Exists or DoesNotExist'),
  values: z.array(labelValue, 'must be a list of values').exactOptional(),
}).refine(({ operator, values = [] }) => (operator === 'In' || operator === 'NotIn') === values.length > 0, {
  path: ['values'],
  error:
    'must be a list of values with the operators In and NotIn, and empty or left out with Exists and DoesNotExist',
});

/** A selector of pods, in a policy and in a hold. */
export const labelSelector = settings({
  matchLabels: labelValues.exactOptional(),
  matchExpressions: z.array(expression, 'must be a list of expressions').exactOptional(),
}).refine(({ matchLabels, matchExpressions = [] }) => matchLabels ?? matchExpressions[0], {
  error: 'must have matchLabels or matchExpressions',
});
labelSelector.register(whenApplied, {
  faults(selector: LabelSelector) {
    const conditions = contradiction(selector);
    if (!conditions) return [];
    return [
      `can never match: no pod has ${conditions.join(' and ')}. Change or remove one of these conditions`,
    ];
  },
});

const selection = settings({
  namespaces: listOf(namespace, 'namespaces').exactOptional(),
  labels: labelSelector.exactOptional(),
  annotations: annotationValues.exactOptional(),
  ownerKinds: listOf(ownerKind, 'kinds').exactOptional(),
  priorityClassNames: listOf(priorityClassName, 'priority classes').exactOptional(),
  taints: taintKeys.exactOptional(),
  until: end,
}).refine(({ until: _, ...conditions }) => Object.keys(conditions).length > 0, {
  error:
    'must name namespaces, labels, annotations, ownerKinds, priorityClassNames or taints, or it would be everything',
});

const onTimeout = z.enum(['delete', 'fail'], 'must be delete or fail');

const evict = inMs(
  settings({
    timeout: duration.prefault('15m').meta({
      description:
        'How long a disruption budget, or an admission webhook or policy, may block the eviction of a pod.',
    }),
    onTimeout: onTimeout
      .prefault('delete')
      .meta({ description: 'Then: delete deletes the pod; fail records its eviction as failed.' }),
  }),
  'timeout',
);

const PERMITTED = 'must be a whole number from 1 on, or a whole percentage from 1% to 100%';

const maxEvictionsPerWorkload = inMs(
  settings({
    count: z
      .union(
        [z.int(PERMITTED).min(1, PERMITTED), z.string().regex(/^([1-9]\d?|100)%$/, PERMITTED)],
        PERMITTED,
      )
      .meta({ description: 'A number of pods, or a percentage of the replicas, rounded up.' }),
    window: duration.prefault('10m').meta({ description: 'Duration of the window.' }),
  }),
  'window',
);

/** A pause is a stop, and no part of the policy. */
export const PAUSE_INSTEAD =
  "write mode: enforce, and run taintward pause CLUSTER --for 4h --reason 'REASON'";

const policySettings = inMs(
  settings({
    mode: z
      .enum(['observe', 'enforce'], {
        error: ({ input }) =>
          input === 'paused' ? `can't be paused: ${PAUSE_INSTEAD}` : 'must be observe or enforce',
      })
      .meta({
        description:
          'observe: Taintward decides and logs, and evicts no pod. enforce: Taintward evicts pods.',
      }),
    guard: z
      .codec(z.union([OFF, guard], LIMIT).prefault({}), z.custom<z.output<typeof guard>>(), {
        decode: (written) => (written === 'off' ? { dryRun: false } : written),
        encode: (read) => read,
      })
      .meta({
        description:
          'Evictions are held while at least that percentage and that number of nodes are affected; off: never.',
      }),
    evictionRate: perSecond.exactOptional().meta({
      description:
        'Maximum number of pods evicted per second in the cluster, from 0.001 to 1000000; default: no limit.',
    }),
    maxEvictionsPerWorkload: maxEvictionsPerWorkload.exactOptional().meta({
      description: 'Maximum number of pods of one workload evicted within a window; default: no limit.',
    }),
    releaseRate: perSecond.prefault(50).meta({
      description:
        'Maximum number of pods evicted per second when held evictions are released, from 0.001 to 1000000.',
    }),
    exclude: orNone(z.array(selection, 'must be a list of entries to exclude'), []).meta({
      description: 'Pods that are never evicted: those that match all conditions of an entry.',
    }),
    include: orNone(listOf(selection, 'entries to include'), []).meta({
      description:
        'If set, only pods that match an entry are evicted. An entry whose until has passed matches no pod.',
    }),
    method: z.enum(['delete', 'evict'], 'must be delete or evict').prefault('delete').meta({
      description:
        'delete: deletes pods, as the built-in controller does. evict: uses the Eviction API, which respects disruption budgets.',
    }),
    evict: evict.exactOptional().meta({
      description: 'With method evict: how long blocked evictions are retried, and what happens then.',
    }),
    tolerationSecondsOverrides: orNone(
      z.record(byTaintKey, z.int(SECONDS).min(0, SECONDS), 'must be a mapping of keys of taints to seconds'),
      {},
    ).meta({
      description:
        'Seconds by taint key. They replace tolerationSeconds of pods, and apply to pods without a toleration. Pods that tolerate the taint without limit stay.',
    }),
    requireExpiredLease: trueOrFalse.prefault(true).meta({
      description: 'Pods stay on an unreachable node while the node renews its Lease, unless this is false.',
    }),
    treatAsNoExecute: orNone(z.array(taintKey, 'must be a list of keys of taints'), []).meta({
      description: 'NoSchedule taints with one of these exact keys are treated as NoExecute.',
    }),
    giveUpAfter: duration.prefault('4d').meta({
      description:
        'How long a failing eviction is retried before it is recorded as failed. Time during which it is held does not count.',
    }),
  }),
  'giveUpAfter',
).refine(({ method, evict }) => evict === undefined || method === 'evict', {
  path: ['evict'],
  error: 'needs method: evict',
});

const EVICT_DEFAULTS = z.decode(evict, {});

/**
 * `delete`, as the built-in controller does, or the Eviction API, which respects disruption budgets; after
 * `timeoutMs`, as `onTimeout` defines.
 */
export type Method = { readonly kind: 'delete' } | ({ readonly kind: 'evict' } & z.output<typeof evict>);

/** A cluster's policy, as read from its document. */
export type Policy = Omit<Settings<z.output<typeof policySettings>>, 'method' | 'evict'> & {
  readonly method: Method;
};

/** Codec of a policy document, as plain values, and its policy. */
export const policyDocument = z.codec(policySettings, z.custom<Policy>(), {
  decode: ({ evict: evicting = EVICT_DEFAULTS, method, ...rest }) =>
    ({ ...rest, method: method === 'evict' ? { kind: method, ...evicting } : { kind: method } }) as Policy,
  encode: ({ method: { kind, ...evicting }, ...rest }) =>
    ({
      ...rest,
      method: kind,
      ...(Object.keys(evicting).length === 0 ? {} : { evict: evicting }),
    }) as never,
});

/** The policy of a real cluster that has no policy of its own. */
export const DEFAULT_POLICY: Policy = z.decode(policyDocument, { mode: 'observe' });

/**
 * The mode of a cluster.
 * - `observe`: evictions are decided, recorded, and reported, and no pod is marked or deleted.
 * - `enforce`: pods are evicted.
 */
export type Mode = Policy['mode'];

export type GuardPolicy = Policy['guard'];

/** Number of nodes that may be affected at the same time before evictions are held. */
export type Threshold = NonNullable<GuardPolicy['cluster']>;

/** Evictions that meet all of these conditions. */
export type Selection = Policy['exclude'][number];

export interface OperatorAction {
  readonly actor: string;
  readonly at: EpochMs;
  readonly reason: string;
}

/** A stop of evictions, in one cluster or in all clusters. */
export interface Stop extends OperatorAction {
  readonly scope: 'cluster' | 'fleet';
  /** Absent: the stop of all clusters. */
  readonly id?: string;
  /** Absent: until an operator resumes evictions. */
  readonly until?: EpochMs;
}

/** An operator's hold that keeps a pod, or all pods of its target, from being evicted. */
export interface Hold extends OperatorAction {
  readonly id: string;
  readonly target: HoldTarget;
  readonly until?: EpochMs;
}

export type HoldTarget =
  | { readonly kind: 'pod'; readonly namespace: string; readonly name: string; readonly uid?: PodUid }
  /** The controller that the pods' owner references name, or the Deployment or CronJob behind it. */
  | { readonly kind: 'workload'; readonly namespace: string; readonly owner: Owner }
  | { readonly kind: 'node'; readonly node: NodeName }
  | { readonly kind: 'namespace'; readonly namespace: string }
  /** Absent namespace: pods of all. */
  | { readonly kind: 'labels'; readonly labels: LabelSelector; readonly namespace?: string }
  | { readonly kind: 'zone'; readonly zone: string };

/** A trip of the guard: the guard holds evictions. */
export interface Trip {
  readonly scope: 'cluster' | 'zone' | 'customTaints';
  /** With scope `zone`. */
  readonly zone?: string;
  readonly trippedAt: EpochMs;
  /** Number of nodes that were affected at the trip, and the number of all nodes. */
  readonly nodes: number;
  readonly outOf: number;
}

/**
 * An operator released it at `upTo` affected nodes. It holds nothing, and these nodes alone do not trip the guard
 * again.
 */
export interface ReleasedTrip extends Trip {
  readonly upTo: number;
}

/** An operator released it, and no relay has counted the affected nodes yet. It holds nothing. */
export interface FreshRelease extends Trip {
  readonly releasedAt: EpochMs;
}

/** A cluster's rules at one time. Together with the nodes' taints, they decide all evictions. */
export interface Rules {
  readonly policy: Policy;
  /** Grows with each control of the cluster or of all, so that even one that is canceled immediately is noticed. */
  readonly ordersRevision: number;
  /** Grows with each change of the policy; 0: it was never set. */
  readonly policyRevision: number;
  readonly stops: readonly Stop[];
  readonly holds: readonly Hold[];
  readonly trips: readonly Trip[];
  /** Grows with each trip and release. */
  readonly guardRevision: number;
  readonly matching: MatchOptions;
}
