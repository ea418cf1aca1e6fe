import type { NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface TakeoverBench {
  readonly clock: Clock;
  readonly lapseMs: number;
  readonly pods: () => Iterable<LivePod>;
  /** Reports whether a control, or the guard, keeps a pod. */
  readonly holds: (pod: LivePod) => boolean;
}

/** The time after its deadline at which a pod counts as overdue. */
const OVERDUE_MS = 60_000;
/** The tolerance for a countdown that is seen later than it began, in whole seconds. */
const SEEN_LATE_MS = 2_000;
/** The tolerance for half a call, and for differences between clocks of processes. */
const UNDER_WAY_MS = 5_000;
/** The tolerance for a recent answer about a pod's node that the delete is based on, plus the time of the delete. */
const READ_MS = 2_000;
/** The time within which pods are evicted and heartbeats are renewed if there is no obstacle. */
const IN_TIME_MS = 45_000;

/**
 * Checks that pods are evicted, by the cluster's observations: taints, pods, deletes and heartbeats. No relay may renew the
 * heartbeat for longer than its timeout while a pod is overdue that no control keeps.
 */
export class TakeoverJudge {
  readonly faults: string[] = [];
  readonly tried: Record<string, number> = { heartbeats: 0, 'pods that went in time': 0 };
  /** The obstacles in this history. */
  readonly obstacles = new Set<string>();
  readonly #bench: TakeoverBench;
  readonly #accused: (what: string) => void;
  readonly #downSince = new Map<NodeName, EpochMs>();
  readonly #wasDown = new Map<NodeName, { readonly since: EpochMs; readonly until: EpochMs }>();
  readonly #heldUntil = new Map<PodUid, EpochMs>();
  readonly #reported = new Set<string>();
  #obstructedSince: EpochMs | undefined;
  #renewedAt: EpochMs | undefined;

  constructor(bench: TakeoverBench, accused: (what: string) => void) {
    this.#bench = bench;
    this.#accused = accused;
  }

  /** Notes that the node controller finds a node down. */
  wentDown(node: NodeName): void {
    this.#downSince.set(node, this.#bench.clock.now());
  }

  cameBack(node: NodeName): void {
    const since = this.#downSince.get(node);
    if (since !== undefined) this.#wasDown.set(node, { since, until: this.#bench.clock.now() });
    this.#downSince.delete(node);
  }

  deleted(pod: LivePod): void {
    const now = this.#bench.clock.now();
    const before = pod.node === undefined ? undefined : this.#wasDown.get(pod.node);
    const wasDue = before && now - before.until < READ_MS ? before.since + secondsOf(pod) * 1000 : undefined;
    const dueAt = this.#dueAt(pod) ?? wasDue;
    if (dueAt === undefined) this.#accuse(`${pod.uid} went, and its node is not down`);
    else if (now < dueAt - SEEN_LATE_MS) this.#accuse(`${pod.uid} went ${dueAt - now} ms early`);
    else if (now - dueAt < IN_TIME_MS)
      this.tried['pods that went in time'] = (this.tried['pods that went in time'] ?? 0) + 1;
  }

  #dueAt(pod: LivePod): EpochMs | undefined {
    const downSince = pod.node === undefined ? undefined : this.#downSince.get(pod.node);
    return downSince === undefined ? undefined : downSince + secondsOf(pod) * 1000;
  }

  /** Notes the held pods. Call this every few seconds, because controls start and end. */
  review(): void {
    const { clock, pods, holds } = this.#bench;
    for (const pod of pods()) if (holds(pod)) this.#heldUntil.set(pod.uid, clock.now());
  }

  /** Notes that from now on no pod can be evicted, due or not. */
  obstructed(): void {
    this.#obstructedSince ??= this.#bench.clock.now();
  }

  /**
   * Notes that the evict function completed a pass. A pass proves that evictions still work, also of pods that were scheduled
   * before the delta functions died. For pods that are no longer scheduled, the judge checks how long they are overdue.
   */
  passed(): void {
    if (this.#obstructedSince !== undefined) this.#obstructedSince = this.#bench.clock.now();
  }

  /** Notes that the obstacle has ended. */
  freed(): void {
    this.#obstructedSince = undefined;
  }

  /** Notes that a relay renews the heartbeat, as of `at`. */
  renewed(at: EpochMs): void {
    this.review();
    if (at > this.#bench.clock.now() + SEEN_LATE_MS) this.#accuse('a heartbeat is of the future');
    if (at > (this.#obstructedSince ?? Infinity) + UNDER_WAY_MS)
      this.#accuse(
        `it was said that somebody evicts, and nothing could be (${[...this.obstacles].join(', ')})`,
      );
    const { clock, lapseMs, pods } = this.#bench;
    this.tried['heartbeats'] = (this.tried['heartbeats'] ?? 0) + 1;
    this.#renewedAt = at;
    for (const pod of pods()) {
      const dueAt = this.#dueAt(pod);
      if (dueAt === undefined || pod.terminating) continue;
      const overdueAt = Math.max(dueAt, this.#heldUntil.get(pod.uid) ?? 0) + OVERDUE_MS;
      if (clock.now() <= overdueAt + lapseMs + UNDER_WAY_MS) continue;
      const why = this.obstacles.size === 0 ? 'nothing stands in the way' : [...this.obstacles].join(', ');
      this.#accuse(
        `it was said that somebody evicts, and ${pod.uid} had been overdue for ${clock.now() - overdueAt + OVERDUE_MS} ms (${why})`,
      );
    }
  }

  /** Notes the epoch of a relay's message, and the epoch of the lease at that time. */
  spoke(epoch: number, current: number | undefined): void {
    this.tried['words of relays'] = (this.tried['words of relays'] ?? 0) + 1;
    if (epoch < (current ?? 0)) this.#accuse('a relay spoke whose lease another one had taken');
  }

  judgeEnd(): void {
    const { clock, lapseMs } = this.#bench;
    if (this.#renewedAt === undefined) this.#accuse('it was never said that somebody evicts');
    else if (clock.now() - this.#renewedAt > lapseMs)
      this.#accuse(
        `nobody has said for ${clock.now() - this.#renewedAt} ms that somebody evicts, and all is well`,
      );
    for (const obstacle of this.obstacles) this.tried[obstacle] = (this.tried[obstacle] ?? 0) + 1;
  }

  #accuse(what: string): void {
    const gist = what.replaceAll(/\d+/g, '');
    if (this.#reported.has(gist)) return;
    this.#reported.add(gist);
    this.faults.push(what);
    this.#accused(what);
  }
}

/** Returns the seconds for which a pod of these histories tolerates that its node is down. */
export const secondsOf = ({ tolerations: [first] }: Pick<LivePod, 'tolerations'>): number =>
  Number(first?.tolerationSeconds ?? 0);
