import { median } from '#test/bench/result.ts';
import { type Scenario, takingTurns } from '#test/bench/scenario.ts';
import { DEFAULT_REQUESTS_PER_SECOND } from '#test/cluster/rig/controller-manager.ts';
import { AMPLE, AMPLE_REQUESTS_PER_SECOND, builtIn, LIMITED, ours } from './contender.ts';
import { lateness } from './lateness.ts';
import { type Eviction, Population, type Shape } from './population.ts';

const WITHIN_MS = 15 * 60_000;
/**
 * At its default rate the built-in controller needs a quarter of an hour for thousands of pods, so only its progress is
 * measured.
 */
const DEFAULT_WITHIN_MS = 40_000;
const SHORT_WITHIN_MS = 3_000;

/** Measures pods on nodes that are all tainted simultaneously, beside the built-in controller. */
export const mass = (shape: Shape, usualRuns: number): Scenario => {
  const count = (shape.nodes * shape.podsPerNode).toLocaleString('en');
  return {
    about: `${count} pods on ${shape.nodes} node${shape.nodes > 1 ? 's' : ''} go at once: ours and the built-in controller`,
    async run(report, { runs = usualRuns, short }) {
      await using population = await Population.on(short ? { ...shape, nodes: 1, podsPerNode: 10 } : shape);
      const byContender = await takingTurns(short ? 1 : runs, {
        // The limited controller leaves nearly all pods, which the next contender then uses.
        limited: () =>
          population.evictedBy(
            builtIn(DEFAULT_REQUESTS_PER_SECOND),
            short ? SHORT_WITHIN_MS : DEFAULT_WITHIN_MS,
          ),
        ours: () => population.evictedBy(ours, WITHIN_MS),
        ample: () => population.evictedBy(builtIn(AMPLE_REQUESTS_PER_SECOND), WITHIN_MS),
      });
      const compared = (pick: (eviction: Eviction) => number, peer: readonly Eviction[], name: string) => ({
        ours: byContender.ours.map(pick),
        peer: { name, values: peer.map(pick) },
      });
      const evictionRate = ({ pods, tookMs }: Eviction) => round((pods.length * 1000) / tookMs, 1);
      const part = median(byContender.limited.map(({ pods }) => pods.length)) ?? 0;
      report({
        what: 'evictions per second',
        unit: 'pods/s',
        ...compared(evictionRate, byContender.ample, AMPLE),
        aim: { of: 'ratio', atLeast: 1.1 },
      });
      report({
        what: 'evictions per second, beside the default',
        unit: 'pods/s',
        ...compared(evictionRate, byContender.limited, LIMITED),
        aim: { of: 'ratio', atLeast: 30 },
        ...(part < shape.nodes * shape.podsPerNode
          ? { note: `its pace over the first ${part} pods of ${count}` }
          : {}),
      });
      // The built-in controller drops a delete that failed five times, and an overloaded API server fails many.
      report({
        what: 'pods that stay, after a quarter of an hour',
        unit: 'pods',
        ...compared(({ pods }) => population.size - pods.length, byContender.ample, AMPLE),
      });
      for (const figure of lateness((pick) => compared(pick, byContender.ample, AMPLE))) report(figure);
      report({
        what: 'pods with an Event',
        unit: 'pods',
        ...compared(({ announced }) => announced, byContender.ample, AMPLE),
      });
      report({
        what: 'resident, before the taints',
        unit: 'MiB',
        ...compared(({ before }) => round(before?.residentMiB ?? Number.NaN), byContender.ample, AMPLE),
        aim: { of: 'ratio', atMost: 1 },
      });
      report({
        what: 'resident, at the most',
        unit: 'MiB',
        ...compared(({ after }) => round(after?.peakMiB ?? Number.NaN), byContender.ample, AMPLE),
        aim: { of: 'ratio', atMost: 1 },
      });
      report({
        what: 'CPU',
        unit: 's',
        ...compared(
          ({ before, after }) => round((after?.cpuSeconds ?? Number.NaN) - (before?.cpuSeconds ?? 0), 2),
          byContender.ample,
          AMPLE,
        ),
      });
    },
  };
};

const round = (value: number, decimals = 0): number => Math.round(value * 10 ** decimals) / 10 ** decimals;
