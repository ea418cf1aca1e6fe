import { type Scenario, takingTurns } from '#test/bench/scenario.ts';
import { quantile } from '#test/cluster/rig/figures.ts';
import { AMPLE, AMPLE_REQUESTS_PER_SECOND, builtIn, type Contender, ours } from './contender.ts';
import { Population } from './population.ts';

const RUNS = 5;
const PODS = 100;
const SHORT_PODS = 3;
const WITHIN_MS = 30_000;

/** Measures one pod after the other, each on a node that is tainted for it alone. */
export const single: Scenario = {
  about: `${PODS} pods one after the other: from the taint until the pod is evicted`,
  async run(report, { runs = RUNS, short }) {
    await using population = await Population.on({ nodes: 1, podsPerNode: 1 });
    const count = short ? SHORT_PODS : PODS;
    const late = async (contender: Contender) => {
      const evictions = await population.evictedOneByOne(contender, count, WITHIN_MS);
      return evictions.map(({ evictedAt = Number.NaN, tainted }) => evictedAt - tainted.seenAt);
    };
    const byContender = await takingTurns(short ? 1 : runs, {
      ours: () => late(ours),
      builtIn: () => late(builtIn(AMPLE_REQUESTS_PER_SECOND)),
    });
    for (const [name, share, aim] of [
      ['p50', 0.5, 1.5],
      ['p99', 0.99, undefined],
    ] as const) {
      const pick = (values: readonly number[]) => quantile(values, share);
      report({
        what: `from the taint until the pod is evicted, ${name}`,
        unit: 'ms',
        ours: byContender.ours.map(pick),
        peer: { name: AMPLE, values: byContender.builtIn.map(pick) },
        ...(aim === undefined ? {} : { aim: { of: 'ratio', atMost: aim } }),
      });
    }
  },
};
