import * as z from 'zod';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { duration } from '#shared/time/written.ts';
import type { NodeName, PodUid } from './identity.ts';
import { contradiction, type LabelSelector } from './label-selector.ts';
import { isPattern } from './namespace-pattern.ts';
import {
  byTaintKey,
  count,
  end,
  formerly,
  LIMIT,
  labelKey,
  labelValue,
  labelValues,
  listOf,
  namespace,
  OFF,
  orNone,
  orOff,
  percent,
  perSecond,
  readBy,
  settings,
  taintKeys,
  trueOrFalse,
  whenApplied,
} from './settings.ts';

/*
 * Every setting of a policy is declared here, once: what a document may say of it, its default, what it is for, and how it is read and
 * written. What a policy is and what is stored of one follow from that, and so do the schema for editors, the guide and the differences.
 */

const SECONDS = 'must be a whole number of seconds from 0 on';

const affected = (percentage: number, nodes: number) => ({
  percent: percent.prefault(percentage),
  nodes: count.prefault(nodes),
});

const guard = settings(
  {
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
      settings({ ...affected(30, 5), window: duration.prefault('10m') }, { window: 'withinMs' }),
    ).meta({
      description:
        'Limit for nodes with taints that Kubernetes does not set itself: percentage and number of nodes tainted within the window; or off.',
    }),
  },
  { dryRun: 'shadow', customTaints: 'people' },
);

const expression = settings({
  key: labelKey,
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist'], 'must be In, NotIn, Exists or DoesNotExist'),
  values: listOf(labelValue, 'values').exactOptional(),
}).refine(({ operator, values }) => (operator === 'In' || operator === 'NotIn') === (values !== undefined), {
  path: ['values'],
  error: 'must be a list with the operators In and NotIn, and left out with Exists and DoesNotExist',
});

const labelSelector = settings({
  matchLabels: labelValues.exactOptional(),
  matchExpressions: listOf(expression, 'expressions').exactOptional(),
}).refine(({ matchLabels, matchExpressions }) => matchLabels ?? matchExpressions, {
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

const writtenSelection = settings({
  namespaces: listOf(namespace, 'namespaces').exactOptional(),
  labels: labelSelector.exactOptional(),
  taints: taintKeys.exactOptional(),
  until: end('remove the entry, or write a time to come'),
}).refine(({ namespaces, labels, taints }) => namespaces ?? labels ?? taints, {
  error: 'must name namespaces, labels or taints, or it would be everything',
});

type WrittenSelection = z.output<typeof writtenSelection>;

/**
 * Patterns are stored apart from names. A release that knows none evicts nothing then, because the field is unknown to it; as
 * names they would match nothing there, and pods that are excluded would be evicted.
 */
type StoredSelection = WrittenSelection & { readonly namespacePatterns?: readonly string[] };

const storedSelection = (readBy(writtenSelection) as unknown as z.ZodObject).extend({
  namespacePatterns: z.array(z.string()).readonly().exactOptional(),
}) as unknown as z.ZodType<StoredSelection, StoredSelection>;

const selection = z.codec(writtenSelection, storedSelection, {
  decode: ({ namespaces = [], ...rest }) => ({
    ...rest,
    ...unlessEmpty(
      'namespaces',
      namespaces.filter((entry) => !isPattern(entry)),
    ),
    ...unlessEmpty('namespacePatterns', namespaces.filter(isPattern)),
  }),
  encode: ({ namespaces = [], namespacePatterns = [], ...rest }) => ({
    ...rest,
    ...unlessEmpty('namespaces', [...namespaces, ...namespacePatterns]),
  }),
});

function unlessEmpty<Name extends string>(
  name: Name,
  entries: readonly string[],
): { readonly [_ in Name]?: readonly string[] } {
  return entries.length === 0 ? {} : ({ [name]: entries } as { readonly [_ in Name]: readonly string[] });
}

const onTimeout = z
  .enum(['delete', 'fail'], 'must be delete or fail')
  .register(formerly, { names: new Map([['never', 'fail']]) });

const evict = settings(
  {
    timeout: duration.prefault('15m').meta({
      description:
        'How long a disruption budget, or an admission webhook or policy, may block the eviction of a pod.',
    }),
    onTimeout: z
      .codec(onTimeout, z.enum(['delete', 'never']), {
        decode: (written) => (written === 'fail' ? 'never' : written),
        encode: (read) => (read === 'never' ? 'fail' : read),
      })
      .prefault('delete')
      .meta({ description: 'Then: delete deletes the pod; fail records its eviction as failed.' }),
  },
  { timeout: 'deadlineMs', onTimeout: 'afterDeadline' },
);

const PERMITTED = 'must be a whole number from 1 on, or a whole percentage from 1% to 100%';

const maxEvictionsPerWorkload = settings(
  {
    count: z
      .union(
        [z.int(PERMITTED).min(1, PERMITTED), z.string().regex(/^([1-9]\d?|100)%$/, PERMITTED)],
        PERMITTED,
      )
      .meta({ description: 'A number of pods, or a percentage of the replicas, rounded up.' }),
    window: duration.prefault('10m').meta({ description: 'Duration of the window.' }),
  },
  { window: 'windowMs' },
);

const policySettings = settings(
  {
    mode: z.enum(['observe', 'enforce', 'paused'], 'must be observe, enforce or paused').meta({
      description:
        'observe: Taintward decides and logs, and evicts no pod. enforce: Taintward evicts pods. paused: Taintward evicts no pod for now.',
    }),
    pausedUntil: end('write mode: enforce, or a time to come').meta({
      description: 'With mode paused: the time at which the mode becomes enforce again.',
    }),
    guard: z
      .codec(z.union([OFF, guard], LIMIT).prefault({}), readBy(guard), {
        decode: (written) => (written === 'off' ? { shadow: false } : written),
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
    exclude: orNone(listOf(selection, 'entries to exclude'), []).meta({
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
    // Only what is said otherwise is stored: a release that does not know the setting would evict nothing.
    requireExpiredLease: z
      .codec(trueOrFalse, z.literal(false).optional(), {
        decode: (written) => (written ? undefined : written),
        encode: (read) => read ?? true,
      })
      .exactOptional()
      .meta({
        description:
          'Pods stay on an unreachable node while the node renews its Lease, unless this is false.',
      }),
    treatAsNoExecute: orNone(taintKeys, []).meta({
      description: 'NoSchedule taints with one of these exact keys are treated as NoExecute.',
    }),
    giveUpAfter: duration.prefault('4d').meta({
      description:
        'How long a failing eviction is retried before it is recorded as failed. Time during which it is held does not count.',
    }),
  },
  {
    evictionRate: 'rate',
    releaseRate: 'drain',
    include: 'only',
    tolerationSecondsOverrides: 'tolerationSeconds',
    treatAsNoExecute: 'virtualKeys',
    giveUpAfter: 'giveUpAfterMs',
  },
)
  .refine(({ mode, pausedUntil }) => pausedUntil === undefined || mode === 'paused', {
    path: ['pausedUntil'],
    error: 'needs mode: paused',
  })
  .refine(({ method, evict }) => evict === undefined || method === 'evict', {
    path: ['evict'],
    error: 'needs method: evict',
  });

const EVICT_DEFAULTS = z.decode(evict, {});

/**
 * How a pod is evicted: `delete`, as the built-in controller does, or by the Eviction API, which heeds disruption budgets;
 * what a budget still forbids after `deadlineMs` is then deleted, or never.
 */
export type Method = { readonly kind: 'delete' } | ({ readonly kind: 'evict' } & z.output<typeof evict>);

/** The policy document of a cluster, read. */
export type Policy = Omit<z.output<typeof policySettings>, 'method' | 'evict'> & { readonly method: Method };

const { evict: _, ...fields } = (readBy(policySettings) as unknown as z.ZodObject).shape;
const evicts = (readBy(evict) as unknown as z.ZodObject).shape;
const method = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('delete') }),
  z.strictObject({ kind: z.literal('evict'), ...evicts }),
]);

/** What is stored of a policy; it is strict, because a setting that this release does not know may forbid something. */
export const storedPolicy = z.strictObject({ ...fields, method }) as unknown as z.ZodType<Policy, Policy>;

/** A policy document as plain values, and the policy that it says. */
export const policyDocument = z.codec(policySettings, storedPolicy, {
  decode: ({ evict: evicting = EVICT_DEFAULTS, ...rest }): Policy => ({
    ...rest,
    method: rest.method === 'evict' ? { kind: rest.method, ...evicting } : { kind: rest.method },
  }),
  encode: ({ method: { kind, ...evicting }, ...rest }) => ({
    ...rest,
    method: kind,
    ...(Object.keys(evicting).length === 0 ? {} : { evict: evicting as z.output<typeof evict> }),
  }),
});

/** What holds for a real cluster of which nobody has said anything. */
export const DEFAULT_POLICY: Policy = z.decode(policyDocument, { mode: 'observe' });

/**
 * What a cluster's owner wants of us there.
 * - `observe`: everything is decided, recorded and told, and no pod is marked or deleted.
 * - `enforce`: pods are evicted.
 * - `paused`: as `enforce`, but nothing is marked or deleted until `pausedUntil`, or for as long as it stands.
 */
export type Mode = Policy['mode'];

/** When so much goes wrong at a time that it is more likely a mistake than dying nodes. */
export type GuardPolicy = Policy['guard'];

/** How many of the nodes may be affected at a time before evictions are held. */
export type Threshold = NonNullable<GuardPolicy['cluster']>;

/** Some evictions: those that meet all that is said here. */
export type Selection = Policy['exclude'][number];

/** Who did something by hand, when, and why. */
export interface OperatorAction {
  readonly who: string;
  readonly at: EpochMs;
  readonly why: string;
}

/** Evictions are stopped: in one cluster, or in all of them. */
export interface Stop extends OperatorAction {
  readonly scope: 'cluster' | 'fleet';
  /** Absent: until somebody resumes them. */
  readonly until?: EpochMs;
}

/** Somebody keeps a pod, the pods of a workload, or those of a node from being evicted. */
export interface Hold extends OperatorAction {
  readonly id: string;
  readonly target: HoldTarget;
  readonly until?: EpochMs;
}

export type HoldTarget =
  | { readonly kind: 'pod'; readonly namespace: string; readonly name: string; readonly uid?: PodUid }
  /** The controller that the pods' owner references name, or the Deployment or CronJob behind it. */
  | {
      readonly kind: 'workload';
      readonly namespace: string;
      readonly owner: { readonly kind: string; readonly name: string };
    }
  | { readonly kind: 'node'; readonly node: NodeName };

/** The guard holds evictions. */
export interface Trip {
  readonly scope: 'cluster' | 'zone' | 'people';
  /** With `zone`. */
  readonly zone?: string;
  readonly trippedAt: EpochMs;
  /** How many nodes were affected then, and out of how many. */
  readonly nodes: number;
  readonly outOf: number;
}

/** A trip that somebody released when `upTo` nodes were affected: it holds nothing, and by these alone there is no other. */
export interface ReleasedTrip extends Trip {
  readonly upTo: number;
}

/** A trip that somebody released: it holds nothing, and no relay has counted yet how many nodes were affected then. */
export interface FreshRelease extends Trip {
  readonly releasedAt: EpochMs;
}

/** All that governs a cluster at a moment beside its taints. */
export interface Rules {
  readonly policy: Policy;
  /** Grows with whatever operators say of the cluster, or of all, so that a word that was taken back at once is noticed, too. */
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
