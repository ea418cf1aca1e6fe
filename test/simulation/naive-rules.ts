import type { PodTraits } from '#shared/eviction/facts.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import {
  DEFAULT_POLICY,
  type Hold,
  type Policy,
  type Selection,
  type Trip,
} from '#shared/eviction/policy.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { endsOf, type SimulatedRulesStore } from './simulated-rules-store.ts';
import { DOWN_KEYS } from './truth.ts';

/** A pod that is evicted because of one taint. */
export interface EvictedPod {
  readonly pod: Pick<LivePod, 'uid' | 'namespace' | 'name'> & PodTraits;
  readonly node: NodeName;
  /** The zone of the node, while the node exists. */
  readonly zone: string | undefined;
  /** The time when a node controller found the node down, while the node exists. */
  readonly downSince: EpochMs | undefined;
  /** The key of the taint. */
  readonly key: string;
}

export const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
const QUARTER_HOUR_MS = 15 * 60_000;

/**
 * The prohibitions of a cluster's rules in their plainest form, separate from the service's own code. They use everything that
 * was ever written.
 */
export class NaiveRules {
  readonly #rulesStore: SimulatedRulesStore;

  constructor(rulesStore: SimulatedRulesStore) {
    this.#rulesStore = rulesStore;
  }

  /** Reports whether every set of rules in force between these times forbids the pod's eviction. */
  forbidsThroughout(cluster: ClusterName, pod: EvictedPod, from: EpochMs, to: EpochMs): boolean {
    const written = this.#inForce(cluster, from, to);
    const moments = [from, to, ...this.#turns(written, from, to)];
    return written.every((storedRules) => moments.every((at) => forbids(storedRules, pod, at)));
  }

  /**
   * Returns the last time between these two at which a pod's eviction was forbidden; `Infinity`: it still is; `undefined`: it
   * never was.
   */
  lastForbidden(cluster: ClusterName, pod: EvictedPod, from: EpochMs, to: EpochMs): EpochMs | undefined {
    return this.#lastEnd(cluster, from, to, (storedRules, at) => forbids(storedRules, pod, at));
  }

  /** Returns the end of the last period between these times in which the condition held; `Infinity`: it still holds. */
  #lastEnd(
    cluster: ClusterName,
    from: EpochMs,
    to: EpochMs,
    isSo: (storedRules: StoredRules, at: EpochMs) => boolean,
  ): EpochMs | undefined {
    if (from > to) return undefined;
    const turns = this.#turns(this.#inForce(cluster, from, to), from, to);
    const moments = [from, ...turns, ...this.#writes(cluster, from, to)].sort((a, b) => a - b);
    const last = moments.findLastIndex((at) => isSo(this.#at(cluster, at), at));
    return last < 0 ? undefined : (moments[last + 1] ?? Infinity);
  }

  /** Returns the policies that were in force for a while between these times. */
  policies(cluster: ClusterName, from: EpochMs, to: EpochMs): readonly Policy[] {
    return this.#inForce(cluster, from, to).map(policyOf);
  }

  /** Returns all rules that were in force for a while between these times. */
  #inForce(cluster: ClusterName, from: EpochMs, to: EpochMs): readonly StoredRules[] {
    const history = this.#rulesStore.history(cluster);
    return history
      .filter(({ at }, index) => at <= to && (history[index + 1]?.at ?? Infinity) >= from)
      .map(({ storedRules }) => storedRules);
  }

  #at(cluster: ClusterName, at: EpochMs): StoredRules {
    const history = this.#rulesStore.history(cluster);
    // Before the first entry, the same rules applied as with it.
    const found = history.findLast((each) => each.at <= at) ?? history[0];
    if (!found) throw new Error(`nobody knows of ${cluster}`);
    return found.storedRules;
  }

  #writes(cluster: ClusterName, from: EpochMs, to: EpochMs): readonly EpochMs[] {
    const history = this.#rulesStore.history(cluster);
    return history.map(({ at }) => at).filter((at) => from < at && at <= to);
  }

  /** Returns the times at which a control expired. */
  #turns(written: readonly StoredRules[], from: EpochMs, to: EpochMs): readonly EpochMs[] {
    const ends = written.flatMap(endsOf);
    return [...new Set(ends)].filter((at) => from < at && at <= to);
  }
}

export const policyOf = ({ orders }: StoredRules): Policy => orders.policy?.read ?? DEFAULT_POLICY;

/** Reports whether no eviction at all is allowed. */
function isStopped(storedRules: StoredRules, at: EpochMs): boolean {
  const { fleetStop, orders } = storedRules;
  const stops = fleetStop ? [fleetStop, ...orders.stops] : orders.stops;
  return policyOf(storedRules).mode === 'observe' || stops.some(({ until = Infinity }) => at < until);
}

function forbids(storedRules: StoredRules, pod: EvictedPod, at: EpochMs): boolean {
  if (isStopped(storedRules, at)) return true;
  const { exclude, include } = policyOf(storedRules);
  const stands = ({ until = Infinity }: { readonly until?: EpochMs }) => at < until;
  if (storedRules.orders.holds.some((hold) => stands(hold) && isHeld(hold, pod))) return true;
  if (exclude.some((each) => stands(each) && isNamed(each, pod))) return true;
  if (include.length > 0 && !include.some((each) => stands(each) && isNamed(each, pod))) return true;
  return storedRules.guard.trips.some((trip) => isHeldBy(trip, pod));
}

function isHeld({ target }: Hold, { pod, node, zone, key }: EvictedPod): boolean {
  if (target.kind === 'zone') return zone === undefined || target.zone === zone;
  if (target.kind === 'labels') return isNamed(target, { pod, key });
  if (target.kind === 'node') return target.node === node;
  if (target.namespace !== pod.namespace) return false;
  if (target.kind === 'namespace') return true;
  if (target.kind === 'pod') return target.name === pod.name && [undefined, pod.uid].includes(target.uid);
  return target.owner.kind === pod.owner?.kind && target.owner.name === pod.owner.name;
}

/** Reports whether a selection matches; supports the label selectors that owners of the simulated clusters use. */
function isNamed(selection: Selection, { pod, key }: Pick<EvictedPod, 'pod' | 'key'>): boolean {
  const { namespaces, labels, annotations = {}, ownerKinds, priorityClassNames, taints } = selection;
  const { matchLabels = {}, matchExpressions = [] } = labels ?? {};
  if (matchExpressions.some(({ operator }) => operator !== 'NotIn'))
    throw new Error('not a selector of ours');
  const has = (name: string) => pod.labels?.[name] ?? '';
  return (
    (!namespaces || namespaces.includes(pod.namespace)) &&
    (!taints || taints.includes(key)) &&
    (!ownerKinds || ownerKinds.includes(pod.owner?.kind ?? '')) &&
    (!priorityClassNames || priorityClassNames.includes(pod.priorityClassName ?? '')) &&
    Object.entries(annotations).every(([name, value]) => pod.annotations?.[name] === value) &&
    Object.entries(matchLabels).every(([name, value]) => has(name) === value) &&
    matchExpressions.every((each) => !each.values?.includes(has(each.key)))
  );
}

/** Reports whether a trip of the guard, if it exists, forbids a pod's eviction. */
export function isHeldBy(
  { scope, zone, trippedAt }: Pick<Trip, 'scope' | 'zone' | 'trippedAt'>,
  pod: EvictedPod,
): boolean {
  if (pod.key === OUT_OF_SERVICE) return false;
  const down = DOWN_KEYS.includes(pod.key);
  if (scope === 'customTaints') return !down;
  if (!down || (pod.downSince ?? Infinity) <= trippedAt - QUARTER_HOUR_MS) return false;
  return scope === 'cluster' || pod.zone === undefined || pod.zone === zone;
}
