import type { MatchOptions } from '#shared/taints/taint.ts';
import type { EpochMs, NodeName, PodUid } from './identity.ts';

/**
 * What a cluster's owner wants of us there.
 * - `observe`: everything is decided, recorded and told, and no pod is marked or deleted.
 * - `enforce`: pods are evicted.
 * - `paused`: as `enforce`, but nothing is marked or deleted until `pausedUntil`, or for as long as it stands.
 */
export type Mode = 'observe' | 'enforce' | 'paused';

/** The policy document of a cluster, read. */
export interface Policy {
  readonly mode: Mode;
  /** With `paused`: from then on it is `enforce`. */
  readonly pausedUntil?: EpochMs;
  readonly guard: GuardPolicy;
  /** Pods per second that are evicted in the whole cluster; absent: no limit. */
  readonly rate?: number;
  /** Pods per second that go when what was held is let go. */
  readonly drain: number;
  /** What is left alone. */
  readonly exclude: readonly Selection[];
  /** When not empty, nothing else is evicted. One that has expired selects nothing any more. */
  readonly only: readonly Selection[];
  readonly method: Method;
  /** For so long pods tolerate a taint of this key, in place of what they say themselves; who tolerates it for ever still does. */
  readonly tolerationSeconds: Readonly<Record<string, number>>;
  /** `false`: pods of a node that is called unreachable go although it renews its Lease. Absent: they do not. */
  readonly requireExpiredLease?: false;
  /** NoSchedule taints of these keys count as NoExecute. */
  readonly virtualKeys: readonly string[];
  /** An eviction that fails for so long is given up. */
  readonly giveUpAfterMs: number;
}

/** Some evictions: those that meet all that is said here. */
export interface Selection {
  readonly namespaces?: readonly string[];
  readonly labels?: LabelSelector;
  /** Keys of taints. */
  readonly taints?: readonly string[];
  /** It counts until then. */
  readonly until?: EpochMs;
}

/** `meta/v1.LabelSelector`. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly LabelExpression[];
}

export interface LabelExpression {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values?: readonly string[];
}

/** How many of the nodes may be affected at a time before evictions are held. */
export interface Threshold {
  /** Of the nodes concerned, 0 to 100. */
  readonly percent: number;
  /** And at least so many. */
  readonly nodes: number;
}

/** When so much goes wrong at a time that it is more likely a mistake than dying nodes. */
export interface GuardPolicy {
  /** Whether it only tells that it would have tripped. */
  readonly shadow: boolean;
  /** Of all nodes, those that are down now; absent: not watched. */
  readonly cluster?: Threshold;
  /** Of a zone's nodes, those that are down now. */
  readonly zone?: Threshold;
  /** Of all nodes, those that got a NoExecute taint from somebody else than the node controller within `withinMs`. */
  readonly people?: Threshold & { readonly withinMs: number };
}

/**
 * How a pod is evicted: `delete`, as the built-in controller does, or by the Eviction API, which heeds disruption budgets;
 * what a budget still forbids after `deadlineMs` is then deleted, or never.
 */
export type Method =
  | { readonly kind: 'delete' }
  | { readonly kind: 'evict'; readonly deadlineMs: number; readonly afterDeadline: 'delete' | 'never' };

/** Four days. */
const GIVE_UP_AFTER_MS = 4 * 24 * 3_600_000;

/** What holds for a real cluster of which nobody has said anything. */
export const DEFAULT_POLICY: Policy = {
  mode: 'observe',
  guard: {
    shadow: false,
    cluster: { percent: 20, nodes: 3 },
    zone: { percent: 55, nodes: 3 },
    people: { percent: 30, nodes: 5, withinMs: 600_000 },
  },
  drain: 50,
  exclude: [],
  only: [],
  method: { kind: 'delete' },
  tolerationSeconds: {},
  virtualKeys: [],
  giveUpAfterMs: GIVE_UP_AFTER_MS,
};

/** Who did something by hand, when, and why. */
export interface Act {
  readonly who: string;
  readonly at: EpochMs;
  readonly why: string;
}

/** Evictions are stopped: in one cluster, or in all of them. */
export interface Stop extends Act {
  readonly scope: 'cluster' | 'fleet';
  /** Absent: until somebody resumes them. */
  readonly until?: EpochMs;
}

/** Somebody keeps a pod, the pods of a workload, or those of a node from being evicted. */
export interface Hold extends Act {
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
