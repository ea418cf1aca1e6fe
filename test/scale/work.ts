import type { TestContext } from 'node:test';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import { SeededRandom } from '#test/simulation/seeded-random.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import type { Shape } from './counted-cluster.ts';
import { AFTERMATH_MS, CLEARED_MS, type Counts, countFleet } from './counted-fleet.ts';
import { each } from './counts.ts';

/** What nodes of so many pods make of AWS and of API servers to ask for: each number is a node's share. */
export interface Work {
  /** A node is tainted, its pods count down and go. */
  readonly tainted: Counts;
  /** A node that has no pods any more stays tainted: once every ten minutes its relay tells of it anew. */
  readonly resynced: Counts;
  /** A node is free of its taint. */
  readonly cleared: Counts;
}

const NOW = Date.UTC(2026, 10, 22);

/** Counts the work of nodes of that shape by the service itself; what it does anyway is taken off. */
export async function countWork(
  context: Pick<TestContext, 'mock' | 'after'>,
  { clusters = 1, ...shape }: Shape & { readonly clusters?: number },
): Promise<Work> {
  context.mock.method(Math, 'random', new SeededRandom(clusters * 1000 + shape.nodes).next);
  const time = driveTimers(context, NOW);
  const { idle, tainted, standing, cleared } = await countFleet(time, { clusters, ...shape });
  const nodes = clusters * shape.nodes;
  if (tainted.nodeDeltas.messages !== nodes) {
    throw new Error(
      'The ten minutes were over meanwhile, and nodes were told of twice: count another shape.',
    );
  }
  const share = (counts: Counts, ms: number) =>
    each(counts, idle, (all, anyway) => (all - (anyway * ms) / RESYNC_MS) / nodes);
  return {
    tainted: share(tainted, shape.tolerationSeconds * 1000 + AFTERMATH_MS),
    resynced: share(standing, RESYNC_MS),
    cleared: share(cleared, CLEARED_MS),
  };
}
