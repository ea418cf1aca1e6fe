import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { Accuse, Bench } from './judge.ts';
import { type Defendant, type Law, OUT_OF_SERVICE } from './law.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { Sent } from './simulated-api.ts';

/** Over any span of these lengths no more pods go than `rate` and `drain` say, and a second's worth at once. */
const WINDOWS_MS = [1_000, 10_000, 60_000] as const;
const BURST_MS = 1_000;
/** Where nothing goes wrong it takes so long at most from a pod's turn to its delete. */
const PASS_MS = 1_000;
/** What is due for so long was looked at, and held. */
const HELD_MS = 5_000;
/** How often each limit was put to the test. */
export interface Paced {
  readonly windows: number;
}

interface Gone {
  readonly at: EpochMs;
  /** When it was let go that was held past its deadline; absent: it was not. */
  readonly freedAt: EpochMs | undefined;
}

/** P9, by the pods that go of each cluster in each span of time. */
export class PaceJudge {
  readonly #bench: Bench;
  readonly #law: Law | undefined;
  readonly #accuse: Accuse;
  readonly #gone = new Map<ClusterName, Gone[]>();
  #windows = 0;

  constructor(bench: Bench, law: Law | undefined, accuse: Accuse) {
    this.#bench = bench;
    this.#law = law;
    this.#accuse = accuse;
  }

  get paced(): Paced {
    return { windows: this.#windows };
  }

  /** `of`: by each of the taints that it may have been decided by. */
  deletion(
    { name, truth }: LiveCluster,
    { uid, owner }: LivePod,
    { sentAt }: Sent,
    of: readonly Defendant[],
  ): void {
    const law = this.#law;
    const dueAt = truth.deadline(uid);
    // What does not run any more is not paced.
    if (!law || dueAt === undefined || of.length === 0 || of.some(({ key }) => key === OUT_OF_SERVICE))
      return;
    const ends = of.map((each) => law.lastForbidden(name, each, dueAt, sentAt));
    const freed = ends.filter((at) => at !== undefined && at <= sentAt) as EpochMs[];
    const endedAt = freed.length === of.length ? Math.max(...freed) : undefined;
    // What fell due just before that nobody had held yet.
    const wasHeld = endedAt !== undefined && endedAt - dueAt > HELD_MS;
    // What waits for a permit of its workload goes with that, and not with what was let go before.
    const waits = owner && law.policies(name, dueAt, sentAt).some((each) => each.maxEvictionsPerWorkload);
    const freedAt = wasHeld && !waits ? endedAt : undefined;
    const gone = this.#gone.get(name) ?? [];
    this.#gone.set(name, gone);
    gone.push({ at: sentAt, freedAt });
    for (const windowMs of WINDOWS_MS) this.#judge(name, gone, sentAt, windowMs);
  }

  #judge(name: ClusterName, all: readonly Gone[], to: EpochMs, windowMs: number): void {
    const from = to - windowMs;
    const gone = all.filter(({ at }) => at > from);
    const policies = this.#law?.policies(name, from, to) ?? [];
    const rate = Math.max(...policies.map((policy) => policy.rate ?? Infinity));
    const drain = Math.max(...policies.map((policy) => policy.drain));
    const limits = [
      { what: 'a rate', perSecond: rate, gone },
      { what: 'a drain', perSecond: drain, gone: gone.filter(({ freedAt }) => freedAt !== undefined) },
    ];
    for (const limit of limits) {
      const most = 1 + Math.ceil((limit.perSecond * (windowMs + BURST_MS + PASS_MS)) / 1000);
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
