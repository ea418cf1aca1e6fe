import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { type AskingPod, type Pace, TURNS_AHEAD_MS } from '#shared/eviction/rate.ts';
import type { RateLimiter } from '#shared/state/rate-limiter.ts';
import type { Stopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { aCluster, NOW } from './partition-builders.ts';

/** Limiters under contract. */
export interface RateLimiters {
  /**
   * Opens the limiter of a process that evicts from now on, beside others or in place of the previous one. Its
   * stopwatch is in milliseconds.
   */
  open(stopwatch: Stopwatch): RateLimiter;
  close(): Promise<void>;
}

export interface RateLimiterContract {
  /** True if processes share the limiter; otherwise one process follows the other. */
  readonly shared: boolean;
  /** The number of random histories; default: fast-check's. */
  readonly histories?: number;
}

/** Returns `count` pods that have not had a turn. */
export const waitingPods = (count: number, more: Partial<AskingPod> = {}): readonly AskingPod[] =>
  Array.from({ length: count }, () => ({ drains: false, inTurn: false, ...more }));

const RATE_OF_1: Pace = { evictionRate: 1, releaseRate: 50 };
const RATE_OF_2: Pace = { evictionRate: 2, releaseRate: 50 };
const DRAIN_OF_2: Pace = { releaseRate: 2 };

const HOUR_MS = 3_600_000;
/** A larger difference of clocks would block all evictions. */
const MAX_STEP_MS = 30_000;

/** Registers the tests that every rate limiter has to pass. */
export function rateLimiterContract(
  name: string,
  open: () => Promise<RateLimiters>,
  { shared, histories = 100 }: RateLimiterContract,
): void {
  describe(`${name} keeps the contract of a rate limiter`, () => {
    let limiters: RateLimiters;
    let stopwatchMs = 0;
    before(async () => {
      limiters = await open();
    });
    after(() => limiters.close());

    /** Opens the limiter of a process that has evicted for an hour. */
    const longBegun = (): RateLimiter => {
      const limiter = limiters.open(() => stopwatchMs);
      stopwatchMs += HOUR_MS;
      return limiter;
    };
    /** Returns a function that requests permits at a number of milliseconds after the beginning. */
    const asker = (limiter: RateLimiter, pace: Pace) => {
      const cluster = aCluster();
      const begunMs = stopwatchMs;
      return async (atMs: number, pods: readonly AskingPod[], given: Pace = pace) => {
        stopwatchMs = begunMs + atMs;
        const turns = await limiter.take(cluster, pods, given, NOW + atMs);
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
      const limiter = longBegun();
      await asker(limiter, RATE_OF_1)(0, waitingPods(50));
      assert.deepEqual(await asker(limiter, RATE_OF_1)(0, waitingPods(1)), [undefined]);
    });

    test('recovers soon from permits that were taken at a clock far ahead', async () => {
      const limiter = longBegun();
      const take = asker(limiter, RATE_OF_1);
      await take(24 * HOUR_MS, waitingPods(70));
      stopwatchMs -= 24 * HOUR_MS;
      await take(0, waitingPods(1));
      assert.deepEqual(await take(2000, waitingPods(1, { inTurn: true })), [undefined]);
    });

    test('permits at most the rate and a second’s burst in any span of time, in any history', async () => {
      await fc.assert(
        fc.asyncProperty(history, (steps) => play(limiters, steps, shared)),
        { numRuns: histories },
      );
    });

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
const pods = fc.array(fc.record({ drains: fc.boolean(), inTurn: fc.boolean() }), {
  minLength: 1,
  maxLength: 40,
});
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
async function play(limiters: RateLimiters, steps: readonly Step[], shared: boolean): Promise<void> {
  const cluster = aCluster();
  let trueMs = 0;
  const begin = () => ({ limiter: limiters.open(() => trueMs), offsetMs: 0 });
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
        for (const [index, limiterOfOne] of processes.entries())
          if (index === step.which) limiterOfOne.offsetMs = step.offsetMs;
        break;
      case 'ask': {
        // If only one process evicts at a time, another one starts evicting only as its replacement.
        if (!shared && step.by !== current) processes[step.by] = begin();
        current = step.by;
        const { limiter, offsetMs } = processes[step.by] ?? begin();
        const at = shared ? trueMs + offsetMs : trueMs;
        const turns = await limiter.take(cluster, step.pods, pace, NOW + trueMs + offsetMs);
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
      // The limiter withholds 1e-6 of a permit, and forgives 1e-9 for rounding errors.
      const most = Math.ceil(highest * burst - 1e-6 + 1e-8);
      assert.ok(count <= Math.max(1, most), `${count} pods within ${seconds} s at ${highest}/s`);
    }
  }
}
