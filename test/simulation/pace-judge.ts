import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { ClusterName, PodUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Accuse, Bench } from './judge.ts';
import type { LiveCluster } from './live-cluster.ts';
import { type EvictedPod, type NaiveRules, OUT_OF_SERVICE } from './naive-rules.ts';
import type { Sent } from './simulated-api.ts';

/** The lengths of time in which evictions must not exceed `rate` and `drain`, plus a burst. */
const WINDOWS_MS = [1_000, 10_000, 60_000] as const;
/** The burst: permits of one second at once, and those that were taken in the second before. */
const BURST_MS = 1_000;
const LASTS_MS = 1_000;
/** The maximum age of the rules under which a permit was given; they may contain another policy. */
const RULES_MS = 1_000;
/** The time of a pass. One that began before the pod's hold was stored does not know that it was held. */
const PASS_MS = 5_000;

/** The number of tests of each limit. */
export interface Paced {
  readonly windows: number;
}

interface Gone {
  readonly at: EpochMs;
  /** True if the pod had been held past its deadline. */
  readonly drained: boolean;
}

/** P9, by the evictions of each cluster in each length of time. */
export class PaceJudge {
  readonly #bench: Bench;
  readonly #rules: NaiveRules | undefined;
  readonly #accuse: Accuse;
  readonly #gone = new Map<ClusterName, Gone[]>();
  /** The pods that were held past their deadline, and since when. */
  readonly #held = new Map<PodUid, EpochMs>();
  #windows = 0;

  constructor(bench: Bench, rules: NaiveRules | undefined, accuse: Accuse) {
    this.#bench = bench;
    this.#rules = rules;
    this.#accuse = accuse;
  }

  get paced(): Paced {
    return { windows: this.#windows };
  }

  /** Notes that a pod is held, according to the store. A workload limit is judged separately. */
  held(uid: PodUid, gate: EvictionGate): void {
    if (gate.kind !== 'workload-limit') this.#held.set(uid, this.#held.get(uid) ?? this.#bench.clock.now());
  }

  /** Notes that a pod's record has ended. */
  ended(uid: PodUid): void {
    this.#held.delete(uid);
  }

  /** `of`: one evictedPod for each taint that the decision may be based on. */
  deletion(
    { name, truth }: LiveCluster,
    { uid }: LivePod,
    { sentAt }: Sent,
    evicted: readonly EvictedPod[],
  ): void {
    const rules = this.#rules;
    const dueAt = truth.deadline(uid);
    // Evictions from out-of-service nodes are not rate-limited.
    if (
      !rules ||
      dueAt === undefined ||
      evicted.length === 0 ||
      evicted.some(({ key }) => key === OUT_OF_SERVICE)
    )
      return;
    const gone = this.#gone.get(name) ?? [];
    this.#gone.set(name, gone);
    gone.push({ at: sentAt, drained: (this.#held.get(uid) ?? Infinity) < sentAt - PASS_MS });
    for (const windowMs of WINDOWS_MS) this.#judge(name, gone, sentAt, windowMs);
  }

  #judge(name: ClusterName, all: readonly Gone[], to: EpochMs, windowMs: number): void {
    const from = to - windowMs;
    const gone = all.filter(({ at }) => at > from);
    const policies = this.#rules?.policies(name, from - LASTS_MS - RULES_MS, to) ?? [];
    const evictionRate = Math.max(...policies.map((policy) => policy.evictionRate ?? Infinity));
    const releaseRate = Math.max(...policies.map((policy) => policy.releaseRate));
    const limits = [
      { what: 'a rate', perSecond: evictionRate, gone },
      { what: 'a drain', perSecond: releaseRate, gone: gone.filter(({ drained }) => drained) },
    ];
    // One process counts what it sends: no second has a burst.
    const isOneProcess = this.#bench.weather.climate.store === 'sqlite';
    const burstMs = !isOneProcess ? BURST_MS + LASTS_MS : windowMs === 1_000 ? 0 : BURST_MS;
    for (const limit of limits) {
      const most = Math.ceil((limit.perSecond * (windowMs + burstMs)) / 1000);
      if (limit.gone.length === 0 || most === Infinity) continue;
      this.#bench.tried('P9');
      this.#windows += 1;
      if (limit.gone.length <= most) continue;
      this.#accuse(
        `P9: ${limit.gone.length} pods went within ${windowMs} ms at ${limit.what} of ${limit.perSecond}/s`,
      );
    }
  }
}
