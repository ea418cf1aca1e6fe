import { LOOK_MAX_AGE_MS } from '#shared/engine/evict/pass.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Accuse, Bench } from './judge.ts';
import type { LiveCluster } from './live-cluster.ts';
import { NaiveModel } from './naive-model.ts';
import { PATIENCE_MS } from './process.ts';
import type { RecordJudge } from './record-judge.ts';

/** A relay has begun to hear by then; what is there before that it finds. */
const BEGUN_MS = 20_000;

/** What was compared with the naive model. */
export interface Compared {
  /** Pods that went, each moment compared. */
  exact: number;
  /** Pods that went where anything went wrong before: that there was a reason, and that it was not too late. */
  roughly: number;
  /** Pods that were still there at the end, and were to stay. */
  stayed: number;
}

/** Holds what the service did against the naive model, in clusters that nobody governs. */
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
    // The naive rule knows of no owner and of no Lease.
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
    const seenMs = LOOK_MAX_AGE_MS + 2 * apiMs + (late > 0 ? PATIENCE_MS : 0);
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
