import { NODE_MAX_AGE_MS } from '#shared/engine/evict/evict-pod.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Accuse, Bench } from './judge.ts';
import type { LiveCluster } from './live-cluster.ts';
import { NaiveModel } from './naive-model.ts';
import { PATIENCE_MS } from './process.ts';
import type { RecordJudge } from './record-judge.ts';

/** The time by which a relay follows the cluster. The relay finds all earlier objects in its lists. */
const BEGUN_MS = 20_000;

/** The comparisons with the naive model. */
export interface Compared {
  /** Evicted pods, with each time compared. */
  exact: number;
  /** Evicted pods after any failure. Only the existence of a reason and the latest time are compared. */
  roughly: number;
  /** Pods that still existed at the end, and were expected to stay. */
  stayed: number;
}

/** Compares the service with the naive model, in clusters without an owner. */
export class NaiveJudge {
  readonly compared: Compared = { exact: 0, roughly: 0, stayed: 0 };
  readonly #bench: Bench;
  readonly #records: RecordJudge;
  readonly #accuse: Accuse;
  readonly #models = new Map<ClusterName, NaiveModel>();
  readonly #begunAt: EpochMs;

  constructor(bench: Bench, records: RecordJudge, accuse: Accuse) {
    this.#bench = bench;
    this.#records = records;
    this.#accuse = accuse;
    this.#begunAt = bench.clock.now() + BEGUN_MS;
    // The naive rule does not model owners and Leases.
    if (bench.rulesStore || bench.clusters.some(({ leases }) => leases)) return;
    for (const { name } of bench.clusters) this.#models.set(name, new NaiveModel());
  }

  nodeIs(cluster: ClusterName, node: NodeName, taints: readonly LiveTaint[] | undefined): void {
    this.#models.get(cluster)?.node(this.#bench.clock.now(), node, taints);
  }

  podIs(cluster: ClusterName, pod: LivePod): void {
    this.#models.get(cluster)?.pod(this.#bench.clock.now(), pod);
  }

  deletion({ name }: LiveCluster, { uid }: LivePod): void {
    const { clock, disturbances, weather } = this.#bench;
    const now = clock.now();
    const { apiMs, late } = weather.climate;
    const seenMs = NODE_MAX_AGE_MS + 2 * apiMs + (late > 0 ? PATIENCE_MS : 0);
    const sawAll = disturbances.isQuiet(name, this.#begunAt, now);
    const opinion = this.#models.get(name)?.goes(uid, now, seenMs, { sawAll, healed: this.#healed(name) });
    if (!opinion) return;
    this.compared[opinion.exact ? 'exact' : 'roughly'] += 1;
    if (opinion.wrong) this.#accuse(`the naive model: ${uid} went, but ${opinion.wrong}`);
  }

  judgeEnd(): void {
    const now = this.#bench.clock.now();
    for (const [name, model] of this.#models) {
      for (const uid of model.overdue(now, this.#healed(name))) {
        if (!this.#records.isGivenUp(uid))
          this.#accuse(`the naive model: ${uid} is there, and should have gone`);
      }
      this.compared.stayed += model.staying;
    }
  }

  readonly #healed = (name: ClusterName) => (at: EpochMs) => this.#bench.disturbances.excusedUntil(name, at);
}
