import { type Scenario, takingTurns } from '#test/bench/scenario.ts';
import { quantile } from '#test/cluster/rig/figures.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { AMPLE, AMPLE_REQUESTS_PER_SECOND, builtIn, type Contender, ours } from './contender.ts';
import { Population } from './population.ts';

const RUNS = 3;
const SHAPE = { nodes: 20, podsPerNode: 50 };
/** Enough seconds for all nodes to be tainted and observed. */
const FIRST_SECONDS = 5;
const SPREAD_SECONDS = 30;
const TAINT_KEY = 'bench';
const WITHIN_MS = 120_000;

/** Measures a thousand countdowns that end one after the other. */
export const deadlines: Scenario = {
  about: `${SHAPE.nodes * SHAPE.podsPerNode} countdowns over ${SPREAD_SECONDS} s: by how much each is missed`,
  async run(report, { runs = RUNS, short }) {
    const secondsOf = (pod: number) => (short ? 1 : FIRST_SECONDS + (pod % SPREAD_SECONDS));
    await using population = await Population.on({
      ...(short ? { nodes: 1, podsPerNode: 5 } : SHAPE),
      tolerations: (pod) => [tolerates(TAINT_KEY, secondsOf(pod))],
    });
    const errors = async (contender: Contender) => {
      const { pods } = await population.evictedBy(contender, WITHIN_MS);
      return pods.map(({ number, evictedAt = Number.NaN, tainted }) => ({
        // The node was tainted at some time between those two.
        atLeast: evictedAt - tainted.seenAt - secondsOf(number) * 1000,
        atMost: evictedAt - tainted.requestedAt - secondsOf(number) * 1000,
      }));
    };
    const byContender = await takingTurns(short ? 1 : runs, {
      ours: () => errors(ours),
      builtIn: () => errors(builtIn(AMPLE_REQUESTS_PER_SECOND)),
    });
    type Errors = Awaited<ReturnType<typeof errors>>;
    const p = (share: number) => (all: Errors) =>
      quantile(
        all.map(({ atLeast }) => atLeast),
        share,
      );
    for (const [what, pick, aim] of [
      ['late, p50', p(0.5), undefined],
      ['late, p99', p(0.99), { of: 'value', atMost: 250 }],
      [
        'late, the earliest',
        (all: Errors) =>
          quantile(
            all.map(({ atMost }) => atMost),
            0,
          ),
        { of: 'value', atLeast: 0 },
      ],
      ['late, the latest', p(1), undefined],
    ] as const) {
      report({
        what,
        unit: 'ms',
        ours: byContender.ours.map(pick),
        peer: { name: AMPLE, values: byContender.builtIn.map(pick) },
        ...(aim ? { aim } : {}),
      });
    }
  },
};
