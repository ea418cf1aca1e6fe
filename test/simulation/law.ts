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
import { endsOf, type SimulatedRulebook } from './simulated-rules-store.ts';
import { DOWN_KEYS } from './truth.ts';

/** A pod that one taint makes go. */
export interface Defendant {
  readonly pod: Pick<LivePod, 'uid' | 'namespace' | 'name' | 'owner' | 'labels'>;
  readonly node: NodeName;
  /** Of the node, while it is there. */
  readonly zone: string | undefined;
  /** When a node controller found the node down, while it is there. */
  readonly downSince: EpochMs | undefined;
  /** The taint's. */
  readonly key: string;
}

export const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
const QUARTER_HOUR_MS = 15 * 60_000;

/**
 * What the rules of a cluster forbid, in their plainest form, and kept apart from the service's own: by all that was ever
 * written.
 */
export class Law {
  readonly #rulesStore: SimulatedRulebook;

  constructor(rulesStore: SimulatedRulebook) {
    this.#rulesStore = rulesStore;
  }

  /** Whether a pod may not go by any rule that was in force at any time between these two. */
  forbidsThroughout(cluster: ClusterName, of: Defendant, from: EpochMs, to: EpochMs): boolean {
    const written = this.#inForce(cluster, from, to);
    const moments = [from, to, ...this.#turns(written, from, to)];
    return written.every((storedRules) => moments.every((at) => forbids(storedRules, of, at)));
  }

  /** Until when a pod was last kept from going between these two; `Infinity`: it still is; `undefined`: it never was. */
  lastForbidden(cluster: ClusterName, of: Defendant, from: EpochMs, to: EpochMs): EpochMs | undefined {
    return this.#lastEnd(cluster, from, to, (storedRules, at) => forbids(storedRules, of, at));
  }

  /** When that was last so between these two, up to when; `Infinity`: it still is. */
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

  /** The policies that were in force for a while between these two. */
  policies(cluster: ClusterName, from: EpochMs, to: EpochMs): readonly Policy[] {
    return this.#inForce(cluster, from, to).map(policyOf);
  }

  /** All that was in force for a while between these two. */
  #inForce(cluster: ClusterName, from: EpochMs, to: EpochMs): readonly StoredRules[] {
    const history = this.#rulesStore.history(cluster);
    return history
      .filter(({ at }, index) => at <= to && (history[index + 1]?.at ?? Infinity) >= from)
      .map(({ storedRules }) => storedRules);
  }

  #at(cluster: ClusterName, at: EpochMs): StoredRules {
    const history = this.#rulesStore.history(cluster);
    // Before the first word all was as it was with it.
    const found = history.findLast((each) => each.at <= at) ?? history[0];
    if (!found) throw new Error(`nobody knows of ${cluster}`);
    return found.storedRules;
  }

  #writes(cluster: ClusterName, from: EpochMs, to: EpochMs): readonly EpochMs[] {
    const history = this.#rulesStore.history(cluster);
    return history.map(({ at }) => at).filter((at) => from < at && at <= to);
  }

  /** Moments at which something ended by itself. */
  #turns(written: readonly StoredRules[], from: EpochMs, to: EpochMs): readonly EpochMs[] {
    const ends = written.flatMap(endsOf);
    return [...new Set(ends)].filter((at) => from < at && at <= to);
  }
}

export const policyOf = ({ orders }: StoredRules): Policy => orders.policy?.read ?? DEFAULT_POLICY;

/** Whether nothing at all may go. */
function isStopped(storedRules: StoredRules, at: EpochMs): boolean {
  const { mode, pausedUntil = Infinity } = policyOf(storedRules);
  const stops = [storedRules.fleetStop, storedRules.orders.stop].filter((stop) => stop !== undefined);
  return (
    mode === 'observe' ||
    (mode === 'paused' && at < pausedUntil) ||
    stops.some(({ until = Infinity }) => at < until)
  );
}

function forbids(storedRules: StoredRules, of: Defendant, at: EpochMs): boolean {
  if (isStopped(storedRules, at)) return true;
  const { exclude, only } = policyOf(storedRules);
  const stands = ({ until = Infinity }: { readonly until?: EpochMs }) => at < until;
  if (storedRules.orders.holds.some((hold) => stands(hold) && isHeld(hold, of))) return true;
  if (exclude.some((each) => stands(each) && isNamed(each, of))) return true;
  if (only.length > 0 && !only.some((each) => stands(each) && isNamed(each, of))) return true;
  return storedRules.guard.trips.some((trip) => isHeldBy(trip, of));
}

function isHeld({ target }: Hold, { pod, node }: Defendant): boolean {
  if (target.kind === 'node') return target.node === node;
  if (target.namespace !== pod.namespace) return false;
  if (target.kind === 'pod') return target.name === pod.name && [undefined, pod.uid].includes(target.uid);
  return target.owner.kind === pod.owner?.kind && target.owner.name === pod.owner.name;
}

/** Of label selectors those that the owners of the simulated clusters use. */
function isNamed({ namespaces, labels, taints }: Selection, { pod, key }: Defendant): boolean {
  const { matchLabels = {}, matchExpressions = [] } = labels ?? {};
  if (matchExpressions.some(({ operator }) => operator !== 'NotIn'))
    throw new Error('not a selector of ours');
  const has = (name: string) => pod.labels?.[name] ?? '';
  return (
    (!namespaces || namespaces.includes(pod.namespace)) &&
    (!taints || taints.includes(key)) &&
    Object.entries(matchLabels).every(([name, value]) => has(name) === value) &&
    matchExpressions.every((each) => !each.values?.includes(has(each.key)))
  );
}

/** Whether a trip of the guard, if it stands, keeps a pod from going. */
export function isHeldBy(
  { scope, zone, trippedAt }: Pick<Trip, 'scope' | 'zone' | 'trippedAt'>,
  of: Defendant,
): boolean {
  if (of.key === OUT_OF_SERVICE) return false;
  const down = DOWN_KEYS.includes(of.key);
  if (scope === 'people') return !down;
  if (!down || (of.downSince ?? Infinity) <= trippedAt - QUARTER_HOUR_MS) return false;
  return scope === 'cluster' || of.zone === undefined || of.zone === zone;
}
