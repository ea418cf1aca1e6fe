import type { EpochMs, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { countdownIdentity } from '#shared/taints/deadline.ts';
import { firstMatch } from '#shared/taints/match.ts';
import type { MatchOptions, Taint, Toleration } from '#shared/taints/taint.ts';

interface NodePast {
  readonly at: EpochMs;
  /** The last known ones while the node is deleted. */
  readonly taints: readonly Taint[];
  readonly deleted: boolean;
}

interface PodPast {
  readonly node: NodeName;
  readonly podSince: EpochMs;
  readonly tolerations: { readonly at: EpochMs; readonly tolerations: readonly Toleration[] }[];
}

interface Gap {
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/** How a countdown's start is reckoned when its taint went and came back. */
type Reckoning =
  /** From its last coming. */
  | 'strict'
  /** From before a gap that the service may not have heard of. */
  | 'lenient';

/**
 * What really happened, kept apart from the service, and the rule in its plainest form over it: when a pod must
 * go, and when it may.
 */
export class Truth {
  /** What may be seen a little later than it is. */
  readonly #hearingMs: number;
  readonly #options: MatchOptions;
  readonly #nodes = new Map<NodeName, NodePast[]>();
  readonly #pods = new Map<PodUid, PodPast>();
  /** When the relay saw nothing, or began anew. */
  readonly #blindness: Gap[] = [];

  constructor(hearingMs: number, options: MatchOptions) {
    this.#hearingMs = hearingMs;
    this.#options = options;
  }

  nodeIs(at: EpochMs, name: NodeName, taints: readonly Taint[] | undefined): void {
    const past = this.#pastOf(name);
    const evicting = taints?.filter(({ effect }) => effect === 'NoExecute');
    past.push({ at, taints: evicting ?? past.at(-1)?.taints ?? [], deleted: taints === undefined });
  }

  /** The last pod of a deleted node is gone or going: nobody remembers its taints any more. */
  nodeIsDeserted(at: EpochMs, name: NodeName): void {
    this.#pastOf(name).push({ at, taints: [], deleted: true });
  }

  podIs(at: EpochMs, pod: LivePod): void {
    if (pod.node === undefined) return;
    const past = this.#pods.get(pod.uid) ?? { node: pod.node, podSince: at, tolerations: [] };
    past.tolerations.push({ at, tolerations: pod.tolerations });
    this.#pods.set(pod.uid, past);
  }

  relayWasBlind(from: EpochMs, to: EpochMs): void {
    this.#blindness.push({ from, to });
  }

  /**
   * The earliest moment at which a pod may go by what somebody could have seen who looked at its node within
   * `nodeMs` and at itself within `podMs` before `at`; `undefined`: nobody could have seen a reason.
   */
  mayGo(uid: PodUid, at: EpochMs, nodeMs: number, podMs: number): EpochMs | undefined {
    const pod = this.#podOf(uid);
    const moments = this.#couldBeSeen(pod.node, at, nodeMs).flatMap((node) =>
      overlapping(pod.tolerations, at - podMs, at).map(({ tolerations }) =>
        this.#deadline(pod, node, tolerations, at, 'lenient'),
      ),
    );
    const known = moments.filter((moment) => moment !== undefined);
    return known.length > 0 ? Math.min(...known) : undefined;
  }

  /** What the service could have seen of a node; of a deleted one, all that it may not have known to be old. */
  #couldBeSeen(name: NodeName, at: EpochMs, withinMs: number): readonly NodePast[] {
    const past = this.#pastOf(name);
    const seen = overlapping(past, at - withinMs, at);
    const deleted = seen.find((each) => each.deleted);
    if (!deleted) return seen;
    const older = past.filter((_, index) => {
      const end = past[index + 1]?.at ?? Infinity;
      return end <= deleted.at && this.#mayBeMissed({ from: end, to: deleted.at }, at);
    });
    return [...older, ...seen];
  }

  /** When a pod must be gone by, as things are at `at`; `undefined`: never. */
  mustGo(uid: PodUid, at: EpochMs): EpochMs | undefined {
    const pod = this.#podOf(uid);
    const node = this.#pastOf(pod.node).at(-1);
    const tolerations = pod.tolerations.at(-1)?.tolerations;
    if (!node || !tolerations || (node.deleted && pod.podSince >= node.at)) return undefined;
    if (node.deleted && this.#couldBeSeen(pod.node, at, 0).length > 1) return undefined;
    const deadline = this.#deadline(pod, node, tolerations, at, 'strict');
    return deadline === undefined ? undefined : Math.max(deadline, node.at, pod.tolerations.at(-1)?.at ?? 0);
  }

  #deadline(
    pod: PodPast,
    node: NodePast,
    tolerations: readonly Toleration[],
    at: EpochMs,
    reckoning: Reckoning,
  ): EpochMs | undefined {
    const ends = node.taints.flatMap((taint) => {
      const match = firstMatch(tolerations, taint, this.#options);
      if (match && match.tolerationSeconds === undefined) return [];
      const seconds = Math.max(0, Number(match?.tolerationSeconds ?? 0));
      const since = this.#since(pod.node, taint, node.at, at, reckoning);
      return [Math.max(since, pod.podSince) + seconds * 1000];
    });
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }

  /** When the countdown of a taint began that was there at `seen`, for one who reckons at `at`. */
  #since(name: NodeName, taint: Taint, seen: EpochMs, at: EpochMs, reckoning: Reckoning): EpochMs {
    const identity = countdownIdentity(taint);
    let since = seen;
    let goneSince: EpochMs | undefined;
    for (const { at: from, taints } of this.#pastOf(name).toReversed()) {
      if (from > seen) continue;
      const there = taints.some((each) => countdownIdentity(each) === identity);
      if (there) {
        if (goneSince !== undefined) {
          const missed = reckoning === 'lenient' && this.#mayBeMissed({ from: goneSince, to: since }, at);
          if (!missed) break;
          goneSince = undefined;
        }
        since = from;
      } else {
        goneSince = from;
      }
    }
    return since;
  }

  /** Whether the service may not have heard (yet) that a taint was gone for a while. */
  #mayBeMissed(gap: Gap, at: EpochMs): boolean {
    if (at - gap.to < this.#hearingMs) return true;
    return this.#blindness.some(({ from, to }) => from <= gap.to + this.#hearingMs && gap.from <= to);
  }

  #pastOf(name: NodeName): NodePast[] {
    const past = this.#nodes.get(name) ?? [];
    this.#nodes.set(name, past);
    return past;
  }

  #podOf(uid: PodUid): PodPast {
    const pod = this.#pods.get(uid);
    if (!pod) throw new Error(`nobody knows of pod ${uid}`);
    return pod;
  }
}

/** What held at any time between two moments, of states that hold until the next one. */
function overlapping<State extends { readonly at: EpochMs }>(
  states: readonly State[],
  from: EpochMs,
  to: EpochMs,
): readonly State[] {
  return states.filter(({ at }, index) => at <= to && (states[index + 1]?.at ?? Infinity) > from);
}
