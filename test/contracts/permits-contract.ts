import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { type ClusterName, podUid } from '#shared/eviction/identity.ts';
import { PERMIT_LASTS_MS } from '#shared/eviction/permits.ts';
import { type AskingPod, type Pace, TURNS_AHEAD_MS } from '#shared/eviction/rate.ts';
import type { Permits, WorkloadLimit } from '#shared/state/permits.ts';
import type { Stopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { aCluster, NOW } from './partition-builders.ts';

/** Permits under contract. */
export interface PermitsPlace {
  /**
   * Opens the permits of a process that evicts from now on, beside others or in place of the previous one. Its
   * stopwatch is in milliseconds.
   */
  open(stopwatch: Stopwatch): Permits;
  close(): Promise<void>;
}

export interface PermitsContract {
  /** True if processes share the permits at rates; otherwise one process follows the other. */
  readonly shared: boolean;
  /** The number of random histories; default: fast-check's. */
  readonly histories?: number;
}

/** Returns `count` pods that have not had a turn. */
export const waitingPods = (count: number, more: Partial<AskingPod> = {}): readonly AskingPod[] =>
  Array.from({ length: count }, () => ({ uid: podUid('p'), drains: false, inTurn: false, ...more }));

const RATE_OF_1: Pace = { evictionRate: 1, releaseRate: 50 };
const RATE_OF_2: Pace = { evictionRate: 2, releaseRate: 50 };
const DRAIN_OF_2: Pace = { releaseRate: 2 };

const HOUR_MS = 3_600_000;
/** A larger difference of clocks would block all evictions. */
const MAX_STEP_MS = 30_000;

/** Registers the tests that every implementation of permits has to pass. */
export function permitsContract(
  name: string,
  open: () => Promise<PermitsPlace>,
  { shared, histories = 100 }: PermitsContract,
): void {
  describe(`${name} keeps the contract of permits`, () => {
    let place: PermitsPlace;
    let stopwatchMs = 0;
    before(async () => {
      place = await open();
    });
    after(() => place.close());

    /** Opens the permits of a process that has evicted for an hour. */
    const longBegun = (): Permits => {
      const permits = place.open(() => stopwatchMs);
      stopwatchMs += HOUR_MS;
      return permits;
    };
    /** Returns a function that requests permits at a number of milliseconds after the beginning. */
    const asker = (permits: Permits, pace: Pace) => {
      const cluster = aCluster();
      const begunMs = stopwatchMs;
      return async (atMs: number, pods: readonly AskingPod[], given: Pace = pace) => {
        stopwatchMs = begunMs + atMs;
        const turns = await permits.take(cluster, pods, given, NOW + atMs);
        return turns.map((turn) => turn && (turn.turnAt === undefined ? 'later' : turn.turnAt - NOW));
      };
    };

    test('permits a second’s burst, and gives later turns at the rate', async () => {
      const take = asker(longBegun(), RATE_OF_2);
      const none = undefined;
      assert.deepEqual(await take(0, waitingPods(5)), [none, none, 1000, 1000, 2000]);
      assert.deepEqual(await take(1000, waitingPods(2, { inTurn: true })), [none, none]);
      assert.deepEqual(await take(2000, waitingPods(1, { inTurn: true })), [none]);
    });

    test('prefers pods that wait for their turn', async () => {
      const take = asker(longBegun(), RATE_OF_1);
      await take(0, waitingPods(4));
      assert.deepEqual(await take(1000, waitingPods(1)), [4000]);
      assert.deepEqual(await take(1000, waitingPods(1, { inTurn: true })), [undefined]);
    });

    test('permits no larger burst when many turns have passed', async () => {
      const take = asker(longBegun(), RATE_OF_2);
      await take(0, waitingPods(100));
      const turns = await take(90_000, waitingPods(100, { inTurn: true }));
      assert.equal(turns.filter((turn) => turn === undefined).length, 2);
    });

    test('gives no turn that is far ahead', async () => {
      const take = asker(longBegun(), RATE_OF_1);
      const turns = await take(0, waitingPods(1000));
      const given = turns.filter((turn) => typeof turn === 'number');
      assert.equal(Math.max(...given), TURNS_AHEAD_MS);
      assert.equal(given.length, 60);
      assert.deepEqual(await take(0, waitingPods(1)), ['later']);
      assert.deepEqual(await take(2 * TURNS_AHEAD_MS, waitingPods(1)), [undefined]);
    });

    test('limits released pods separately, and also by the eviction rate', async () => {
      const take = asker(longBegun(), DRAIN_OF_2);
      const released = waitingPods(3, { drains: true });
      assert.deepEqual(await take(0, released), [undefined, undefined, 1000]);
      assert.deepEqual(await take(0, released, { evictionRate: 100, releaseRate: 2 }), [1000, 2000, 2000]);
      const one = await take(60_000, waitingPods(3, { drains: true, inTurn: true }), {
        evictionRate: 1,
        releaseRate: 100,
      });
      assert.deepEqual(one.slice(0, 1), [undefined]);
      assert.ok(one.slice(1).every((turn) => turn !== undefined));
    });

    test('permits fewer evictions immediately when the rate is lowered', async () => {
      const take = asker(longBegun(), { evictionRate: 20, releaseRate: 50 });
      await take(0, waitingPods(100));
      const inTurn = waitingPods(20, { inTurn: true });
      const turns = [];
      for (let second = 1; second <= 60; second++)
        turns.push(...(await take(second * 1000, inTurn, { evictionRate: 0.1, releaseRate: 50 })));
      assert.ok(turns.filter((turn) => turn === undefined).length <= 7);
    });

    test('gives turns soon when a low rate is raised', async () => {
      const take = asker(longBegun(), { evictionRate: 0.02, releaseRate: 50 });
      assert.deepEqual(await take(0, waitingPods(3)), [undefined, 50_000, 'later']);
      const raised = { evictionRate: 20, releaseRate: 50 };
      assert.deepEqual(await take(1000, waitingPods(1), raised), [1000 + TURNS_AHEAD_MS]);
      assert.deepEqual(await take(1000, waitingPods(1, { inTurn: true }), raised), [undefined]);
    });

    test('limits clusters independently', async () => {
      const permits = longBegun();
      await asker(permits, RATE_OF_1)(0, waitingPods(50));
      assert.deepEqual(await asker(permits, RATE_OF_1)(0, waitingPods(1)), [undefined]);
    });

    test('recovers soon from permits that were taken at a clock far ahead', async () => {
      const permits = longBegun();
      const take = asker(permits, RATE_OF_1);
      await take(24 * HOUR_MS, waitingPods(70));
      stopwatchMs -= 24 * HOUR_MS;
      await take(0, waitingPods(1));
      assert.deepEqual(await take(2000, waitingPods(1, { inTurn: true })), [undefined]);
    });

    test('permits at most the rate and a second’s burst in any span of time, in any history', async () => {
      await fc.assert(
        fc.asyncProperty(history, (steps) => play(place, steps, shared)),
        { numRuns: histories },
      );
    });

    workloadContract(() => place.open(() => stopwatchMs));

    if (!shared) return;

    test('permits at most the same for all processes together, despite concurrent requests', async () => {
      const cluster = aCluster();
      const others = Array.from({ length: 8 }, () => longBegun());
      const turns = await Promise.all(
        others.map((each) => each.take(cluster, waitingPods(2), RATE_OF_2, NOW)),
      );
      const given = turns.flat().map((turn) => (turn?.turnAt ?? NOW) - NOW);
      assert.deepEqual(
        given.sort((a, b) => a - b),
        [0, 0, ...Array.from({ length: 14 }, (_, index) => 1000 + Math.floor(index / 2) * 1000)],
      );
    });
  });
}

const LIMIT: WorkloadLimit = { workload: 'default/Deployment/web', count: 3, windowMs: 600_000 };
/** Returns the time at which a permit that was taken at `at` lapses. */
const lapse = (at: number) => at + LIMIT.windowMs + PERMIT_LASTS_MS;

/** Registers the tests of the permits of workloads. `connect` opens the permits of another process, or after a restart. */
function workloadContract(connect: () => Permits): void {
  /** Takes permits of a process for named pods. Resolves with the times at which each may be evicted, or asks again. */
  const open = () => {
    const permits = connect();
    return async (cluster: ClusterName, names: readonly string[], limit: WorkloadLimit, now: EpochMs) => {
      const pods = names.map((name) => ({ uid: podUid(name), drains: false, inTurn: false }));
      const turns = await permits.take(cluster, pods, limit, now);
      return turns.map((turn) => (turn ? turn.notBefore : now));
    };
  };

  test('gives permits to as many pods as the limit allows, and returns the next lapse for others', async () => {
    const cluster = aCluster();
    const take = open();
    assert.deepEqual(await take(cluster, ['a'], LIMIT, NOW), [NOW]);
    const later = NOW + 1000;
    assert.deepEqual(await take(cluster, ['b', 'c', 'd', 'e', 'f', 'g'], LIMIT, later), [
      ...[later, later],
      ...[lapse(NOW), lapse(later), lapse(later), lapse(later)],
    ]);
  });

  test('keeps permits across processes until they lapse with the window', async () => {
    const cluster = aCluster();
    await open()(cluster, ['a', 'b', 'c'], LIMIT, NOW);
    const again = (at: number) => open()(cluster, ['d'], LIMIT, at);
    assert.deepEqual(await again(lapse(NOW) - 1), [lapse(NOW)]);
    assert.deepEqual(await again(lapse(NOW)), [lapse(NOW)]);
    assert.deepEqual(await open()(cluster, ['e', 'f', 'g'], LIMIT, lapse(NOW)), [
      ...[lapse(NOW), lapse(NOW)],
      lapse(lapse(NOW)),
    ]);
  });

  test('renews the permit of a pod that asks again', async () => {
    const cluster = aCluster();
    const take = open();
    await take(cluster, ['a', 'b', 'c'], LIMIT, NOW);
    const later = NOW + 60_000;
    assert.deepEqual(await take(cluster, ['d', 'a'], LIMIT, later), [lapse(NOW), later]);
    assert.deepEqual(await take(cluster, ['d', 'e', 'f'], LIMIT, lapse(NOW)), [
      ...[lapse(NOW), lapse(NOW)],
      lapse(later),
    ]);
  });

  test('gives fewer permits under a lower limit immediately', async () => {
    const cluster = aCluster();
    const take = open();
    await take(cluster, ['a', 'b', 'c'], LIMIT, NOW);
    const lower = { ...LIMIT, count: 1 };
    assert.deepEqual(await take(cluster, ['a', 'd'], lower, NOW + 1), [lapse(NOW), lapse(NOW)]);
    assert.deepEqual(await take(cluster, ['d', 'e'], lower, lapse(NOW)), [lapse(NOW), lapse(lapse(NOW))]);
  });

  test('counts workloads and clusters separately', async () => {
    const cluster = aCluster();
    const take = open();
    await take(cluster, ['a', 'b', 'c'], LIMIT, NOW);
    const db = { ...LIMIT, workload: 'default/StatefulSet/db' };
    assert.deepEqual(await take(cluster, ['d', 'e', 'f'], db, NOW), [NOW, NOW, NOW]);
    assert.deepEqual(await take(aCluster(), ['a'], LIMIT, NOW), [NOW]);
    assert.deepEqual(await take(cluster, ['g'], LIMIT, NOW), [lapse(NOW)]);
  });

  test('gives all processes together no more permits than the limit, despite concurrent requests', async () => {
    const cluster = aCluster();
    const requests = Array.from({ length: 8 }, (_, index) =>
      open()(cluster, [`${index}-a`, `${index}-b`], LIMIT, NOW),
    );
    const taken = (await Promise.all(requests)).flat();
    assert.equal(taken.filter((moment) => moment === NOW).length, LIMIT.count);
    assert.ok(taken.every((moment) => moment === NOW || moment === lapse(NOW)));
  });
}

/** A step in a history of permits. */
type Step =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'ask'; readonly by: number; readonly pods: readonly AskingPod[] }
  /** A process replaces another one, which never makes a request again. */
  | { readonly kind: 'replace'; readonly which: number }
  | { readonly kind: 'policy'; readonly pace: Pace }
  /** The clock of a process is set to this offset from the true time. */
  | { readonly kind: 'clock'; readonly which: number; readonly offsetMs: number };

const PROCESSES = 3;

const perSecond = fc.oneof(fc.double({ min: 0.05, max: 3, noNaN: true }), fc.integer({ min: 1, max: 60 }));
const which = fc.nat(PROCESSES - 1);
const pods = fc.array(
  fc.record({ uid: fc.constant(podUid('p')), drains: fc.boolean(), inTurn: fc.boolean() }),
  {
    minLength: 1,
    maxLength: 40,
  },
);
const history = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.nat(5_000) }) },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('ask'), by: which, pods }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('replace'), which }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('policy'),
        pace: fc.record({ evictionRate: fc.option(perSecond, { nil: undefined }), releaseRate: perSecond }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('clock'),
        which,
        offsetMs: fc.integer({ min: -MAX_STEP_MS, max: MAX_STEP_MS }),
      }),
    },
  ),
  { maxLength: 60 },
);

/** A request for a permit, or a policy that applies from then on. */
interface Mark {
  /** By the clock of the process. */
  readonly at: EpochMs;
  readonly pace: Pace;
  /** Absent: nothing was requested. */
  readonly pod?: AskingPod;
  readonly given?: boolean;
}

/**
 * Plays a history and compares all permits with the rates. Processes that share stored state have only their clocks:
 * spans are then measured by the furthest clock of those that requested permits of the same rate.
 */
async function play(place: PermitsPlace, steps: readonly Step[], shared: boolean): Promise<void> {
  const cluster = aCluster();
  let trueMs = 0;
  const begin = () => ({ permits: place.open(() => trueMs), offsetMs: 0 });
  const processes = Array.from({ length: PROCESSES }, begin);
  let current = 0;
  let pace: Pace = { evictionRate: 5, releaseRate: 5 };
  const marks: Mark[] = [{ at: Number.NEGATIVE_INFINITY, pace }];
  for (const step of steps) {
    switch (step.kind) {
      case 'wait':
        trueMs += step.ms;
        break;
      case 'replace':
        processes[step.which] = begin();
        break;
      case 'policy':
        pace = step.pace;
        marks.push({ at: Number.NEGATIVE_INFINITY, pace });
        break;
      case 'clock':
        for (const [index, process] of processes.entries())
          if (index === step.which) process.offsetMs = step.offsetMs;
        break;
      case 'ask': {
        // If only one process evicts at a time, another one starts evicting only as its replacement.
        if (!shared && step.by !== current) processes[step.by] = begin();
        current = step.by;
        const { permits, offsetMs } = processes[step.by] ?? begin();
        const at = shared ? trueMs + offsetMs : trueMs;
        const turns = await permits.take(cluster, step.pods, pace, NOW + trueMs + offsetMs);
        for (const [index, pod] of step.pods.entries()) marks.push({ at, pace, pod, given: !turns[index] });
        break;
      }
      default:
        step satisfies never;
    }
  }
  holdToRate(
    marks,
    ({ evictionRate = Number.POSITIVE_INFINITY }) => evictionRate,
    () => true,
    shared,
  );
  holdToRate(
    marks,
    ({ releaseRate }) => releaseRate,
    ({ drains }) => drains,
    shared,
  );
}

/**
 * Fails where more pods were evicted in a span of time than the highest rate in it allows in that span and a second; or,
 * by one process, within a second than the rate allows in it.
 */
function holdToRate(
  marks: readonly Mark[],
  rateOf: (pace: Pace) => number,
  counts: (pod: AskingPod) => boolean,
  shared: boolean,
): void {
  let furthest = Number.NEGATIVE_INFINITY;
  const timed = marks.map((mark) => {
    const isOfRate =
      mark.pod !== undefined && counts(mark.pod) && rateOf(mark.pace) < Number.POSITIVE_INFINITY;
    if (isOfRate) furthest = Math.max(furthest, mark.at);
    return { at: furthest, pace: mark.pace, counts: isOfRate && mark.given };
  });
  for (const [first, from] of timed.entries()) {
    if (!from.counts) continue;
    let count = 0;
    let highest = 0;
    for (const { at, pace, counts: isPermit } of timed.slice(first)) {
      highest = Math.max(highest, rateOf(pace));
      if (!isPermit) continue;
      count += 1;
      const seconds = (at - from.at) / 1000;
      const burst = !shared && seconds < 1 ? 1 : seconds + 1;
      // The permits withholds 1e-6 of a permit, and forgives 1e-9 for rounding errors.
      const most = Math.ceil(highest * burst - 1e-6 + 1e-8);
      assert.ok(count <= Math.max(1, most), `${count} pods within ${seconds} s at ${highest}/s`);
    }
  }
}
