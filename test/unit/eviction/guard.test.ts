import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type Affected,
  CALM_MS,
  type Episode,
  type GuardCounts,
  type Guarded,
  type GuardReview,
  progressOf,
  reportOf,
  reviewGuard,
  tripText,
  unreported,
} from '#shared/eviction/guard.ts';
import { DEFAULT_POLICY, type GuardPolicy, type ReleasedTrip, type Trip } from '#shared/eviction/policy.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { at } from './builders.ts';

const POLICY = DEFAULT_POLICY.guard;
const SHADOW: GuardPolicy = { ...POLICY, dryRun: true };
const MINUTES = 60;

const down = (nodes: number, outOf: number): Affected => ({ nodes, outOf });
const NONE = down(0, 0);
const NOTHING: Guarded = { trips: [], released: [], episodes: [] };
const counts = (fields: Partial<GuardCounts>): GuardCounts => ({
  cluster: NONE,
  zones: new Map(),
  customTaints: NONE,
  ...fields,
});
const ofCluster = (nodes: number, outOf = 60) => counts({ cluster: down(nodes, outOf) });
const ofZones = (zones: Readonly<Record<string, Affected>>) =>
  counts({ zones: new Map(Object.entries(zones)) });
const ofPeople = (nodes: number, outOf = 60) => counts({ customTaints: down(nodes, outOf) });

/** The trips, releases and episodes of a guard, as a relay keeps them. */
class Kept implements Guarded {
  trips: readonly Trip[] = [];
  released: readonly ReleasedTrip[] = [];
  episodes: readonly Episode[] = [];
  policy = POLICY;

  review(given: GuardCounts, second: number): GuardReview & { readonly ended: readonly string[] } {
    const review = reviewGuard(this.policy, given, this, at(second));
    const ended = scopes(this.trips.filter((trip) => !review.trips.includes(trip)));
    this.trips = review.trips;
    this.released = review.released;
    this.episodes = review.episodes;
    return { ...review, ended };
  }

  /** Releases all trips, as an operator does. */
  release(): void {
    this.trips = [];
  }
}

const scopes = (trips: readonly Trip[]) => trips.map(({ scope, zone }) => zone ?? scope);
const trippedBy = (given: GuardCounts, policy = POLICY) =>
  scopes(reviewGuard(policy, given, NOTHING, at(0)).added);

test('describes a trip by its affected nodes, all nodes and the scope', () => {
  const counted = { nodes: 12, total: 60 };
  assert.equal(tripText({ scope: 'cluster', ...counted }), '12 of 60 nodes down');
  assert.equal(tripText({ scope: 'zone', zone: 'a', ...counted }), '12 of 60 nodes down in zone a');
  assert.equal(tripText({ scope: 'customTaints', ...counted }), '12 of 60 nodes with custom taints');
});

describe('the progress of a trip', () => {
  const progress = (kept: Kept, given: GuardCounts, second: number) =>
    progressOf(kept.policy, given, kept, at(second));

  test('counts the affected nodes of now, and has no time of reset until they are fewer than half', () => {
    const kept = new Kept();
    kept.review(ofCluster(13), 0);
    const about = { scope: 'cluster', trippedAt: at(0), resetsBelow: 6 };
    assert.deepEqual(progress(kept, ofCluster(9), 60), [{ ...about, affectedNow: 9 }]);
    kept.review(ofCluster(6), 60);
    assert.deepEqual(progress(kept, ofCluster(6), 60), [{ ...about, affectedNow: 6 }]);
    kept.review(ofCluster(5), 120);
    const calm = { ...about, affectedNow: 5, resetsAt: at(120) + CALM_MS };
    assert.deepEqual(progress(kept, ofCluster(5), 200), [calm]);
    assert.deepEqual(progress(kept, ofCluster(8), 200), [{ ...about, affectedNow: 8 }]);
    assert.equal(kept.review(ofCluster(5), 120 + CALM_MS / 1000).trips.length, 0, 'it resets then');
  });

  test('is of each tripped zone, and of no released, reported, or unwatched scope', () => {
    const kept = new Kept();
    kept.review(ofZones({ a: down(11, 20), b: down(12, 20), c: down(1, 20) }), 0);
    const found = progress(kept, ofZones({ a: down(11, 20) }), 60);
    assert.deepEqual(
      found.map(({ zone, affectedNow }) => [zone, affectedNow]),
      [
        ['a', 11],
        ['b', 0],
      ],
    );
    const { zone: _zone, ...unwatched } = kept.policy;
    assert.deepEqual(progressOf(unwatched, ofZones({}), kept, at(60)), []);
    kept.release();
    assert.deepEqual(progress(kept, ofZones({ a: down(11, 20) }), 60), []);
  });

  test('measures by the stopwatch when the clock is set', () => {
    const trip: Trip = { scope: 'cluster', trippedAt: at(0), nodes: 12, outOf: 60 };
    const guarded = { trips: [trip], episodes: [{ kind: 'held', trip, calmSince: 1_000 } as const] };
    const [found] = progressOf(POLICY, ofCluster(0), guarded, at(900), 61_000.4);
    assert.equal(found?.resetsAt, at(900) + CALM_MS - 60_000);
  });

  test('belongs to this trip, not to an earlier one of the scope', () => {
    const trip: Trip = { scope: 'zone', zone: 'a', trippedAt: at(0), nodes: 12, outOf: 60 };
    const progress = { affectedNow: 1, resetsBelow: 6, scope: 'zone', zone: 'a', trippedAt: at(0) } as const;
    assert.equal(reportOf(trip, [progress]).affectedNow, 1);
    for (const other of [{ trippedAt: at(1) }, { zone: 'b' }, { scope: 'customTaints' as const }])
      assert.equal(reportOf(trip, [{ ...progress, ...other }]).affectedNow, undefined);
  });
});

describe('an episode', () => {
  const kinds = ({ episodes }: Guarded) => episodes.map(({ kind }) => kind);

  test('is of a held, a released or a reported trip', () => {
    const kept = new Kept();
    for (const second of [0, 60]) assert.deepEqual(kinds(kept.review(ofCluster(12), second)), ['held']);
    kept.release();
    for (const second of [120, 180])
      assert.deepEqual(kinds(kept.review(ofCluster(12), second)), ['released']);
    kept.policy = SHADOW;
    for (const second of [240, 300]) assert.deepEqual(kinds(kept.review(ofCluster(12), second)), ['told']);
  });

  test('belongs to a zone, so that another zone trips independently', () => {
    const kept = new Kept();
    kept.review(ofZones({ a: down(11, 20) }), 0);
    const { added, trips } = kept.review(ofZones({ a: down(11, 20), b: down(11, 20) }), 60);
    assert.deepEqual([scopes(added), scopes(trips).toSorted()], [['b'], ['a', 'b']]);
  });

  test('keeps its own recovery time after a release, not the recovery time of the held trip', () => {
    const trip: Trip = { scope: 'cluster', trippedAt: at(0), nodes: 12, outOf: 60 };
    const released = [{ ...trip, upTo: 12 }];
    for (const episodes of [[], [{ kind: 'held', trip, calmSince: at(0) } as const]]) {
      const review = reviewGuard(POLICY, ofCluster(1), { trips: [], released, episodes }, at(600));
      assert.deepEqual(review.episodes, [{ kind: 'released', trip: released[0], calmSince: at(600) }]);
    }
  });
});

describe('the guard trips', () => {
  test('at exactly the percentage and the number of nodes', () => {
    assert.deepEqual(trippedBy(ofCluster(11)), []);
    assert.deepEqual(trippedBy(ofCluster(12)), ['cluster']);
    assert.deepEqual(trippedBy(ofCluster(199, 1000)), []);
    assert.deepEqual(trippedBy(ofCluster(200, 1000)), ['cluster']);
    assert.deepEqual(trippedBy(ofCluster(2, 4)), []);
    assert.deepEqual(trippedBy(ofCluster(3, 4)), ['cluster']);
  });

  test('when all nodes of the cluster are down, however few, and not for a cluster without nodes', () => {
    assert.deepEqual(trippedBy(ofCluster(1, 1)), ['cluster']);
    assert.deepEqual(trippedBy(ofCluster(2, 2)), ['cluster']);
    assert.deepEqual(trippedBy(ofCluster(1, 2)), []);
    assert.deepEqual(trippedBy(ofCluster(0, 0)), []);
  });

  test('for each zone by the nodes of the zone', () => {
    assert.deepEqual(trippedBy(ofZones({ a: down(10, 20), b: down(11, 20), c: down(3, 3) })), ['b', 'c']);
  });

  test('for no zone with fewer nodes than the threshold, also when all of them are down', () => {
    assert.deepEqual(trippedBy(ofZones({ a: down(1, 1), b: down(2, 2) })), []);
  });

  test('when users taint that many nodes', () => {
    assert.deepEqual(trippedBy(ofPeople(17)), []);
    assert.deepEqual(trippedBy(ofPeople(18)), ['customTaints']);
    assert.deepEqual(trippedBy(ofPeople(4, 4)), []);
  });

  test('for no scope that policy does not watch', () => {
    const given = counts({
      cluster: down(60, 60),
      zones: new Map([['a', down(20, 20)]]),
      customTaints: down(60, 60),
    });
    assert.deepEqual(trippedBy(given, { dryRun: false }), []);
  });

  test('with the time and the counts of affected and all nodes', () => {
    const { trips } = reviewGuard(POLICY, ofZones({ a: down(15, 20) }), NOTHING, at(7));
    assert.deepEqual(trips, [{ scope: 'zone', zone: 'a', trippedAt: at(7), nodes: 15, outOf: 20 }]);
  });
});

describe('a trip', () => {
  test('stays the same while it is active, for any counts', () => {
    const guarded = new Kept();
    const { trips } = guarded.review(ofCluster(12), 0);
    for (const nodes of [13, 60, 7, 12]) {
      const review = guarded.review(ofCluster(nodes), nodes);
      assert.deepEqual(review.trips, trips);
      assert.deepEqual(review.added, []);
    }
  });

  test('ends after exactly five minutes below half of its threshold', () => {
    const guarded = new Kept();
    guarded.review(ofCluster(12), 0);
    // Six is half of the threshold of twelve.
    guarded.review(ofCluster(6), 10);
    guarded.review(ofCluster(5), 20);
    assert.deepEqual(guarded.review(ofCluster(5), 20 + 5 * MINUTES - 1).ended, []);
    assert.deepEqual(guarded.review(ofCluster(5), 20 + 5 * MINUTES).ended, ['cluster']);
    assert.deepEqual(guarded.trips, []);
    assert.deepEqual(guarded.episodes, []);
  });

  test('continues when the cluster was disconnected meanwhile', () => {
    const guarded = new Kept();
    guarded.review(ofCluster(12), 0);
    guarded.review(ofCluster(5), 10);
    guarded.episodes = unreported(guarded.episodes);
    assert.deepEqual(guarded.review(ofCluster(5), 1000).ended, []);
  });

  test('ends when all of its nodes are deleted', () => {
    const guarded = new Kept();
    guarded.review(counts({ cluster: down(2, 2), zones: new Map([['a', down(20, 20)]]) }), 0);
    assert.deepEqual(scopes(guarded.trips), ['cluster', 'a']);
    guarded.review(counts({}), 1);
    assert.deepEqual(guarded.review(counts({}), 1 + 5 * MINUTES).ended, ['cluster', 'a']);
  });

  test('is kept when it was stored before', () => {
    const guarded = new Kept();
    guarded.trips = [{ scope: 'cluster', trippedAt: at(-900), nodes: 20, outOf: 60 }];
    assert.deepEqual(guarded.review(ofCluster(30), 0).trips, guarded.trips);
    guarded.review(ofCluster(0), 10);
    assert.deepEqual(guarded.review(ofCluster(0), 10 + 5 * MINUTES).ended, ['cluster']);
  });

  test('ends when policy no longer watches its scope', () => {
    const guarded = new Kept();
    guarded.review(ofCluster(30), 0);
    guarded.policy = { dryRun: false };
    assert.deepEqual(guarded.review(ofCluster(30), 1).ended, ['cluster']);
  });
});

describe('a released trip', () => {
  const released = (nodes: number) => {
    const guarded = new Kept();
    guarded.review(ofCluster(12), 0);
    guarded.review(ofCluster(nodes), 1);
    guarded.release();
    assert.deepEqual(guarded.review(ofCluster(nodes), 2).added, []);
    return guarded;
  };

  test('does not trip again for the same nodes, or when some of them recover and fail again', () => {
    const guarded = released(20);
    for (const [index, nodes] of [20, 12, 7, 20].entries())
      assert.deepEqual(guarded.review(ofCluster(nodes), 3 + index).added, []);
  });

  test('trips again for one more node', () => {
    const guarded = released(20);
    assert.deepEqual(scopes(guarded.review(ofCluster(21), 3).added), ['cluster']);
    assert.deepEqual(guarded.trips, [{ scope: 'cluster', trippedAt: at(3), nodes: 21, outOf: 60 }]);
  });

  test('stays released in a process that has only the stored state', () => {
    const guarded = released(20);
    assert.deepEqual(
      guarded.released.map(({ upTo }) => upTo),
      [20],
    );
    guarded.episodes = [];
    assert.deepEqual(guarded.review(ofCluster(20), 3).added, []);
    assert.deepEqual(scopes(guarded.review(ofCluster(21), 4).added), ['cluster']);
    assert.deepEqual(guarded.released, []);
  });

  test('stays released when it is released again', () => {
    const guarded = released(20);
    guarded.released = [];
    assert.deepEqual(guarded.review(ofCluster(20), 3).added, []);
    assert.equal(guarded.released.length, 1);
  });

  test('is removed, with its mark, after five minutes of recovery, and trips again at the usual threshold', () => {
    const guarded = released(20);
    guarded.review(ofCluster(5), 10);
    guarded.review(ofCluster(5), 10 + 5 * MINUTES);
    assert.deepEqual([guarded.released, guarded.episodes], [[], []]);
    assert.deepEqual(scopes(guarded.review(ofCluster(12), 20 + 5 * MINUTES).added), ['cluster']);
  });
});

describe('the guard in dry run', () => {
  test('reports once that it would have tripped, and again after a recovery', () => {
    const guarded = new Kept();
    guarded.policy = SHADOW;
    assert.deepEqual(scopes(guarded.review(ofCluster(12), 0).wouldTrip), ['cluster']);
    for (const second of [1, 60]) assert.deepEqual(guarded.review(ofCluster(40), second).wouldTrip, []);
    guarded.review(ofCluster(0), 62);
    guarded.review(ofCluster(0), 62 + 5 * MINUTES);
    assert.deepEqual(scopes(guarded.review(ofCluster(12), 63 + 5 * MINUTES).wouldTrip), ['cluster']);
  });

  test('releases the trips of enforcement', () => {
    const guarded = new Kept();
    guarded.review(ofCluster(12), 0);
    guarded.policy = SHADOW;
    const review = guarded.review(ofCluster(12), 1);
    assert.deepEqual(review.ended, ['cluster']);
    assert.deepEqual(scopes(review.wouldTrip), ['cluster']);
  });

  test('trips as soon as dry run ends', () => {
    const guarded = new Kept();
    guarded.policy = SHADOW;
    guarded.review(ofCluster(12), 0);
    guarded.policy = POLICY;
    assert.deepEqual(scopes(guarded.review(ofCluster(12), 1).added), ['cluster']);
  });
});

/** Node counts of a cluster over time, at most two minutes apart. */
const history = fc.integer({ min: 1, max: 40 }).chain((outOf) =>
  fc.record({
    outOf: fc.constant(outOf),
    steps: fc.array(
      fc.record({
        nodes: fc.oneof(
          { weight: 3, arbitrary: fc.constantFrom(0, 1) },
          { weight: 1, arbitrary: fc.integer({ min: 0, max: outOf }) },
        ),
        afterMs: fc.integer({ min: 0, max: 120_000 }),
      }),
      { minLength: 1, maxLength: 60 },
    ),
  }),
);

interface History {
  readonly outOf: number;
  readonly steps: readonly { readonly nodes: number; readonly afterMs: number }[];
}

interface Seen {
  readonly now: EpochMs;
  readonly nodes: number;
  readonly review: GuardReview;
}

function played({ outOf, steps }: History, policy = POLICY) {
  const seen: Seen[] = [];
  let given: Guarded = NOTHING;
  let now = at(0);
  for (const { nodes, afterMs } of steps) {
    now += afterMs;
    const review = reviewGuard(policy, ofCluster(nodes, outOf), given, now);
    seen.push({ now, nodes, review });
    given = review;
  }
  return seen;
}

/** Reports whether counts reach the threshold, by a direct formula. */
const reaches = (nodes: number, outOf: number) => nodes === outOf || (nodes / outOf >= 0.2 && nodes >= 3);

test('the guard never trips below its thresholds, and always holds at its thresholds', () => {
  fc.assert(
    fc.property(history, (given) => {
      for (const { nodes, review } of played(given)) {
        if (reaches(nodes, given.outOf)) assert.deepEqual(scopes(review.trips), ['cluster']);
        else assert.deepEqual(review.added, []);
      }
    }),
  );
});

test('the guard does not flap: a trip ends only after five minutes below half of the threshold', () => {
  fc.assert(
    fc.property(history, (given) => {
      const seen = played(given);
      const half = Math.min(given.outOf, Math.max(given.outOf * 0.2, 3)) / 2;
      for (const [index, { now, review }] of seen.entries()) {
        const stood = seen[index - 1]?.review.trips ?? [];
        if (stood.every((trip) => review.trips.includes(trip))) continue;
        const before = seen.slice(0, index + 1);
        const lastLoud = before.findLastIndex(({ nodes }) => nodes > 0 && nodes >= half);
        const calm = before[lastLoud + 1];
        assert.ok(calm && now - calm.now >= CALM_MS);
      }
    }),
    { numRuns: 500 },
  );
});

test('the guard never holds in dry run', () => {
  fc.assert(
    fc.property(history, (given) => {
      for (const { review } of played(given, SHADOW)) assert.deepEqual(review.trips, []);
    }),
  );
});
