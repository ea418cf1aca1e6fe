import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { GuardPolicy, Threshold, Trip } from '#shared/eviction/policy.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Accuse, Bench } from './judge.ts';
import { type LiveCluster, zoneOf } from './live-cluster.ts';
import { type EvictedPod, isHeldBy, policyOf } from './naive-rules.ts';
import type { Ruling } from './simulated-rules-store.ts';
import { DOWN_KEYS } from './truth.ts';

const MINUTE_MS = 60_000;
/** The time for which fewer than half must be down before the guard resets automatically. */
const CALM_MS = 5 * MINUTE_MS;
/** The interval at which a relay checks whether the guard may reset. */
const REVIEW_MS = 10_000;
/** The time after which written rules are in force for each mark and deletion. */
const IN_FORCE_MS = 1_000;
/** The time after which a relay receives changed rules. */
const RULES_RECEIVED_MS = 4_500;
/** The guard may have missed a state that lasted for a shorter time. */
const BRIEF_MS = 15_000;

/** A count of the nodes of a cluster, or of one of its zones, that are down. */
interface Tally {
  readonly down: number;
  readonly outOf: number;
}

/**
 * The state from a given time on. A joining node is down, and does not count until it was up. A relay that did not see the node
 * join counts it.
 */
interface Moment {
  readonly at: EpochMs;
  /** The counts without joining nodes, and with them. */
  readonly least: Tally;
  readonly most: Tally;
}

/** A state, evaluated by the policy. */
interface Found extends Moment {
  readonly isTooMany: boolean;
  readonly mayBeTooMany: boolean;
  /** Fewer than half of the nodes that would be too many are down. */
  readonly isCalm: boolean;
  readonly mayBeCalm: boolean;
}

/** A cluster, or one of its zones, that its guard watches: its past states, and the resulting requirements for the guard. */
interface Scope {
  readonly zone: string | undefined;
  readonly past: Found[];
  /**
   * The crossing since which too many nodes have been down without a break; absent: too few are down, or a user released the
   * guard.
   */
  tooMany?: Crossing | undefined;
  /** The time since which fewer than half have been down without a break. */
  calmSince?: EpochMs | undefined;
  /** The time when a user released the guard; absent: the release no longer counts. */
  releasedAt?: EpochMs | undefined;
}

/** The crossing of a threshold. */
interface Crossing {
  readonly at: EpochMs;
  /** The state of the node that crossed it, by its number in the truth; absent: a policy change crossed it. */
  readonly by: number | undefined;
  /** True if the guard has tripped since. */
  held: boolean;
}

/** The state of a node, as far as it concerns the guard. */
interface DownNodes {
  readonly isDown: boolean;
  readonly wasUp: boolean;
  readonly zone: string;
}

/** The time for which a node had a NoExecute taint of a node controller. */
interface Spell {
  readonly node: NodeName;
  readonly from: EpochMs;
  /** The states that added and removed the taint; `until` absent: the node still has it. */
  readonly since: number;
  until?: { readonly state: number; readonly at: EpochMs };
}

interface Watched {
  readonly cluster: LiveCluster;
  readonly nodes: Map<NodeName, DownNodes>;
  readonly scopes: readonly Scope[];
  readonly spells: Spell[];
  policy: GuardPolicy;
  policyAt: EpochMs;
}

/**
 * P9 for the guard, judged by the nodes that were really down in each cluster and zone at each time, and by the policy's table.
 * The judge ignores the guard's own conclusions, except for the time of a trip and users' releases.
 */
export class GuardJudge {
  readonly #bench: Bench;
  readonly #accuse: Accuse;
  readonly #watched = new Map<ClusterName, Watched>();

  constructor(bench: Bench, accuse: Accuse) {
    this.#bench = bench;
    this.#accuse = accuse;
    const { rulesStore, clusters } = bench;
    if (!rulesStore) return;
    const zones = [undefined, 'a', 'b'];
    for (const cluster of clusters) {
      this.#watched.set(cluster.name, {
        cluster,
        nodes: new Map(),
        scopes: zones.map((zone) => ({ zone, past: [] })),
        spells: [],
        policy: policyOf(rulesStore.now(cluster.name)).guard,
        policyAt: bench.clock.now(),
      });
    }
  }

  /** Notes the state of a node; `taints`: `undefined` = the node was deleted. */
  nodeIs(cluster: ClusterName, node: NodeName, taints: readonly LiveTaint[] | undefined): void {
    const watched = this.#watched.get(cluster);
    const state = watched?.cluster.truth.stateOf(node);
    if (!watched || state === undefined) return;
    const known = taints?.filter(({ key }) => DOWN_KEYS.includes(key)) ?? [];
    const isDown = known.some(({ effect }) => effect !== 'PreferNoSchedule');
    const wasUp = !isDown || (watched.nodes.get(node)?.wasUp ?? false);
    if (taints) watched.nodes.set(node, { isDown, wasUp, zone: zoneOf(node) });
    else watched.nodes.delete(node);
    // A deleted node keeps its last taints.
    if (taints)
      this.#noteSpell(
        watched,
        node,
        state,
        known.some(({ effect }) => effect === 'NoExecute'),
      );
    for (const scope of watched.scopes) this.#review(watched, scope, state);
  }

  #noteSpell({ spells }: Watched, node: NodeName, state: number, has: boolean): void {
    const last = spells.findLast((each) => each.node === node);
    const at = this.#bench.clock.now();
    if (has && (!last || last.until)) spells.push({ node, from: at, since: state });
    if (!has && last && !last.until) last.until = { state, at };
  }

  /** The rules of a cluster were written. */
  written(cluster: ClusterName, { at, storedRules, guardAct }: Ruling, before: StoredRules): void {
    const watched = this.#watched.get(cluster);
    if (!watched) return;
    const { guard } = policyOf(storedRules);
    if (guard !== watched.policy) {
      watched.policy = guard;
      watched.policyAt = at;
      for (const scope of watched.scopes) this.#review(watched, scope, undefined);
    }
    if (guardAct === undefined) return;
    for (const scope of watched.scopes) {
      const [was, current] = [tripOf(scope, before), tripOf(scope, storedRules)];
      const touched = guardAct === 'release-guard' && (was || releasedIn(scope, before));
      if (touched) {
        scope.releasedAt = at;
        scope.tooMany = undefined;
      } else if (was && !current) {
        this.#judgeEnd(watched, scope);
      } else if (current && current.trippedAt !== was?.trippedAt) {
        this.#judgeTrip(watched, scope, current);
      }
      if (current && scope.tooMany) scope.tooMany.held = true;
    }
  }

  /** Evaluates a scope after a change of nodes or of the policy. `state`: the state of the changed node. */
  #review(watched: Watched, scope: Scope, state: number | undefined): void {
    const { cluster, policy } = watched;
    const at = this.#bench.clock.now();
    this.#forgetRelease(watched, scope, at);
    const moment = found(scope.zone, policy, { at, ...this.#count(watched, scope.zone) });
    scope.past.push(moment);
    scope.calmSince = moment.isCalm ? (scope.calmSince ?? at) : undefined;
    const isNews = moment.isTooMany && this.#exceedsRelease(watched, scope, moment);
    if (scope.tooMany && !isNews) this.#judgeCrossing(watched, scope);
    if (!isNews) scope.tooMany = undefined;
    const { rulesStore } = this.#bench;
    const trip = rulesStore && tripOf(scope, rulesStore.now(cluster.name));
    if (isNews) scope.tooMany ??= { at, by: state, held: trip !== undefined };
  }

  #count({ nodes }: Watched, zone: string | undefined): Omit<Moment, 'at'> {
    const all = [...nodes.values()].filter((node) => zone === undefined || node.zone === zone);
    return { least: tallyOf(all.filter(({ wasUp }) => wasUp)), most: tallyOf(all) };
  }

  /** Forgets a release once the scope was calm for as long as the guard needs to see it. */
  #forgetRelease(watched: Watched, scope: Scope, now: EpochMs): void {
    const { releasedAt, calmSince } = scope;
    if (releasedAt === undefined || calmSince === undefined) return;
    if (now > this.#calmBy(watched, Math.max(releasedAt, calmSince))) scope.releasedAt = undefined;
  }

  /** Returns the time by which a guard has seen that a scope was calm since then. */
  #calmBy({ cluster }: Watched, since: EpochMs): EpochMs {
    const { disturbances, weather } = this.#bench;
    const from = since + weather.climate.watchLagMs;
    return disturbances.quietBy(cluster.name, from, CALM_MS) + REVIEW_MS;
  }

  /** Reports whether more nodes are down than the user may have seen when releasing the guard. */
  #exceedsRelease({ cluster }: Watched, { releasedAt, past }: Scope, { at, least }: Moment): boolean {
    const { disturbances, weather } = this.#bench;
    if (releasedAt === undefined) return true;
    const { watchLagMs } = weather.climate;
    const notedBy = disturbances.excusedUntil(cluster.name, releasedAt + RULES_RECEIVED_MS + watchLagMs);
    if (at <= notedBy) return false;
    const seen = during(past, releasedAt - watchLagMs - BRIEF_MS, notedBy);
    return least.down > Math.max(0, ...seen.map(({ most }) => most.down));
  }

  /** Returns the latest time by which a guard trips after a crossing. */
  #heldBy({ cluster }: Watched, { at, by: holder }: Crossing): EpochMs {
    const { disturbances, weather } = this.#bench;
    const noticedMs = holder === undefined ? RULES_RECEIVED_MS : weather.climate.watchLagMs;
    return disturbances.excusedUntil(cluster.name, at + noticedMs);
  }

  /** Judges a crossing once too many nodes are no longer down, or at the end. */
  #judgeCrossing(watched: Watched, scope: Scope): void {
    const { tooMany, past } = scope;
    if (!tooMany || tooMany.held || this.#bench.clock.now() <= this.#heldBy(watched, tooMany)) return;
    tooMany.held = true;
    const { down, outOf } = past.findLast(({ isTooMany }) => isTooMany)?.least ?? { down: 0, outOf: 0 };
    this.#accuse(
      `P9: the guard held nothing in ${nameOf(watched, scope)} when ${down} of ${outOf} were down`,
    );
  }

  /** Judges a trip of the guard. */
  #judgeTrip(watched: Watched, scope: Scope, { trippedAt }: Trip): void {
    const { cluster, policyAt } = watched;
    const { disturbances, weather } = this.#bench;
    const from = trippedAt - weather.climate.watchLagMs - BRIEF_MS;
    if (policyAt >= from || !disturbances.isQuiet(cluster.name, from, trippedAt)) return;
    if (during(scope.past, from, trippedAt).some(({ mayBeTooMany }) => mayBeTooMany)) return;
    this.#accuse(`P9: the guard tripped in ${nameOf(watched, scope)} although too few nodes were down`);
  }

  /** Judges an automatic reset of the guard. */
  #judgeEnd(watched: Watched, scope: Scope): void {
    const { cluster, policy, policyAt } = watched;
    const { clock, disturbances, weather } = this.#bench;
    const now = clock.now();
    this.#judgeCalm(watched, scope);
    const noticedMs = weather.climate.watchLagMs + BRIEF_MS;
    const [from, to] = [now - CALM_MS + noticedMs, now - noticedMs];
    const isWatched = (scope.zone === undefined ? policy.cluster : policy.zone) && !policy.dryRun;
    if (!isWatched || policyAt >= now - CALM_MS - noticedMs) return;
    if (!disturbances.isQuiet(cluster.name, now - CALM_MS, now)) return;
    const restless = lasting(scope.past, from, to).some(({ mayBeCalm, ms }) => !mayBeCalm && ms > BRIEF_MS);
    if (restless) this.#accuse(`P9: the guard let go in ${nameOf(watched, scope)} although it was not calm`);
  }

  /** Accuses a guard that still holds pods after enough calm time. */
  #judgeCalm(watched: Watched, scope: Scope): void {
    const { clock, rulesStore } = this.#bench;
    const { calmSince } = scope;
    const trip = rulesStore && tripOf(scope, rulesStore.now(watched.cluster.name));
    if (!trip || calmSince === undefined) return;
    const delayMs =
      clock.now() - this.#calmBy(watched, Math.max(calmSince, watched.policyAt + RULES_RECEIVED_MS));
    if (delayMs > 0) this.#accuse(`P9: the guard held in ${nameOf(watched, scope)} ${delayMs} ms too long`);
  }

  /** Reports whether a pod must not be evicted because too many nodes are down. `seen`: the state of its node in the decision. */
  forbids(cluster: ClusterName, pod: EvictedPod, seen: number, sentAt: EpochMs): boolean {
    const watched = this.#watched.get(cluster);
    const storedRules = this.#bench.rulesStore?.now(cluster);
    if (!watched || !storedRules || !DOWN_KEYS.includes(pod.key)) return false;
    return watched.scopes.some((scope) => {
      const { tooMany, zone } = scope;
      if (!tooMany) return false;
      // Without a stored trip, assume that the guard trips now.
      const trippedAt = tripOf(scope, storedRules)?.trippedAt ?? sentAt;
      const trip =
        zone === undefined
          ? ({ scope: 'cluster', trippedAt } as const)
          : ({ scope: 'zone', zone, trippedAt } as const);
      if (!isHeldBy(trip, pod)) return false;
      // No relay saw taints set after the node that crossed the threshold before the guard tripped.
      if (tooMany.by !== undefined && this.#taintedFrom(watched, pod.node, seen) >= tooMany.by) return true;
      return sentAt - IN_FORCE_MS > this.#heldBy(watched, tooMany);
    });
  }

  /**
   * Returns the state in which a node got its current taint. If the relay may have missed a gap in the taint, returns the state
   * before that gap.
   */
  #taintedFrom({ cluster, spells }: Watched, node: NodeName, seen: number): number {
    const { disturbances, weather } = this.#bench;
    const past = spells.filter((each) => each.node === node && each.since <= seen);
    let first = past.pop();
    for (let before = past.pop(); first && before?.until; before = past.pop()) {
      const seenBy = disturbances.excusedUntil(cluster.name, before.until.at + weather.climate.watchLagMs);
      if (first.from > seenBy) break;
      first = before;
    }
    return first?.since ?? 0;
  }

  /** Compares the current state with the requirements. */
  audit(): void {
    for (const watched of this.#watched.values()) {
      for (const scope of watched.scopes) {
        this.#judgeCrossing(watched, scope);
        this.#judgeCalm(watched, scope);
      }
    }
  }
}

const nameOf = ({ cluster }: Watched, { zone }: Scope): string =>
  zone === undefined ? cluster.name : `zone ${zone} of ${cluster.name}`;

const isOf =
  ({ zone }: Scope) =>
  (trip: Trip): boolean =>
    trip.scope === (zone === undefined ? 'cluster' : 'zone') && trip.zone === zone;

const tripOf = (scope: Scope, { guard }: StoredRules): Trip | undefined => guard.trips.find(isOf(scope));

const releasedIn = (scope: Scope, { guard }: StoredRules): boolean =>
  guard.released?.some(isOf(scope)) ?? false;

const tallyOf = (nodes: readonly DownNodes[]): Tally => ({
  down: nodes.filter(({ isDown }) => isDown).length,
  outOf: nodes.length,
});

/**
 * Evaluates a state by the guard's table. Percentage and number must both be reached; in a cluster, all of its nodes suffice,
 * however few.
 */
function found(zone: string | undefined, policy: GuardPolicy, moment: Moment): Found {
  const threshold: Threshold | undefined = zone === undefined ? policy.cluster : policy.zone;
  const { least, most } = moment;
  const isEnough = (down: number, outOf: number) => {
    if (!threshold || policy.dryRun || down === 0) return false;
    const reached = down * 100 >= threshold.percent * outOf && down >= threshold.nodes;
    return reached || (zone === undefined && down >= outOf);
  };
  return {
    ...moment,
    isTooMany: isEnough(least.down, least.outOf),
    mayBeTooMany: isEnough(most.down, most.outOf),
    isCalm: !isEnough(2 * most.down, least.outOf),
    mayBeCalm: !isEnough(2 * least.down, most.outOf),
  };
}

/** Returns all states between these times. */
const during = (past: readonly Found[], from: EpochMs, to: EpochMs): readonly Found[] =>
  past.filter(({ at }, index) => at <= to && (past[index + 1]?.at ?? Infinity) >= from);

/** Returns the states between these times, each with its uninterrupted duration. */
function lasting(past: readonly Found[], from: EpochMs, to: EpochMs) {
  const stretches: { readonly mayBeCalm: boolean; ms: number }[] = [];
  const moments = during(past, from, to);
  for (const [index, { at, mayBeCalm }] of moments.entries()) {
    const ms = Math.min(to, moments[index + 1]?.at ?? to) - Math.max(from, at);
    const last = stretches.at(-1);
    if (last?.mayBeCalm === mayBeCalm) last.ms += ms;
    else stretches.push({ mayBeCalm, ms });
  }
  return stretches;
}
