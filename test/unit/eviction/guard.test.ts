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
  reviewGuard,
  tripText,
  unheard,
} from '#shared/eviction/guard.ts';
import { DEFAULT_POLICY, type GuardPolicy, type ReleasedTrip, type Trip } from '#shared/eviction/policy.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { at } from './builders.ts';

const POLICY = DEFAULT_POLICY.guard;
const SHADOW: GuardPolicy = { ...POLICY, shadow: true };
const MINUTES = 60;

const down = (nodes: number, outOf: number): Affected => ({ nodes, outOf });
const NONE = down(0, 0);
const NOTHING: Guarded = { trips: [], released: [], episodes: [] };
const counts = (fields: Partial<GuardCounts>): GuardCounts => ({
  cluster: NONE,
  zones: new Map(),
  people: NONE,
  ...fields,
});
const ofCluster = (nodes: number, outOf = 60) => counts({ cluster: down(nodes, outOf) });
const ofZones = (zones: Readonly<Record<string, Affected>>) =>
  counts({ zones: new Map(Object.entries(zones)) });
const ofPeople = (nodes: number, outOf = 60) => counts({ people: down(nodes, outOf) });

/** What stands, and what is remembered, as a relay keeps it. */
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

  /** Somebody releases everything. */
  release(): void {
    this.trips = [];
  }
}

const scopes = (trips: readonly Trip[]) => trips.map(({ scope, zone }) => zone ?? scope);
const trippedBy = (given: GuardCounts, policy = POLICY) =>
  scopes(reviewGuard(policy, given, NOTHING, at(0)).added);

test('what tripped reads as how many of how many nodes, and where', () => {
  const of = { nodes: 12, total: 60 };
  assert.equal(tripText({ scope: 'cluster', ...of }), '12 of 60 nodes are down');
  assert.equal(tripText({ scope: 'zone', zone: 'a', ...of }), '12 of 60 nodes are down in zone a');
  assert.equal(tripText({ scope: 'people', ...of }), '12 of 60 nodes were tainted by people');
});

describe('an episode', () => {
  const kinds = ({ episodes }: Guarded) => episodes.map(({ kind }) => kind);

  test('is of what the guard holds, of what somebody released, or of what it only told', () => {
    const kept = new Kept();
    for (const second of [0, 60]) assert.deepEqual(kinds(kept.review(ofCluster(12), second)), ['held']);
    kept.release();
    for (const second of [120, 180])
      assert.deepEqual(kinds(kept.review(ofCluster(12), second)), ['released']);
    kept.policy = SHADOW;
    for (const second of [240, 300]) assert.deepEqual(kinds(kept.review(ofCluster(12), second)), ['told']);
  });

  test('that is only told is told once, for as long as it lasts', () => {
    const kept = new Kept();
    kept.policy = SHADOW;
    const told = [0, 60, 120, 180].map((second) => kept.review(ofCluster(12), second).wouldTrip.length);
    assert.deepEqual(told, [1, 0, 0, 0]);
  });

  test('of a zone is its own: another zone trips beside it', () => {
    const kept = new Kept();
    kept.review(ofZones({ a: down(11, 20) }), 0);
    const { added, trips } = kept.review(ofZones({ a: down(11, 20), b: down(11, 20) }), 60);
    assert.deepEqual([scopes(added), scopes(trips).toSorted()], [['b'], ['a', 'b']]);
  });

  test('that was released is calm since it was calm itself, not since the guard that held was', () => {
    const trip: Trip = { scope: 'cluster', trippedAt: at(0), nodes: 12, outOf: 60 };
    const released = [{ ...trip, upTo: 12 }];
    for (const episodes of [[], [{ kind: 'held', trip, calmSince: at(0) } as const]]) {
      const review = reviewGuard(POLICY, ofCluster(1), { trips: [], released, episodes }, at(600));
      assert.deepEqual(review.episodes, [{ kind: 'released', trip: released[0], calmSince: at(600) }]);
    }
  });
});

describe('the guard trips', () => {
  test('when the percentage and the number of nodes are reached, and not one node sooner', () => {
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

  test('for each zone by its own nodes', () => {
    assert.deepEqual(trippedBy(ofZones({ a: down(10, 20), b: down(11, 20), c: down(3, 3) })), ['b', 'c']);
  });

  test('for no zone with fewer nodes than the threshold says, also when all of them are down', () => {
    assert.deepEqual(trippedBy(ofZones({ a: down(1, 1), b: down(2, 2) })), []);
  });

  test('when people taint so many nodes', () => {
    assert.deepEqual(trippedBy(ofPeople(17)), []);
    assert.deepEqual(trippedBy(ofPeople(18)), ['people']);
    assert.deepEqual(trippedBy(ofPeople(4, 4)), []);
  });

  test('for nothing that policy does not watch', () => {
    const given = counts({
      cluster: down(60, 60),
      zones: new Map([['a', down(20, 20)]]),
      people: down(60, 60),
    });
    assert.deepEqual(trippedBy(given, { shadow: false }), []);
  });

  test('and says when, and how many nodes of how many were affected', () => {
    const { trips } = reviewGuard(POLICY, ofZones({ a: down(15, 20) }), NOTHING, at(7));
    assert.deepEqual(trips, [{ scope: 'zone', zone: 'a', trippedAt: at(7), nodes: 15, outOf: 20 }]);
  });
});

describe('a trip', () => {
  test('stays the same while it stands, whatever the counts', () => {
    const guarded = new Kept();
    const { trips } = guarded.review(ofCluster(12), 0);
    for (const nodes of [13, 60, 7, 12]) {
      const review = guarded.review(ofCluster(nodes), nodes);
      assert.deepEqual(review.trips, trips);
      assert.deepEqual(review.added, []);
    }
  });

  test('ends after five minutes under half of its threshold, to the moment', () => {
    const guarded = new Kept();
    guarded.review(ofCluster(12), 0);
    // Six of twelve is half.
    guarded.review(ofCluster(6), 10);
    guarded.review(ofCluster(5), 20);
    assert.deepEqual(guarded.review(ofCluster(5), 20 + 5 * MINUTES - 1).ended, []);
    assert.deepEqual(guarded.review(ofCluster(5), 20 + 5 * MINUTES).ended, ['cluster']);
    assert.deepEqual(guarded.trips, []);
    assert.deepEqual(guarded.episodes, []);
  });

  test('stands on when half is reached again meanwhile', () => {
    const guarded = new Kept();
    guarded.review(ofCluster(12), 0);
    guarded.review(ofCluster(5), 10);
    guarded.review(ofCluster(6), 200);
    guarded.review(ofCluster(5), 210);
    assert.deepEqual(guarded.review(ofCluster(5), 10 + 5 * MINUTES).ended, []);
    assert.deepEqual(guarded.review(ofCluster(5), 210 + 5 * MINUTES).ended, ['cluster']);
  });

  test('stands on when nobody heard the cluster meanwhile', () => {
    const guarded = new Kept();
    guarded.review(ofCluster(12), 0);
    guarded.review(ofCluster(5), 10);
    guarded.episodes = unheard(guarded.episodes);
    assert.deepEqual(guarded.review(ofCluster(5), 1000).ended, []);
  });

  test('of nodes that are all gone ends, too', () => {
    const guarded = new Kept();
    guarded.review(counts({ cluster: down(2, 2), zones: new Map([['a', down(20, 20)]]) }), 0);
    assert.deepEqual(scopes(guarded.trips), ['cluster', 'a']);
    guarded.review(counts({}), 1);
    assert.deepEqual(guarded.review(counts({}), 1 + 5 * MINUTES).ended, ['cluster', 'a']);
  });

  test('that was stored before is taken as it is', () => {
    const guarded = new Kept();
    guarded.trips = [{ scope: 'cluster', trippedAt: at(-900), nodes: 20, outOf: 60 }];
    assert.deepEqual(guarded.review(ofCluster(30), 0).trips, guarded.trips);
    guarded.review(ofCluster(0), 10);
    assert.deepEqual(guarded.review(ofCluster(0), 10 + 5 * MINUTES).ended, ['cluster']);
  });

  test('ends when policy does not watch its scope any more', () => {
    const guarded = new Kept();
    guarded.review(ofCluster(30), 0);
    guarded.policy = { shadow: false };
    assert.deepEqual(guarded.review(ofCluster(30), 1).ended, ['cluster']);
  });
});

describe('what somebody released', () => {
  const released = (nodes: number) => {
    const guarded = new Kept();
    guarded.review(ofCluster(12), 0);
    guarded.review(ofCluster(nodes), 1);
    guarded.release();
    assert.deepEqual(guarded.review(ofCluster(nodes), 2).added, []);
    return guarded;
  };

  test('does not trip again by the same nodes, nor when some of them come and go', () => {
    const guarded = released(20);
    for (const [index, nodes] of [20, 12, 7, 20].entries())
      assert.deepEqual(guarded.review(ofCluster(nodes), 3 + index).added, []);
  });

  test('trips again by one node more', () => {
    const guarded = released(20);
    assert.deepEqual(scopes(guarded.review(ofCluster(21), 3).added), ['cluster']);
    assert.deepEqual(guarded.trips, [{ scope: 'cluster', trippedAt: at(3), nodes: 21, outOf: 60 }]);
  });

  test('stays so for who knows nothing but what is stored', () => {
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

  test('stays so when it is released once more', () => {
    const guarded = released(20);
    guarded.released = [];
    assert.deepEqual(guarded.review(ofCluster(20), 3).added, []);
    assert.equal(guarded.released.length, 1);
  });

  test('is forgotten, and its mark with it, once it was calm for five minutes', () => {
    const guarded = released(20);
    guarded.review(ofCluster(5), 10);
    guarded.review(ofCluster(5), 10 + 5 * MINUTES);
    assert.deepEqual([guarded.released, guarded.episodes], [[], []]);
  });

  test('trips again as anything does once it was calm for five minutes', () => {
    const guarded = released(20);
    guarded.review(ofCluster(5), 10);
    guarded.review(ofCluster(5), 10 + 5 * MINUTES);
    assert.deepEqual(scopes(guarded.review(ofCluster(12), 20 + 5 * MINUTES).added), ['cluster']);
  });
});

describe('in shadow the guard', () => {
  test('tells once that it would have tripped, and once more after it was calm', () => {
    const guarded = new Kept();
    guarded.policy = SHADOW;
    assert.deepEqual(scopes(guarded.review(ofCluster(12), 0).wouldTrip), ['cluster']);
    assert.deepEqual(guarded.review(ofCluster(40), 1).wouldTrip, []);
    guarded.review(ofCluster(0), 2);
    guarded.review(ofCluster(0), 2 + 5 * MINUTES);
    assert.deepEqual(scopes(guarded.review(ofCluster(12), 3 + 5 * MINUTES).wouldTrip), ['cluster']);
  });

  test('lets go what it held before', () => {
    const guarded = new Kept();
    guarded.review(ofCluster(12), 0);
    guarded.policy = SHADOW;
    const review = guarded.review(ofCluster(12), 1);
    assert.deepEqual(review.ended, ['cluster']);
    assert.deepEqual(scopes(review.wouldTrip), ['cluster']);
  });

  test('holds as soon as it is in shadow no longer', () => {
    const guarded = new Kept();
    guarded.policy = SHADOW;
    guarded.review(ofCluster(12), 0);
    guarded.policy = POLICY;
    assert.deepEqual(scopes(guarded.review(ofCluster(12), 1).added), ['cluster']);
  });
});

/** Counts of one cluster over time, two minutes apart at most. */
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

/** The threshold in its plainest form. */
const reaches = (nodes: number, outOf: number) => nodes === outOf || (nodes / outOf >= 0.2 && nodes >= 3);

test('below its thresholds the guard never trips, and at them it always holds', () => {
  fc.assert(
    fc.property(history, (given) => {
      for (const { nodes, review } of played(given)) {
        if (reaches(nodes, given.outOf)) assert.deepEqual(scopes(review.trips), ['cluster']);
        else assert.deepEqual(review.added, []);
      }
    }),
  );
});

test('the guard does not flap: it lets go only after five minutes, all of them under half', () => {
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

test('in shadow nothing is ever held', () => {
  fc.assert(
    fc.property(history, (given) => {
      for (const { review } of played(given, SHADOW)) assert.deepEqual(review.trips, []);
    }),
  );
});
