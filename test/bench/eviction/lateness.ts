import type { Figure } from '#test/bench/result.ts';
import { quantile } from '#test/cluster/rig/figures.ts';
import type { Eviction } from './population.ts';

/**
 * Returns the time after the taint at which half of the pods, and nearly all, had been evicted. `compared` makes a
 * figure of each contender's runs.
 */
export const lateness = (
  compared: (pick: (eviction: Eviction) => number) => Pick<Figure, 'ours' | 'peer'>,
): readonly Figure[] =>
  (
    [
      ['half of the pods', 0.5],
      ['99 % of the pods', 0.99],
    ] as const
  ).map(([name, share]) => ({
    what: `from the taint until ${name} are evicted`,
    unit: 'ms',
    ...compared(({ pods }) =>
      quantile(
        pods.map(({ evictedAt = 0, tainted }) => evictedAt - tainted.seenAt),
        share,
      ),
    ),
  }));
