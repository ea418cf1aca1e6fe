import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { Fleet, MAX_HANDICAP_MS } from '#shared/engine/watch/fleet.ts';
import { LEASE_READ_MS, LEASE_RENEW_MS, LeaseManager } from '#shared/engine/watch/lease-manager.ts';
import type { ReportedProgress } from '#shared/eviction/guard.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import {
  LEASE_TTL_MS,
  type Lease,
  type LeaseRecord,
  type Leases,
  MAX_PROGRESS,
} from '#shared/state/lease.ts';
import { openDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { sqliteLeases } from '#shared/state/sqlite/sqlite-state.ts';
import { StoreError } from '#shared/state/store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';

const SECOND = 1000;
const HOUR_MS = 3_600_000;
const CLUSTER = clusterName('c1');
/** The step of time, which limits the precision of observations. */
const STEP_MS = 50;

const AWAY = new StoreError('the table is away');
const away = (): Promise<never> => Promise.reject(AWAY);
const FAILED = { event: 'relay.lease-failed', fields: { cluster: CLUSTER, error: AWAY } };

function bench(context: TestContext) {
  const time = driveTimers(context, Date.UTC(2026, 0, 1));
  const database = openDatabase(':memory:');
  const leases = sqliteLeases(database);
  /** Returns the lease manager of a relay, with its own table to break and its own clocks to set. */
  const keeperOf = (holder: string, options: Partial<Pick<Fleet, 'acquireDelayMs' | 'gives'>> = {}) => {
    const log = recordingLog();
    const stall = { until: 0 };
    const stalled = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      const wait = async () => {
        const leftMs = stall.until - Date.now();
        if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs));
      };
      await wait();
      const result = await work();
      await wait();
      return result;
    };
    const lag = { on: false };
    let before: LeaseRecord | undefined;
    const connected: Leases = {
      // The result of the previous look, where the caller accepts it.
      read: (cluster, { mayLag = false } = {}) =>
        stalled(async () => {
          const found = await leases.read(cluster);
          const seen = mayLag && lag.on ? (before ?? found) : found;
          before = found;
          return seen;
        }),
      take: (...args) => stalled(() => leases.take(...args)),
      renew: (...args) => stalled(() => leases.renew(...args)),
      bid: (...args) => leases.bid(...args),
      reportStuck: (...args) => leases.reportStuck(...args),
      stuck: (...args) => leases.stuck(...args),
      release: async (...args) => {
        await new Promise(setImmediate);
        return leases.release(...args);
      },
    };
    const table: Leases = { ...connected };
    const skew = { clockMs: 0, stopwatchMs: 0 };
    const calls = { regained: 0, ends: [] as unknown[], held: [] as Lease[], reached: [] as unknown[] };
    const callbacks = {
      drainMs: 0,
      report: { breakerOpen: false } as { breakerOpen: boolean; tripProgress?: readonly ReportedProgress[] },
    };
    const stopwatch = () => Date.now() + skew.stopwatchMs;
    const keeper = new LeaseManager(
      CLUSTER,
      {
        async held(lease, signal) {
          calls.held.push(lease);
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          calls.ends.push(signal.reason);
          if (callbacks.drainMs > 0) await new Promise((resolve) => setTimeout(resolve, callbacks.drainMs));
        },
        regained: () => {
          calls.regained += 1;
        },
        report: () => callbacks.report,
        reached: (error) => calls.reached.push(error),
      },
      {
        leases: table,
        clock: { now: () => Date.now() + skew.clockMs, stopwatch },
        log,
        holder,
        fleet: Object.assign(new Fleet({ holder, budget: Infinity, stopwatch }), options),
      },
    );
    context.after(() => keeper.stop());
    const { lines } = log;
    const events = () => log.lines.map(({ event }) => event);
    const canSendAfter = async (ms: number) => {
      await time.pass(ms);
      return keeper.canSend();
    };
    return {
      keeper,
      canSendAfter,
      table,
      connected,
      stall,
      lag,
      skew,
      calls,
      callbacks,
      events,
      lines,
      holder,
    };
  };
  /** Kills a relay: its manager writes nothing more, and releases nothing. */
  const kill = ({ table }: ReturnType<typeof keeperOf>) =>
    Object.assign(table, { read: away, take: away, renew: away, release: away });
  /** Returns the time until `keeper` can send, in ms. */
  const untilHeld = async ({ keeper }: ReturnType<typeof keeperOf>, withinMs: number) => {
    const from = Date.now();
    while (!keeper.canSend() && Date.now() - from <= withinMs) await time.pass(STEP_MS);
    assert.ok(keeper.canSend(), `not within ${withinMs} ms`);
    return Date.now() - from;
  };
  return { time, leases, keeperOf, kill, untilHeld };
}

/** Returns a relay that has held the lease for this time. */
async function holding(
  context: TestContext,
  passMs = 0,
  options: Partial<Pick<Fleet, 'acquireDelayMs' | 'gives'>> = {},
) {
  const made = bench(context);
  const one = made.keeperOf('a', options);
  one.keeper.start();
  await made.time.pass(passMs);
  return { ...made, one };
}

describe('lease acquisition', () => {
  test('is immediate for a free lease', async (context) => {
    const { leases, one } = await holding(context);
    assert.equal(one.keeper.canSend(), true);
    assert.deepEqual(one.calls.held, [await leases.read(CLUSTER)]);
    assert.deepEqual(one.events(), ['relay.lease-acquired']);
  });

  test('makes a single relay the holder, which keeps the lease', async (context) => {
    const { time, keeperOf, leases } = bench(context);
    const all = ['a', 'b', 'c'].map((holder) => keeperOf(holder));
    for (const { keeper } of all) keeper.start();
    await time.settle();
    const { epoch } = (await leases.read(CLUSTER)) ?? {};
    for (let seconds = 0; seconds < 60; seconds++) {
      assert.equal(all.filter(({ keeper }) => keeper.canSend()).length, 1);
      await time.pass(SECOND);
    }
    assert.equal((await leases.read(CLUSTER))?.epoch, epoch);
  });

  for (const [clock, clockMs] of [
    ['an hour ahead', HOUR_MS],
    ['an hour behind', -HOUR_MS],
  ] as const) {
    test(`never affects a live holder, and replaces a dead holder in time, when its clock is ${clock}`, async (context) => {
      const { time, keeperOf, kill, untilHeld, leases } = bench(context);
      const one = keeperOf('a');
      const other = keeperOf('b');
      one.skew.clockMs = clockMs;
      one.keeper.start();
      await time.settle();
      const former = await leases.read(CLUSTER);
      other.keeper.start();
      await time.pass(60 * SECOND);
      assert.equal((await leases.read(CLUSTER))?.epoch, former?.epoch);
      kill(one);
      await untilHeld(other, 15 * SECOND);
      assert.equal(one.keeper.canSend(), false, 'the dead one knows that its time is over');
      assert.ok(Number((await leases.read(CLUSTER))?.epoch) > Number(former?.epoch));
    });
  }

  test('replaces a dead relay within 15 s, for any delay of other relays', async (context) => {
    const { time, keeperOf, kill, untilHeld } = bench(context);
    const one = keeperOf('a');
    one.keeper.start();
    const other = keeperOf('b', { acquireDelayMs: () => MAX_HANDICAP_MS });
    other.keeper.start();
    // A relay that dies right after a renewal is replaced last.
    await time.pass(20 * LEASE_RENEW_MS);
    kill(one);
    const tookMs = await untilHeld(other, 15 * SECOND);
    assert.ok(tookMs >= LEASE_TTL_MS - LEASE_RENEW_MS, `${tookMs}`);
    assert.ok(LEASE_READ_MS + LEASE_TTL_MS + MAX_HANDICAP_MS < 15 * SECOND);
  });

  test('favors the relay with the shortest delay', async (context) => {
    const { time, keeperOf, kill } = bench(context);
    const dead = keeperOf('a');
    dead.keeper.start();
    await time.settle();
    const busy = keeperOf('b', { acquireDelayMs: () => MAX_HANDICAP_MS });
    const idle = keeperOf('c');
    busy.keeper.start();
    idle.keeper.start();
    await time.pass(SECOND);
    kill(dead);
    await time.pass(15 * SECOND);
    assert.deepEqual(
      [busy, idle].map(({ keeper }) => keeper.canSend()),
      [false, true],
    );
  });

  test('is repeated immediately by a holder whose answer was lost', async (context) => {
    const { keeperOf, leases } = bench(context);
    const one = keeperOf('a');
    one.table.take = async (...args) => {
      await leases.take(...args);
      one.table.take = (...again) => leases.take(...again);
      return away();
    };
    one.keeper.start();
    assert.equal(await one.canSendAfter(LEASE_READ_MS + STEP_MS), true);
  });

  test('waits with eventually consistent reads at half the cost, and never takes a changed lease', async (context) => {
    context.mock.method(Math, 'random', () => 0.9);
    const { keeperOf, untilHeld, kill, leases } = bench(context);
    const [one, two] = [keeperOf('a'), keeperOf('b')];
    const reads: unknown[] = [];
    two.table.read = (cluster, options) => {
      reads.push(options);
      return leases.read(cluster);
    };
    one.keeper.start();
    await untilHeld(one, SECOND);
    two.keeper.start();
    kill(one);
    await untilHeld(two, LEASE_TTL_MS + 2 * LEASE_READ_MS);
    assert.ok(reads.length > 1 && reads.length < 15, `${reads.length} reads`);
    assert.ok(reads.every((options) => isDeepStrictEqual(options, { mayLag: true })));
  });

  test('is retried repeatedly while the table is unreachable', async (context) => {
    const { time, keeperOf, leases } = bench(context);
    const one = keeperOf('a');
    one.table.read = away;
    one.keeper.start();
    await time.pass(30 * SECOND);
    assert.ok(one.lines.length >= 10);
    for (const line of one.lines) assert.deepEqual(line, { level: 'error', ...FAILED });
    assert.equal(one.calls.reached.filter((error) => error === AWAY).length, one.lines.length);
    one.table.read = (cluster) => leases.read(cluster);
    assert.equal(await one.canSendAfter(LEASE_READ_MS), true);
    assert.equal(one.calls.reached.at(-1), undefined);
  });

  test('is retried after a wait when another relay was faster', async (context) => {
    const { time, keeperOf } = bench(context);
    const one = keeperOf('a');
    let takes = 0;
    one.table.take = async () => {
      takes += 1;
      return takes > 20 ? away() : undefined;
    };
    one.keeper.start();
    await time.pass(10 * SECOND);
    assert.ok(takes > 1 && takes <= 11, `${takes} attempts`);
  });
});

test('at most one relay can send for a cluster, for any stalls, sleeps, delays and failures of the table', async (context) => {
  const { time, keeperOf } = bench(context);
  const step = fc.record({
    relay: fc.nat(2),
    what: fc.constantFrom(
      'stalls',
      'host sleeps',
      'clock is set',
      'lags',
      'is cut off',
      'is back',
      'gives away',
    ),
    byMs: fc.nat(15 * SECOND),
    thenMs: fc.nat(15 * SECOND),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 8 }), async (steps) => {
      const relays = ['a', 'b', 'c'].map((holder) => keeperOf(holder));
      for (const { keeper } of relays) keeper.start();
      for (const { relay, what, byMs, thenMs } of steps) {
        const { skew, stall, lag, table, connected, keeper } = relays[relay] as (typeof relays)[number];
        if (what === 'stalls' || what === 'host sleeps') stall.until = Date.now() + byMs;
        // Only one relay sleeps, and its clock is correct.
        if (what === 'host sleeps' && relay === 0) skew.stopwatchMs -= byMs;
        if (what === 'clock is set' && relay !== 0) skew.clockMs += byMs - 7 * SECOND;
        if (what === 'is cut off') Object.assign(table, { read: away, take: away, renew: away });
        if (what === 'lags') lag.on = true;
        if (what === 'is back') lag.on = false;
        if (what === 'is back') Object.assign(table, connected);
        if (what === 'gives away') keeper.giveAway();
        for (let passed = 0; passed < thenMs; passed += 250) {
          await time.pass(250);
          assert.ok(relays.filter(({ keeper }) => keeper.canSend()).length <= 1);
        }
      }
      const stopped = Promise.all(relays.map(({ keeper }) => keeper.stop()));
      await time.pass(30 * SECOND);
      await stopped;
    }),
    { numRuns: 15 },
  );
});

describe('a relay that holds a lease', () => {
  test('reports the state of the cluster with each renewal', async (context) => {
    const { time, leases, one } = await holding(context, LEASE_RENEW_MS + STEP_MS);
    assert.equal((await leases.read(CLUSTER))?.lastContactAt, undefined);
    const lastContactAt = Date.now();
    Object.assign(one.callbacks.report, { lastContactAt, nodes: 7 });
    const renew = context.mock.method(one.table, 'renew');
    await time.pass(LEASE_RENEW_MS);
    const report = { breakerOpen: false, lastContactAt, nodes: 7, renewedAt: Date.now() - STEP_MS };
    assert.deepEqual(renew.mock.calls[0]?.arguments[1], { ...report, tripProgress: [] });
    assert.equal(one.calls.regained, 0);
    const record = await leases.read(CLUSTER);
    assert.deepEqual([record?.lastContactAt, record?.nodes], [lastContactAt, 7]);
    assert.equal(record?.breakerOpen, false);
    one.callbacks.report.breakerOpen = true;
    await time.pass(LEASE_RENEW_MS);
    assert.equal((await leases.read(CLUSTER))?.breakerOpen, true);
  });

  test('reports the progress of trips with each renewal, of no more than a lease has room for', async (context) => {
    const { time, leases, keeperOf } = bench(context);
    const one = keeperOf('a');
    one.keeper.start();
    const progress = { scope: 'zone', trippedAt: Date.now(), affectedNow: 3, resetsBelow: 2 } as const;
    one.callbacks.report.tripProgress = Array.from({ length: MAX_PROGRESS + 1 }, (_, zone) => ({
      ...progress,
      zone: `z${zone}`,
    }));
    await time.pass(LEASE_RENEW_MS + STEP_MS);
    const record = await leases.read(CLUSTER);
    assert.deepEqual(record?.tripProgress, one.callbacks.report.tripProgress.slice(0, MAX_PROGRESS));
    one.callbacks.report.tripProgress = [];
    await time.pass(LEASE_RENEW_MS);
    assert.deepEqual((await leases.read(CLUSTER))?.tripProgress, []);
  });

  for (const [what, clock] of [
    ['a pause', 'stopwatchMs'],
    ['its host slept, when the stopwatch stopped and the clock continued', 'clockMs'],
  ] as const)
    test(`cannot send after ${what}, until it has renewed`, async (context) => {
      const { one } = await holding(context, SECOND);
      one.skew[clock] += 15 * SECOND;
      assert.equal(one.keeper.canSend(), false);
      assert.equal(await one.canSendAfter(LEASE_RENEW_MS), true);
      assert.deepEqual([one.calls.regained, one.calls.ends], [1, []]);
    });

  test('does not rely on a clock that is set back', async (context) => {
    const { one } = await holding(context, SECOND);
    one.table.renew = away;
    one.skew.clockMs -= HOUR_MS;
    assert.equal(one.keeper.canSend(), true);
    assert.equal(await one.canSendAfter(LEASE_TTL_MS), false);
  });

  for (const call of ['take', 'renew'] as const)
    test(`counts the lease from the request, not from the answer (${call})`, async (context) => {
      const { time, keeperOf, leases } = bench(context);
      const one = keeperOf('a');
      const slow = async <Answer>(answer: Answer) => {
        one.table.renew = away;
        await new Promise((resolve) => setTimeout(resolve, 5 * SECOND));
        return answer;
      };
      if (call === 'take') one.table.take = async (...args) => slow(await leases.take(...args));
      else one.table.renew = async (...args) => slow(await leases.renew(...args));
      one.keeper.start();
      await time.pass(call === 'take' ? 0 : LEASE_RENEW_MS);
      assert.equal(await one.canSendAfter(LEASE_TTL_MS - STEP_MS), true);
      assert.equal(await one.canSendAfter(STEP_MS), false);
    });

  test('ends immediately when another relay has the lease, and waits again', async (context) => {
    const { time, leases, one } = await holding(context, SECOND);
    await leases.take(CLUSTER, await leases.read(CLUSTER), 'thief', Date.now());
    await time.pass(LEASE_RENEW_MS);
    assert.deepEqual(one.calls.ends, ['lost']);
    assert.equal(one.keeper.canSend(), false);
    const [lease] = one.calls.held;
    const fields = { cluster: CLUSTER, epoch: lease?.epoch };
    assert.deepEqual(one.lines, [
      { level: 'info', event: 'relay.lease-acquired', fields },
      { level: 'warn', event: 'relay.lease-lost', fields },
    ]);
    assert.equal((await leases.read(CLUSTER))?.holder, 'thief');
    await time.pass(LEASE_TTL_MS + LEASE_READ_MS);
    assert.equal(one.calls.held.length, 2);
  });

  test('keeps its session while the table is unreachable, and continues in the same epoch', async (context) => {
    const { leases, one } = await holding(context, SECOND);
    one.table.renew = away;
    assert.equal(await one.canSendAfter(5 * 60 * SECOND), false);
    assert.deepEqual(one.calls.ends, []);
    assert.ok(one.lines.length > 10);
    for (const line of one.lines.slice(1)) assert.deepEqual(line, { level: 'error', ...FAILED });
    one.table.renew = (...args) => leases.renew(...args);
    assert.equal(await one.canSendAfter(LEASE_RENEW_MS), true);
    assert.deepEqual([one.calls.held.length, one.calls.regained], [1, 1]);
  });
});

describe('a relay that stops', () => {
  test('keeps the lease until every delta is sent, then releases it for immediate acquisition', async (context) => {
    const { time, leases, keeperOf, untilHeld, one } = await holding(context);
    const other = keeperOf('b');
    other.keeper.start();
    one.callbacks.drainMs = 30 * SECOND;
    const stopped = one.keeper.stop();
    await time.pass(one.callbacks.drainMs - STEP_MS);
    assert.deepEqual(one.calls.ends, ['stopped']);
    assert.equal(one.keeper.canSend(), true);
    assert.equal(other.keeper.canSend(), false);
    await time.pass(STEP_MS);
    await stopped;
    assert.equal((await leases.read(CLUSTER))?.holder, undefined);
    await untilHeld(other, LEASE_READ_MS + STEP_MS);
  });

  test('stops although it cannot release the lease, and logs the error', async (context) => {
    const { time, one } = await holding(context);
    one.table.release = away;
    const stopped = one.keeper.stop();
    await time.settle();
    await stopped;
    assert.deepEqual(one.lines.slice(1), [{ level: 'warn', ...FAILED }]);
  });

  test('releases nothing if it lost the lease meanwhile', async (context) => {
    const { time, leases, one } = await holding(context, SECOND);
    one.callbacks.drainMs = 10 * SECOND;
    const stopped = one.keeper.stop();
    await leases.take(CLUSTER, await leases.read(CLUSTER), 'thief', Date.now());
    assert.equal(await one.canSendAfter(LEASE_RENEW_MS), false);
    await time.pass(one.callbacks.drainMs);
    await stopped;
    assert.equal((await leases.read(CLUSTER))?.holder, 'thief');
  });

  test('stops immediately while it waits', async (context) => {
    const { time, keeperOf, leases } = bench(context);
    await leases.take(CLUSTER, undefined, 'other', Date.now());
    const one = keeperOf('a');
    one.keeper.start();
    await time.pass(SECOND);
    const stopped = one.keeper.stop();
    await time.settle();
    await stopped;
    assert.deepEqual(one.calls.held, []);
  });

  test('returns a lease that it is just acquiring', async (context) => {
    const { time, keeperOf, leases } = bench(context);
    const one = keeperOf('a');
    one.table.take = async (...args) => {
      void one.keeper.stop();
      return leases.take(...args);
    };
    one.keeper.start();
    await time.settle();
    assert.deepEqual(one.calls.held, []);
    assert.equal((await leases.read(CLUSTER))?.holder, undefined);
  });
});

describe('a relay that hands off its lease', () => {
  test('sends pending deltas, and leaves the lease to others for a while', async (context) => {
    const { time, keeperOf, leases, one } = await holding(context);
    const other = keeperOf('b');
    other.keeper.start();
    one.callbacks.drainMs = SECOND;
    one.keeper.giveAway();
    await time.pass(SECOND - STEP_MS);
    assert.deepEqual([one.calls.ends, one.keeper.canSend()], [['given-away'], true]);
    assert.equal(await other.canSendAfter(LEASE_READ_MS + MAX_HANDICAP_MS + 2 * STEP_MS), true);
    assert.ok(one.events().includes('relay.lease-handed-off'));
    // The other relay is disconnected as well.
    other.keeper.giveAway();
    await time.pass(5 * SECOND);
    assert.equal((await leases.read(CLUSTER))?.holder, undefined);
  });

  test('acquires the lease again when no other relay does', async (context) => {
    const { untilHeld, one } = await holding(context);
    one.keeper.giveAway();
    assert.equal(await one.canSendAfter(0), false);
    assert.ok((await untilHeld(one, 15 * SECOND)) >= LEASE_TTL_MS);
  });

  test('replaces a dead relay again after it has avoided the cluster for long enough', async (context) => {
    const { time, keeperOf, kill, untilHeld, one } = await holding(context);
    const other = keeperOf('b');
    other.keeper.start();
    one.keeper.giveAway();
    await time.pass(125 * SECOND);
    kill(other);
    await untilHeld(one, 15 * SECOND);
  });

  test('does so only while it holds a lease', async (context) => {
    const { keeperOf } = bench(context);
    const one = keeperOf('a');
    one.keeper.giveAway();
    one.keeper.start();
    assert.equal(await one.canSendAfter(0), true);
  });
});

describe('a lease that another relay requests', () => {
  test('is handed off after pending deltas are sent', async (context) => {
    const { time, leases, one } = await holding(context, 0, { gives: ({ bid }) => bid?.holder === 'b' });
    const [lease] = one.calls.held;
    assert.ok(lease);
    await leases.bid(lease, { holder: 'b', load: 0 });
    await time.pass(LEASE_RENEW_MS);
    assert.deepEqual(one.calls.ends, ['given-away']);
    const { holder, bid } = (await leases.read(CLUSTER)) ?? {};
    assert.deepEqual([holder, bid?.holder], [undefined, 'b']);
  });

  test('is kept when a move is not worthwhile, and the request is answered once', async (context) => {
    const { time, keeperOf, leases } = bench(context);
    let requests = 0;
    const gives = ({ bid }: Lease) => {
      if (bid) requests += 1;
      return false;
    };
    const one = keeperOf('a', { gives });
    one.keeper.start();
    await time.settle();
    const [lease] = one.calls.held;
    assert.ok(lease);
    await leases.bid(lease, { holder: 'b', load: 0 });
    await time.pass(5 * LEASE_RENEW_MS);
    assert.deepEqual([requests, one.calls.ends], [1, []]);
    assert.equal((await leases.read(CLUSTER))?.bid, undefined);
    await leases.bid(lease, { holder: 'c', load: 0 });
    await time.pass(LEASE_RENEW_MS);
    assert.equal(requests, 2, 'the next request is answered, too');
  });
});
