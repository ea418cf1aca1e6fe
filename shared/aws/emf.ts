import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import {
  API_REFUSALS,
  CLOCK_SKEW,
  EVICTION_RETRIES,
  type EvictionMetrics,
  GIVEN_UP,
  MESSAGES_FAILING,
  type MetricUnit,
  OUT_OF_REACH,
  POD_DELETION_DURATION,
  POD_DELETIONS,
  RIVALS,
} from '#shared/telemetry/metrics.ts';
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

type Gathered = Map<string, { readonly unit: MetricUnit; readonly values: number[] }>;

/**
 * CloudWatch's embedded metric format: recording needs no call, and CloudWatch computes percentiles from single values.
 * Collected until `flush`, so that an invocation writes one line, or one for each cluster.
 */
export class Emf {
  readonly #options: EmfOptions;
  /** Keyed by the cluster of a per-cluster metric. `undefined`: only the service's metric. */
  readonly #metrics = new Map<ClusterName | undefined, Gathered>();

  constructor(options: EmfOptions) {
    this.#options = options;
  }

  put(name: string, unit: MetricUnit, value: number, cluster?: ClusterName): void {
    const labeled = this.#options.byCluster ? cluster : undefined;
    const metrics: Gathered = this.#metrics.get(labeled) ?? new Map();
    this.#metrics.set(labeled, metrics);
    const metric = metrics.get(name) ?? { unit, values: [] };
    metric.values.push(value);
    metrics.set(name, metric);
  }

  /** Writes the values recorded since the last flush, in as few lines as the format allows. */
  flush(): void {
    for (const [cluster, metrics] of this.#metrics) {
      for (let from = 0; ; from += MAX_VALUES) {
        const part = [...metrics]
          .map(([name, { unit, values }]) => ({ name, unit, values: values.slice(from, from + MAX_VALUES) }))
          .filter(({ values }) => values.length > 0);
        if (part.length === 0) break;
        this.#options.write(JSON.stringify(this.#document(cluster, part)));
      }
    }
    this.#metrics.clear();
  }

  #document(
    cluster: ClusterName | undefined,
    metrics: readonly {
      readonly name: string;
      readonly unit: MetricUnit;
      readonly values: readonly number[];
    }[],
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
            Metrics: metrics.map(({ name, unit }) => ({ Name: name, Unit: unit })),
          },
        ],
      },
      ...defined({ cluster }),
      ...Object.fromEntries(metrics.map(({ name, values }) => [name, values])),
    };
  }
}

export function stdoutEmf(namespace: string, byCluster = false): Emf {
  const write = (line: string) => process.stdout.write(`${line}\n`);
  return new Emf({ namespace, byCluster, clock: systemClock, write });
}

export function emfEvictionMetrics(emf: Emf): EvictionMetrics {
  return {
    podDeleted(cluster, lateSeconds) {
      emf.put(POD_DELETIONS, 'Count', 1, cluster);
      emf.put(POD_DELETION_DURATION, 'Seconds', lateSeconds, cluster);
    },
    requestRefused: (cluster) => emf.put(API_REFUSALS, 'Count', 1, cluster),
    outOfReach: (cluster) => emf.put(OUT_OF_REACH, 'Count', 1, cluster),
    retried: (cluster) => emf.put(EVICTION_RETRIES, 'Count', 1, cluster),
    gaveUp: (cluster, evictions) => emf.put(GIVEN_UP, 'Count', evictions, cluster),
    rivalSeen: (cluster) => emf.put(RIVALS, 'Count', 1, cluster),
    clockSkewed: (cluster, seconds) => emf.put(CLOCK_SKEW, 'Seconds', seconds, cluster),
    messageFailing: () => emf.put(MESSAGES_FAILING, 'Count', 1),
    flush: () => emf.flush(),
  };
}
