import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ClusterFaults } from '#shared/engine/watch/cluster-faults.ts';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { CALM_MS, type Episode, type GuardCounts, reviewGuard } from '#shared/eviction/guard.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Trip } from '#shared/eviction/policy.ts';
import { liveNode } from '#test/unit/engine/watch/live-objects.ts';
import { SteppedClock } from '#test/world/stepped-clock.ts';

const NOW = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const C1 = clusterName('c1');

/**
 * Starts something with a limited duration and returns a function that reports whether it still lasts. The function
 * must be called once, because a call may restart the duration.
 */
type Lasting = (clock: SteppedClock) => Promise<() => boolean | Promise<boolean>>;

const TRIP: Trip = { scope: 'cluster', trippedAt: NOW, nodes: 5, outOf: 10 };
const WELL: GuardCounts = {
  cluster: { nodes: 0, outOf: 10 },
  zones: new Map(),
  customTaints: { nodes: 0, outOf: 10 },
};
const { guard: GUARD } = DEFAULT_POLICY;
const WINDOW_MS = GUARD.customTaints?.windowMs ?? 0;

/** Waits that end by the stopwatch alone. */
const WAITING: Readonly<Record<string, readonly [lastsMs: number, Lasting]>> = {
  'a guard that recovers': [
    CALM_MS,
    async (clock) => {
      let episodes: readonly Episode[] = [];
      const holds = () => {
        const guarded = { trips: [TRIP], released: [], episodes };
        const review = reviewGuard(GUARD, WELL, guarded, clock.now(), clock.stopwatch());
        ({ episodes } = review);
        return review.trips.length > 0;
      };
      holds();
      return holds;
    },
  ],
  'the window in which nodes are tainted by people': [
    WINDOW_MS + 1,
    async (clock) => {
      const view = new ClusterView(C1, 1, clock);
      view.replaceNodes([liveNode('n1')], clock.now());
      view.upsertNode(liveNode('n1', 'maintenance'), clock.now());
      return () =>
        view.tally.counts(Number.POSITIVE_INFINITY, clock.stopwatch() - WINDOW_MS).customTaints.nodes === 1;
    },
  ],
  'a fault that ends by itself': [
    10 * MINUTE,
    async (clock) => {
      const faults = new ClusterFaults(clock);
      faults.begin({ type: 'store-failing' }, new Error('away'), { lastsMs: 10 * MINUTE });
      return () => faults.list.length === 1;
    },
  ],
};

async function begin(lasting: Lasting) {
  const clock = new SteppedClock(NOW);
  return { clock, lasts: await lasting(clock) };
}

for (const [what, [lastsMs, lasting]] of Object.entries(WAITING))
  describe(`${what} while the clock is set`, () => {
    for (const [how, setMs] of [
      ['forward', HOUR],
      ['back', -HOUR],
    ] as const)
      test(`lasts neither longer nor shorter when the clock is set ${how}`, async () => {
        const early = await begin(lasting);
        early.clock.set(setMs);
        early.clock.pass(lastsMs - 1);
        assert.equal(await early.lasts(), true);
        const late = await begin(lasting);
        late.clock.pass(lastsMs / 2);
        late.clock.set(setMs);
        late.clock.pass(lastsMs / 2 + 1);
        assert.equal(await late.lasts(), false);
      });
  });
