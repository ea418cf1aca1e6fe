import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { MetricSink } from '#shared/telemetry/metrics.ts';
import { type Clock, systemClock } from '#shared/time/clock.ts';

/** Maximum of values of one metric in one document (CloudWatch embedded metric format). */
const MAX_VALUES = 100;

export interface EmfOptions {
  readonly namespace: string;
  readonly clock: Clock;
  /** True: a value of a cluster is also a metric of that cluster, which doubles the cost. */
  readonly byCluster?: boolean;
  readonly write: (line: string) => void;
}

type Gathered = Map<string, number[]>;

/**
 * CloudWatch's embedded metric format: recording needs no call, and CloudWatch computes percentiles from single values.
 * Collected until `flush`, so that an invocation writes one line, or one for each cluster.
 */
export class Emf implements MetricSink {
  readonly #options: EmfOptions;
  /** Keyed by the cluster of a per-cluster metric. `undefined`: only the service's metric. */
  readonly #metrics = new Map<ClusterName | undefined, Gathered>();

  constructor(options: EmfOptions) {
    this.#options = options;
  }

  put(name: string, value: number, cluster?: ClusterName): void {
    const labeled = this.#options.byCluster ? cluster : undefined;
    const metrics: Gathered = this.#metrics.get(labeled) ?? new Map();
    this.#metrics.set(labeled, metrics);
    const values = metrics.get(name) ?? [];
    values.push(value);
    metrics.set(name, values);
  }

  /** Writes the values recorded since the last flush, in as few lines as the format allows. */
  flush(): void {
    for (const [cluster, metrics] of this.#metrics) {
      for (let from = 0; ; from += MAX_VALUES) {
        const part = [...metrics]
          .map(([name, values]) => [name, values.slice(from, from + MAX_VALUES)] as const)
          .filter(([, values]) => values.length > 0);
        if (part.length === 0) break;
        this.#options.write(JSON.stringify(this.#document(cluster, part)));
      }
    }
    this.#metrics.clear();
  }

  #document(
    cluster: ClusterName | undefined,
    metrics: readonly (readonly [name: string, values: readonly number[]])[],
  ): object {
    const { namespace, clock } = this.#options;
    return {
      _aws: {
        Timestamp: clock.now(),
        CloudWatchMetrics: [
          {
            Namespace: namespace,
            // One set without dimensions: one metric for the whole service.
            Dimensions: cluster === undefined ? [[]] : [[], ['cluster']],
            Metrics: metrics.map(([name]) => ({
              Name: name,
              Unit: name.endsWith('_seconds') ? 'Seconds' : 'Count',
            })),
          },
        ],
      },
      ...defined({ cluster }),
      ...Object.fromEntries(metrics),
    };
  }
}

export function stdoutEmf(namespace: string, byCluster = false): Emf {
  const write = (line: string) => process.stdout.write(`${line}\n`);
  return new Emf({ namespace, byCluster, clock: systemClock, write });
}
