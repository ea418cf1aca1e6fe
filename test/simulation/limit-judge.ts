import type { ClusterName } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Accuse, Bench } from './judge.ts';
import type { LiveCluster } from './live-cluster.ts';
import { type EvictedPod, type NaiveRules, OUT_OF_SERVICE } from './naive-rules.ts';
import type { Sent } from './simulated-api.ts';

/** The maximum age of rules when a deletion is sent. */
const RULES_AGE_MS = 1_000;

/** P9, by the number of evicted pods of each workload within the window of the policy's limit, in its plainest form. */
export class LimitJudge {
  readonly #bench: Bench;
  readonly #rules: NaiveRules | undefined;
  readonly #accuse: Accuse;
  readonly #gone = new Map<string, EpochMs[]>();
  /** Deletions of pods whose workload had a limit all the time. */
  judged = 0;

  constructor(bench: Bench, rules: NaiveRules | undefined, accuse: Accuse) {
    this.#bench = bench;
    this.#rules = rules;
    this.#accuse = accuse;
  }

  /** `of`: one evictedPod for each taint that the decision may be based on. */
  deletion({ name }: LiveCluster, pod: LivePod, { sentAt }: Sent, evicted: readonly EvictedPod[]): void {
    if (!pod.owner || evicted.length === 0 || evicted.some(({ key }) => key === OUT_OF_SERVICE)) return;
    const workload = [name, pod.namespace, pod.owner.kind, pod.owner.name].join('/');
    const gone = [...(this.#gone.get(workload) ?? []), sentAt];
    this.#gone.set(workload, gone);
    const { windowMs } = this.#limits(name, sentAt - RULES_AGE_MS, sentAt)[0] ?? {};
    if (windowMs === undefined) return;
    const from = sentAt - windowMs;
    const limits = this.#limits(name, from - RULES_AGE_MS, sentAt);
    // The limit differed, or was missing, for a part of the time.
    if (limits.some((limit) => limit?.windowMs !== windowMs)) return;
    this.judged += 1;
    this.#bench.tried('P9');
    const most = Math.max(...limits.map((limit) => Number(limit?.count)));
    const within = gone.filter((at) => at > from).length;
    if (within > most)
      this.#accuse(`P9: ${within} pods of ${workload} went within ${windowMs} ms, where ${most} may`);
  }

  #limits(name: ClusterName, from: EpochMs, to: EpochMs) {
    const policies = this.#rules?.policies(name, from, to) ?? [];
    return policies.map(({ maxEvictionsPerWorkload }) => maxEvictionsPerWorkload);
  }
}
