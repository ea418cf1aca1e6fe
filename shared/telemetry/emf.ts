import { type Clock, systemClock } from '#shared/time/clock.ts';
import {
  API_REFUSALS,
  CLOCK_SKEW,
  EVICTION_RETRIES,
  type EvictionMetrics,
  GIVEN_UP,
  OUT_OF_REACH,
  POD_DELETION_DURATION,
  POD_DELETIONS,
  RIVALS,
} from './metrics.ts';

/** CloudWatch's names of the units we use. */
export type MetricUnit = 'Count' | 'Seconds';

/** Values of one metric in one document (CloudWatch embedded metric format). */
const MAX_VALUES = 100;

export interface EmfOptions {
  readonly namespace: string;
  readonly clock: Clock;
  /** Takes one line of the log. */
  readonly write: (line: string) => void;
}

/**
 * Metrics as log lines, in CloudWatch's embedded metric format: no call, no wait, and CloudWatch computes percentiles
 * from the single values. They are gathered until `flush`, so that one invocation writes one line.
 */
export class Emf {
  readonly #options: EmfOptions;
  readonly #metrics = new Map<string, { readonly unit: MetricUnit; readonly values: number[] }>();

  constructor(options: EmfOptions) {
    this.#options = options;
  }

  /** Notes one value of a metric. */
  put(name: string, unit: MetricUnit, value: number): void {
    const metric = this.#metrics.get(name) ?? { unit, values: [] };
    metric.values.push(value);
    this.#metrics.set(name, metric);
  }

  /** Writes what was noted since the last time, in as few lines as its format allows. */
  flush(): void {
    for (let from = 0; ; from += MAX_VALUES) {
      const part = [...this.#metrics]
        .map(([name, { unit, values }]) => ({ name, unit, values: values.slice(from, from + MAX_VALUES) }))
        .filter(({ values }) => values.length > 0);
      if (part.length === 0) break;
      this.#options.write(JSON.stringify(this.#document(part)));
    }
    this.#metrics.clear();
  }

  #document(
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
            Dimensions: [[]],
            Metrics: metrics.map(({ name, unit }) => ({ Name: name, Unit: unit })),
          },
        ],
      },
      ...Object.fromEntries(metrics.map(({ name, values }) => [name, values])),
    };
  }
}

/** Metrics of a process whose standard output CloudWatch Logs takes. */
export function stdoutEmf(namespace: string): Emf {
  return new Emf({ namespace, clock: systemClock, write: (line) => process.stdout.write(`${line}\n`) });
}

/** What `evict` counts, for CloudWatch. */
export function emfEvictionMetrics(emf: Emf): EvictionMetrics {
  return {
    podDeleted(lateSeconds) {
      emf.put(POD_DELETIONS, 'Count', 1);
      emf.put(POD_DELETION_DURATION, 'Seconds', lateSeconds);
    },
    requestRefused: () => emf.put(API_REFUSALS, 'Count', 1),
    outOfReach: () => emf.put(OUT_OF_REACH, 'Count', 1),
    retried: () => emf.put(EVICTION_RETRIES, 'Count', 1),
    gaveUp: (evictions) => emf.put(GIVEN_UP, 'Count', evictions),
    rivalSeen: () => emf.put(RIVALS, 'Count', 1),
    clockSkewed: (seconds) => emf.put(CLOCK_SKEW, 'Seconds', seconds),
    flush: () => emf.flush(),
  };
}
