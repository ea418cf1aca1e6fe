import type { PodUid } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { secondsBorne, type Taint, type Toleration } from '#test/naive/rule.ts';

/** A taint that may contain the time when it was set. */
export interface NaiveTaint extends Taint {
  readonly timeAdded?: EpochMs;
}

export interface NaivePod {
  readonly uid: PodUid;
  readonly node?: string | undefined;
  readonly terminating: boolean;
  readonly tolerations: readonly Toleration[];
}

/** Returns the time by which work due at a given time is done after all failures. */
export type Healed = (at: EpochMs) => EpochMs;

/** The model's verdict on an evicted pod. */
export interface Opinion {
  /** The fault of the eviction; absent: there is none. */
  readonly wrong?: string;
  /** True if each time was compared, and not only the existence of a reason. */
  readonly exact: boolean;
}

/**
 * A taint on a node, with the earliest and the latest possible start of its countdown, and the first time that the node had the
 * taint.
 */
interface Countdown {
  readonly taint: NaiveTaint;
  readonly since: EpochMs;
  readonly sinceAtMost: EpochMs;
  readonly everSince: EpochMs;
}

/** The state of a node from a given time on. */
interface NodeSpell {
  readonly at: EpochMs;
  readonly there: boolean;
  readonly countdowns: readonly Countdown[];
}

interface Pod {
  readonly node: string;
  readonly since: EpochMs;
  /** True if the pod's node was deleted when the pod appeared: the taints that apply to it are unknown. */
  readonly homeless: boolean;
  tolerations: readonly Toleration[];
  changedAt: EpochMs;
}

/** The time that a taint contains is truncated to the second. */
const CUT_MS = 999;

/** Not-ready and unreachable are two names for the same state: a node that is down. */
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const NOT_READY = 'node.kubernetes.io/not-ready';
const clockOf = (key: string): string => (key === UNREACHABLE ? NOT_READY : key);

/**
 * A cluster, and the naive rule for its pods. The rule includes the service's promises beyond the built-in controller. Each taint
 * has its own countdown, a newly set taint restarts its countdown, and changed tolerations count immediately. The model sees
 * everything immediately, and models none of the service's difficulties.
 */
export class NaiveModel {
  readonly #nodes = new Map<string, NodeSpell[]>();
  readonly #pods = new Map<PodUid, Pod>();
  /** The first time that each node had each taint. */
  readonly #first = new Map<string, EpochMs>();

  /** Notes the state of a node; `taints`: `undefined` = the node was deleted, which ends no countdown. */
  node(at: EpochMs, name: string, taints: readonly NaiveTaint[] | undefined): void {
    const spells = this.#spells(name);
    const before = spells.at(-1)?.countdowns ?? [];
    if (!taints) {
      spells.push({ at, there: false, countdowns: before });
      this.#forgetIfEmpty(at, name);
      return;
    }
    const cameBack = spells.at(-1)?.there === false;
    const countdowns = taints
      .filter(({ effect }) => effect === 'NoExecute')
      .map((taint) => this.#countdown(at, name, taint, before, cameBack));
    spells.push({ at, there: true, countdowns });
  }

  #countdown(
    at: EpochMs,
    node: string,
    taint: NaiveTaint,
    before: readonly Countdown[],
    cameBack: boolean,
  ): Countdown {
    const firstKey = `${node} ${clockOf(taint.key)}`;
    const everSince = this.#first.get(firstKey) ?? at;
    this.#first.set(firstKey, everSince);
    const same = before.filter((each) => clockOf(each.taint.key) === clockOf(taint.key));
    if (same.length === 0) return { taint, since: at, sinceAtMost: at, everSince };
    const since = Math.min(...same.map((each) => each.since));
    const sinceAtMost = Math.max(...same.map((each) => each.sinceAtMost), cameBack ? at : 0);
    // The taint contains a new time. If two taints share a countdown, the new time may belong to either.
    const old = same.find((each) => each.taint.key === taint.key);
    const renewed = taint.timeAdded;
    if (renewed === undefined || same.some((each) => each.taint.timeAdded === renewed))
      return { taint, since, sinceAtMost, everSince };
    const setAt = Math.max(since, Math.min(renewed + CUT_MS, at));
    const sure = same.length === 1 && old !== undefined;
    return { taint, since: sure ? setAt : since, sinceAtMost: Math.max(sinceAtMost, at), everSince };
  }

  /** Notes a pod that was created or changed. */
  pod(at: EpochMs, { uid, node, terminating, tolerations }: NaivePod): void {
    if (node === undefined) return;
    const known = this.#pods.get(uid);
    if (terminating) {
      this.#pods.delete(uid);
      this.#forgetIfEmpty(at, node);
    } else if (!known) {
      const homeless = this.#spells(node).at(-1)?.there !== true;
      this.#pods.set(uid, { node, since: at, homeless, tolerations, changedAt: at });
    } else {
      Object.assign(known, { tolerations, changedAt: at });
    }
  }

  /** Forgets the taints of a deleted node without pods. */
  #forgetIfEmpty(at: EpochMs, name: string): void {
    const spells = this.#spells(name);
    const last = spells.at(-1);
    const empty = ![...this.#pods.values()].some(({ node }) => node === name);
    if (last && !last.there && empty) spells.push({ at, there: false, countdowns: [] });
  }

  /**
   * Judges an eviction at `at`, decided by observations of its node in the last `seenMs`. `sawAll`: whether the service can have
   * seen everything that ever happened there; `undefined`: the model does not have the pod.
   */
  goes(
    uid: PodUid,
    at: EpochMs,
    seenMs: number,
    { sawAll, healed }: { sawAll: boolean; healed: Healed },
  ): Opinion | undefined {
    const pod = this.#pods.get(uid);
    if (!pod) return undefined;
    const spells = this.#spells(pod.node);
    const seen = spells.filter((_, index) => (spells[index + 1]?.at ?? Infinity) >= at - seenMs);
    const exact = sawAll && !pod.homeless;
    // The last state of a deleted node decides. A service that missed an event has less information about that state than the
    // model.
    if (!exact && seen.some(({ there }) => !there)) return undefined;
    const moments = seen.flatMap(({ countdowns }) =>
      momentsOf(countdowns, pod.tolerations, (countdown) =>
        Math.max(exact ? countdown.since : countdown.everSince, exact ? pod.since : 0),
      ),
    );
    const earliest = Math.min(Infinity, ...moments);
    if (earliest === Infinity) return { exact, wrong: 'nothing makes it go' };
    if (earliest > at) return { exact, wrong: `it may stay for another ${earliest - at} ms` };
    const latest = this.#latest(pod, healed);
    if (latest !== undefined && at > latest)
      return { exact, wrong: `it should have gone ${at - latest} ms ago` };
    return { exact };
  }

  /** Returns the pods that still exist at `at` and should have been evicted long before. */
  overdue(at: EpochMs, healed: Healed): readonly PodUid[] {
    return [...this.#pods].flatMap(([uid, pod]) =>
      (this.#latest(pod, healed) ?? Infinity) < at ? [uid] : [],
    );
  }

  /** The number of pods that stay in the current state. */
  get staying(): number {
    return [...this.#pods.values()].filter((pod) => this.#latest(pod, (at) => at) === undefined).length;
  }

  /** Returns the time by which a pod is evicted despite all failures; `undefined`: it may stay, or the time is unknown. */
  #latest(pod: Pod, healed: Healed): EpochMs | undefined {
    const node = this.#spells(pod.node).at(-1);
    if (!node?.there || pod.homeless) return undefined;
    const ends = momentsOf(node.countdowns, pod.tolerations, ({ sinceAtMost }) =>
      healed(Math.max(sinceAtMost, pod.since)),
    );
    if (ends.length === 0) return undefined;
    return healed(Math.max(Math.min(...ends), healed(node.at), healed(pod.changedAt)));
  }

  #spells(name: string): NodeSpell[] {
    const spells = this.#nodes.get(name) ?? [];
    this.#nodes.set(name, spells);
    return spells;
  }
}

/** Returns the times at which each of these taints evicts a pod with these tolerations; none for a taint that never does. */
const momentsOf = (
  countdowns: readonly Countdown[],
  tolerations: readonly Toleration[],
  sinceOf: (countdown: Countdown) => EpochMs,
): readonly EpochMs[] =>
  countdowns
    .map((countdown) => sinceOf(countdown) + 1000 * secondsBorne(tolerations, countdown.taint))
    .filter((at) => at < Infinity);
