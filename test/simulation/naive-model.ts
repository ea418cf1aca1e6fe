import type { PodUid } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { secondsBorne, type Taint, type Toleration } from '#test/naive/rule.ts';

/** A taint that may say when it was set. */
export interface NaiveTaint extends Taint {
  readonly timeAdded?: EpochMs;
}

export interface NaivePod {
  readonly uid: PodUid;
  readonly node?: string | undefined;
  readonly terminating: boolean;
  readonly tolerations: readonly Toleration[];
}

/** When something healed that was to be done at a moment. */
export type Healed = (at: EpochMs) => EpochMs;

/** What the model says of a pod that goes. */
export interface Opinion {
  /** What is wrong with that; absent: nothing. */
  readonly wrong?: string;
  /** Whether each moment was compared, and not only whether there ever was a reason. */
  readonly exact: boolean;
}

/** A taint on a node, since when at the earliest and at the latest as far as one can say, and since when at all. */
interface Countdown {
  readonly taint: NaiveTaint;
  readonly since: EpochMs;
  readonly sinceAtMost: EpochMs;
  readonly everSince: EpochMs;
}

/** A node as it was from a moment on. */
interface NodeSpell {
  readonly at: EpochMs;
  readonly there: boolean;
  readonly countdowns: readonly Countdown[];
}

interface Pod {
  readonly node: string;
  readonly since: EpochMs;
  /** Whether its node was away when it came: nobody can tell what it is to be judged by. */
  readonly homeless: boolean;
  tolerations: readonly Toleration[];
  changedAt: EpochMs;
}

/** What a taint says of when it was set is cut to the second. */
const CUT_MS = 999;

/** Not-ready and unreachable are two words for one thing: a node that is down. */
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const NOT_READY = 'node.kubernetes.io/not-ready';
const clockOf = (key: string): string => (key === UNREACHABLE ? NOT_READY : key);

/**
 * A cluster, and what the naive rule says of its pods: with what we promise beyond the built-in controller (each taint has a
 * countdown of its own, which a new setting starts anew, and a change of tolerations counts at once). It sees everything, at once, and
 * nothing of what makes the service hard.
 */
export class NaiveModel {
  readonly #nodes = new Map<string, NodeSpell[]>();
  readonly #pods = new Map<PodUid, Pod>();
  /** When each taint first was on each node, ever. */
  readonly #first = new Map<string, EpochMs>();

  /** A node is now so; `taints`: `undefined` = it is gone, which ends nothing. */
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
    // Set anew, as it says itself; of two that share a countdown, either may be meant.
    const old = same.find((each) => each.taint.key === taint.key);
    const anew = taint.timeAdded;
    if (anew === undefined || same.some((each) => each.taint.timeAdded === anew))
      return { taint, since, sinceAtMost, everSince };
    const setAt = Math.max(since, Math.min(anew + CUT_MS, at));
    const sure = same.length === 1 && old !== undefined;
    return { taint, since: sure ? setAt : since, sinceAtMost: Math.max(sinceAtMost, at), everSince };
  }

  /** A pod came or changed. */
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

  /** Nobody remembers the taints of a node that is gone with all its pods. */
  #forgetIfEmpty(at: EpochMs, name: string): void {
    const spells = this.#spells(name);
    const last = spells.at(-1);
    const empty = ![...this.#pods.values()].some(({ node }) => node === name);
    if (last && !last.there && empty) spells.push({ at, there: false, countdowns: [] });
  }

  /**
   * The service has a pod go at `at`, by what it saw of its node in the last `seenMs`. `sawAll`: whether it can have seen everything
   * that ever happened there; `undefined`: the model does not know the pod.
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
    // It goes by what a node was like that is gone; of that, who missed something knows less than we do.
    if (!exact && seen.some(({ there }) => !there)) return undefined;
    const moments = seen.flatMap(({ countdowns }) =>
      momentsOf(countdowns, pod.tolerations, (each) =>
        Math.max(exact ? each.since : each.everSince, exact ? pod.since : 0),
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

  /** The pods that are still there at `at` and should long be gone. */
  overdue(at: EpochMs, healed: Healed): readonly PodUid[] {
    return [...this.#pods].flatMap(([uid, pod]) =>
      (this.#latest(pod, healed) ?? Infinity) < at ? [uid] : [],
    );
  }

  /** How many pods are there that are to stay, as things are. */
  get staying(): number {
    return [...this.#pods.values()].filter((pod) => this.#latest(pod, (at) => at) === undefined).length;
  }

  /** By when a pod has gone, whatever went wrong; `undefined`: it may stay, or nobody can tell. */
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

/** When a pod with these tolerations has to go by each of these taints; by none of them: never. */
const momentsOf = (
  countdowns: readonly Countdown[],
  tolerations: readonly Toleration[],
  sinceOf: (countdown: Countdown) => EpochMs,
): readonly EpochMs[] =>
  countdowns
    .map((countdown) => sinceOf(countdown) + 1000 * secondsBorne(tolerations, countdown.taint))
    .filter((at) => at < Infinity);
