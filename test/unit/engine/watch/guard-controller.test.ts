import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { GuardController } from '#shared/engine/watch/guard-controller.ts';
import { CALM_MS } from '#shared/eviction/guard.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { FreshRelease, ReleasedTrip, Rules, Trip } from '#shared/eviction/policy.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { type LiveTaint, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { enforced } from '#test/world/enforced-rules.ts';
import { ScriptedGuardStore } from '#test/world/scripted-guard-store.ts';
import { liveNode } from './live-objects.ts';

const C1 = clusterName('c1');
const SECOND = 1000;
const NOW = 1_700_000_000_000;
const RULES = enforced({ comparisonOperators: false });
const TRIP: Trip = { scope: 'cluster', trippedAt: 1, nodes: 5, outOf: 10 };

interface Given {
  readonly stored?: readonly Trip[];
  /** The time for which each of these nodes has been down. */
  readonly downMs?: Readonly<Record<string, number>>;
  readonly rules?: Partial<Rules>;
  /** `true`: the table is unreachable at first. */
  readonly isAway?: boolean;
}

const down = (timeAdded?: number) => ({
  key: NODE_UNREACHABLE,
  effect: 'NoSchedule',
  ...(timeAdded === undefined ? {} : { timeAdded }),
});

/** Returns the guard of a cluster of ten nodes, after it has read the stored state. */
async function bench(context: TestContext, { stored, downMs = {}, rules = {}, isAway = false }: Given = {}) {
  const time = driveTimers(context, NOW);
  const log = recordingLog();
  const book = new ScriptedGuardStore();
  if (stored) book.set(stored);
  book.isAway = isAway;
  const view = new ClusterView(C1, 1);
  const names = Array.from({ length: 10 }, (_, index) => `n${index}`);
  view.replaceNodes(
    names.map((name) => {
      const durationMs = downMs[name];
      return { ...liveNode(name), taints: durationMs === undefined ? [] : [down(NOW - durationMs)] };
    }),
    Date.now(),
  );
  view.resync([], Date.now());
  const calls = { freed: 0, again: [] as boolean[], saved: [] as unknown[] };
  const state = { knows: true, setMs: 0 };
  const stopping = new AbortController();
  const governing = (fields: Partial<Rules> = {}): Rules => ({
    ...RULES,
    ...rules,
    trips: book.state.trips,
    guardRevision: book.state.revision,
    ...fields,
  });
  const guard = new GuardController(C1, view, governing(), {
    rulesStore: book,
    clock: { now: () => Date.now() + state.setMs, stopwatch: Date.now },
    log,
    knows: () => state.knows,
    saved: (error) => calls.saved.push(error),
    freed: () => {
      calls.freed += 1;
    },
    retell: (wake) => calls.again.push(wake),
    signal: stopping.signal,
  });
  context.after(() => stopping.abort());
  await time.settle();
  calls.freed = 0;
  /** Resolves when the change has settled. */
  const change = (taints: readonly LiveTaint[], nodes: readonly number[]): Promise<void> => {
    for (const index of nodes) view.upsertNode({ ...liveNode(`n${index}`), taints: [...taints] }, Date.now());
    guard.counted();
    return time.settle();
  };
  return {
    time,
    log,
    book,
    view,
    calls,
    state,
    guard,
    governing,
    stopping,
    fail: (...nodes: readonly number[]) => change([down()], nodes),
    heal: (...nodes: readonly number[]) => change([], nodes),
    /** Releases the active trips, as an operator does. */
    release: () =>
      book.set(book.state.trips.map((trip): FreshRelease => ({ ...trip, releasedAt: Date.now() }))),
    taint: (...nodes: readonly number[]) => change([{ key: 'maintenance', effect: 'NoExecute' }], nodes),
    /** The lines of trips and releases. */
    recorded: () =>
      log.lines.map(({ level, event, fields: { scope, zone, nodes, total, by, cluster } }) => {
        assert.equal(cluster, C1);
        const where = zone === undefined ? scope : `${scope} ${zone}`;
        return `${level} ${event} ${where} ${nodes} of ${total}${by === undefined ? '' : ` by ${by}`}`;
      }),
    logged: () =>
      log.lines.map(({ event, fields }) => [event, 'scope' in fields ? fields['scope'] : undefined]),
    sentRevision: () => view.nodeDelta(nodeName('n0'), Date.now(), false).guardRevision,
  };
}

const scopes = (trips: readonly Trip[]) => trips.map(({ scope }) => scope);

test('allows deltas immediately below the threshold, without a write', async (context) => {
  const { guard, fail, book, time, calls } = await bench(context);
  void fail(1, 2);
  assert.ok(guard.maySend);
  await time.settle();
  const reviews = calls.saved.length;
  guard.counted();
  assert.equal(calls.saved.length, reviews, 'no count changed');
  assert.equal(book.tries, 0);
});

test('allows no deltas from the threshold on until the trip is saved, and then with its revision', async (context) => {
  const { guard, fail, book, time, calls, logged, sentRevision } = await bench(context);
  const writing = Promise.withResolvers<void>();
  book.answer = writing.promise;
  void fail(1, 2);
  assert.equal(sentRevision(), undefined);
  void fail(3);
  assert.equal(guard.maySend, false);
  await time.settle();
  assert.deepEqual([guard.maySend, calls.freed], [false, 0]);
  guard.review();
  assert.equal(book.tries, 1, 'one write at a time');
  writing.resolve();
  await time.settle();
  assert.deepEqual([guard.maySend, calls.freed], [true, 1]);
  assert.deepEqual(scopes(book.state.trips), ['cluster']);
  assert.equal(sentRevision(), 1);
  assert.deepEqual(logged(), [['guard.tripped', 'cluster']]);
  assert.deepEqual(book.noted, ['guard tripped: 3 of 10 nodes down']);
});

test('writes nothing when it is asked, and allows no deltas of nodes that it has yet to review', async (context) => {
  const { guard, view, book, time } = await bench(context);
  for (const index of [1, 2, 3]) view.upsertNode({ ...liveNode(`n${index}`), taints: [down()] }, Date.now());
  assert.equal(guard.maySend, false);
  await time.settle();
  assert.deepEqual([guard.maySend, book.tries], [false, 0]);
  guard.counted();
  await time.settle();
  assert.deepEqual([guard.maySend, book.tries], [true, 1]);
});

test('reports that deltas may be sent again at the review of what changed while it did not know the cluster', async (context) => {
  const { guard, fail, state, calls } = await bench(context);
  state.knows = false;
  void fail(1);
  assert.equal(guard.maySend, true);
  state.knows = true;
  assert.deepEqual([guard.maySend, calls.freed], [false, 0]);
  guard.review();
  assert.deepEqual([guard.maySend, calls.freed], [true, 1]);
});

test('knows how far each trip is from its reset, while it knows the cluster', async (context) => {
  const { guard, fail, heal, time, state } = await bench(context);
  void fail(1, 2);
  assert.deepEqual(guard.progress, [], 'nothing tripped');
  await fail(3);
  const shown = () => guard.progress.map(({ affectedNow, resetsAt }) => [affectedNow, resetsAt]);
  assert.deepEqual(shown(), [[3, undefined]]);
  void heal(1, 2, 3);
  const resetsAt = Date.now() + CALM_MS;
  await time.pass(60_000);
  assert.deepEqual(shown(), [[0, resetsAt]]);
  state.knows = false;
  assert.deepEqual(shown(), []);
  guard.review();
  state.knows = true;
  assert.deepEqual(shown(), [[0, undefined]], 'the recovery is interrupted');
});

describe('a trip that cannot be saved', () => {
  test('is retried repeatedly, and holds evictions by a revision that is not stored', async (context) => {
    const { guard, fail, book, time, calls, log, logged, sentRevision } = await bench(context);
    book.isReadOnly = true;
    void fail(1, 2, 3);
    assert.equal(guard.maySend, false);
    await time.pass(30 * SECOND);
    assert.ok(book.tries > 10 && book.tries < 40, `${book.tries} tries`);
    assert.deepEqual([guard.maySend, calls.again, sentRevision()], [true, [false], 1]);
    assert.equal(book.state.revision, 0);
    book.isReadOnly = false;
    await time.pass(2 * SECOND);
    assert.ok(guard.maySend);
    assert.deepEqual([scopes(book.state.trips), book.state.revision, sentRevision()], [['cluster'], 1, 1]);
    assert.deepEqual(calls.again, [false]);
    assert.equal(logged().filter(([event]) => event === 'guard.tripped').length, 1);
    const failures = log.lines.filter(({ event }) => event === 'guard.save-failed');
    assert.equal(failures.length, book.tries - 1);
    const error = new StoreError('the table takes no writes');
    assert.deepEqual(failures[0], {
      level: 'warn',
      event: 'guard.save-failed',
      fields: { cluster: C1, error },
    });
  });

  test('holds no evictions once its nodes recover', async (context) => {
    const { guard, fail, heal, book, time, calls, sentRevision } = await bench(context);
    book.isReadOnly = true;
    void fail(1, 2, 3);
    await time.pass(5 * SECOND);
    await heal(1);
    guard.review();
    assert.deepEqual([calls.again, sentRevision()], [[false, true], undefined]);
  });

  test('gets a new revision above a concurrent write', async (context) => {
    const { guard, fail, book, time, sentRevision, governing } = await bench(context);
    book.isReadOnly = true;
    void fail(1, 2, 3);
    await time.pass(5 * SECOND);
    book.set([]);
    const late = Promise.withResolvers<StoredRules>();
    const same = await book.read(C1);
    context.mock.method(book, 'read', () => late.promise, { times: 1 });
    guard.ruled(governing());
    guard.review();
    await time.pass(5 * SECOND);
    assert.deepEqual([book.state.revision, sentRevision()], [1, 2]);
    late.resolve(same);
    await time.settle();
    assert.equal(sentRevision(), 2, 'a late read shows nothing new');
  });

  const ends: Readonly<Record<string, (parts: Awaited<ReturnType<typeof bench>>) => void>> = {
    'another process saved one like it': ({ book }) => book.set([TRIP]),
    'it is saved, even if the cluster is unknown by then': ({ book, state }) => {
      const set = book.set.bind(book);
      book.set = (trips) => {
        state.knows = false;
        set(trips);
      };
    },
  };
  for (const [name, end] of Object.entries(ends)) {
    test(`is no fault anymore once ${name}`, async (context) => {
      const parts = await bench(context);
      const { guard, fail, book, time, calls } = parts;
      book.isReadOnly = true;
      await fail(1, 2, 3);
      assert.notEqual(calls.saved.at(-1), undefined);
      book.isReadOnly = false;
      assert.match((await guard.whyUnwritable()) ?? '', /^the guard's state can't be saved/);
      end(parts);
      await time.pass(2 * SECOND);
      assert.deepEqual([scopes(book.state.trips), calls.saved.at(-1)], [['cluster'], undefined]);
      assert.equal(await guard.whyUnwritable(), undefined);
    });
  }
});

describe('a trip whose write fails after another process wrote', () => {
  test('allows no deltas with the revision that the other process wrote', async (context) => {
    const { guard, fail, book, time, sentRevision, governing } = await bench(context);
    const writing = Promise.withResolvers<void>();
    book.answer = writing.promise;
    void fail(1, 2, 3);
    book.set([]);
    guard.ruled(governing());
    await time.settle();
    book.isReadOnly = true;
    writing.resolve();
    await time.settle();
    assert.equal(guard.maySend, false);
    await time.pass(5 * SECOND);
    assert.deepEqual([guard.maySend, book.state.revision, sentRevision()], [true, 1, 2]);
  });
});

describe('the check of writability', () => {
  test('saves the active trips again, which changes nothing', async (context) => {
    const { guard, book } = await bench(context, { stored: [TRIP] });
    assert.equal(await guard.whyUnwritable(), undefined);
    assert.deepEqual([book.touches, book.state.revision, book.state.trips], [1, 1, [TRIP]]);
  });

  test('saves the first state where none exists', async (context) => {
    const { guard, book, sentRevision, logged } = await bench(context);
    assert.equal(await guard.whyUnwritable(), undefined);
    assert.deepEqual([guard.trips, logged()], [[], []]);
    assert.deepEqual([book.state, sentRevision()], [{ revision: 1, trips: [] }, 1]);
    assert.equal(await guard.whyUnwritable(), undefined);
    assert.equal(book.touches, 1);
  });

  test('reports a failure where the state can be read but not written', async (context) => {
    const { guard, book, log } = await bench(context, { stored: [TRIP] });
    book.isReadOnly = true;
    assert.match((await guard.whyUnwritable()) ?? '', /^the guard's state can't be saved/);
    const fields = { cluster: C1, error: new StoreError('the table takes no writes') };
    assert.deepEqual(log.lines, [{ level: 'warn', event: 'guard.save-failed', fields }]);
  });

  test('reports a failure after three writes that other processes were faster than', async (context) => {
    const { guard, book } = await bench(context, { stored: [TRIP] });
    let touches = 0;
    book.touchGuard = async () => {
      touches += 1;
      assert.ok(touches <= 3);
      return 'conflict';
    };
    assert.equal(await guard.whyUnwritable(), "other processes keep changing the guard's state");
    assert.equal(touches, 3);
  });

  test('reports a failure where the state could not be read yet', async (context) => {
    const { guard } = await bench(context, { isAway: true });
    assert.match((await guard.whyUnwritable()) ?? '', /^the guard's state can't be read/);
  });

  test('succeeds by a concurrent write', async (context) => {
    const { guard, book } = await bench(context, { stored: [TRIP] });
    book.set([TRIP, { ...TRIP, scope: 'customTaints' }]);
    assert.equal(await guard.whyUnwritable(), undefined);
    assert.deepEqual(scopes(guard.trips), ['cluster', 'customTaints']);
  });

  test('reviews a release that an operator gave meanwhile', async (context) => {
    const { guard, book, release, recorded } = await bench(context, { stored: [TRIP] });
    release();
    assert.equal(await guard.whyUnwritable(), undefined);
    assert.equal(book.state.released, undefined);
    assert.deepEqual(recorded(), ['info guard.released cluster 5 of 10 by operator']);
  });
});

test('saves no trip that is no longer needed', async (context) => {
  const { guard, fail, heal, book, time, calls } = await bench(context);
  book.isAway = true;
  await fail(1, 2, 3);
  void heal(1);
  assert.ok(guard.maySend);
  book.isAway = false;
  await time.pass(10 * SECOND);
  assert.deepEqual([book.state.trips, calls.freed], [[], 1]);
});

test('saves further trips beside the active trips', async (context) => {
  const { fail, taint, book } = await bench(context);
  await fail(1, 2, 3);
  const [first] = book.state.trips;
  await taint(4, 5, 6, 7, 8);
  assert.deepEqual(scopes(book.state.trips), ['cluster', 'customTaints']);
  assert.deepEqual(book.state.trips[0], first);
});

test('judges by the concurrent write of another process', async (context) => {
  const { fail, book, guard } = await bench(context);
  book.set([{ ...TRIP, scope: 'zone', zone: 'a' }]);
  await fail(1, 2, 3);
  assert.deepEqual(scopes(book.state.trips), ['zone', 'cluster']);
  assert.deepEqual(guard.trips, book.state.trips);
  assert.ok(guard.maySend);
});

/** Passes five minutes of recovery. One second before they end, the trip is still active. */
async function passCalm({ guard, book, time }: Awaited<ReturnType<typeof bench>>) {
  await time.pass(CALM_MS - SECOND);
  guard.review();
  await time.settle();
  assert.deepEqual(book.state.trips, [TRIP]);
  await time.pass(SECOND);
  guard.review();
  await time.settle();
}

describe('a trip that was stored before', () => {
  test('is kept and passed on, without a log line', async (context) => {
    const { guard, fail, book, time, logged, sentRevision } = await bench(context, { stored: [TRIP] });
    void fail(1, 2, 3);
    await time.pass(CALM_MS * 2);
    assert.deepEqual([guard.trips, book.tries, logged()], [[TRIP], 0, []]);
    assert.equal(sentRevision(), 1);
  });

  for (const [how, setMs] of [
    ['is not set', 0],
    ['is set forward', 3_600_000],
    ['is set back', -3_600_000],
  ] as const)
    test(`resets after five minutes of recovery when the clock ${how}`, async (context) => {
      const benched = await bench(context, { stored: [TRIP] });
      const { guard, book, state, logged } = benched;
      guard.review();
      state.setMs = setMs;
      await passCalm(benched);
      assert.deepEqual(book.state, { revision: 2, trips: [] });
      assert.deepEqual(logged(), [['guard.released', 'cluster']]);
    });

  test('does not reset by the view of a disconnected relay', async (context) => {
    const { guard, book, state, time } = await bench(context, { stored: [TRIP] });
    guard.review();
    state.knows = false;
    await time.pass(CALM_MS);
    guard.review();
    state.knows = true;
    await time.pass(SECOND);
    guard.review();
    await time.settle();
    assert.deepEqual(book.state.trips, [TRIP]);
  });
});

test('keeps a release for the same nodes, and trips for one more', async (context) => {
  const { guard, governing, fail, book, time, logged, release } = await bench(context);
  await fail(1, 2, 3);
  const { trips } = book.state;
  void fail(4);
  release();
  guard.ruled(governing());
  await time.settle();
  assert.deepEqual(book.state.trips, []);
  assert.deepEqual(
    book.state.released,
    trips.map((trip) => ({ ...trip, upTo: 4 })),
  );
  await fail(5);
  assert.deepEqual(scopes(book.state.trips), ['cluster']);
  assert.deepEqual(
    logged().map(([event]) => event),
    ['guard.tripped', 'guard.released', 'guard.tripped'],
  );
});

test('reads a release again until it succeeds', async (context) => {
  const { guard, governing, fail, book, time, release } = await bench(context);
  await fail(1, 2, 3);
  release();
  book.isAway = true;
  guard.ruled(governing());
  await time.settle();
  assert.deepEqual(scopes(guard.trips), ['cluster']);
  book.isAway = false;
  guard.review();
  await time.settle();
  assert.deepEqual(guard.trips, []);
  await fail(4);
  assert.deepEqual(scopes(guard.trips), ['cluster']);
});

test('keeps a release under another relay', async (context) => {
  const released: ReleasedTrip = { ...TRIP, upTo: 5 };
  const { guard, fail, book, logged } = await bench(context, { stored: [released] });
  await fail(1, 2, 3, 4, 5);
  assert.deepEqual([guard.trips, book.tries, logged()], [[], 0, []]);
  assert.ok(guard.maySend);
  await fail(6);
  assert.deepEqual(scopes(guard.trips), ['cluster']);
});

describe('a release while no relay held the lease', () => {
  const RELEASED: FreshRelease = { ...TRIP, releasedAt: NOW - 60 * SECOND };
  const long = { n1: 90 * SECOND, n2: 600 * SECOND, n3: 61 * SECOND };

  test('stays for the nodes that were down then, and trips for one more', async (context) => {
    const { guard, fail, book } = await bench(context, { stored: [RELEASED], downMs: long });
    assert.deepEqual([guard.trips, book.noted], [[], []]);
    assert.deepEqual(book.state.released, [{ ...TRIP, upTo: 3 }]);
    assert.ok(guard.maySend);
    await fail(4);
    assert.deepEqual(scopes(book.state.trips), ['cluster']);
    assert.equal(book.state.released, undefined);
  });

  test('trips immediately for a node that went down later', async (context) => {
    const downMs = { ...long, n4: 59 * SECOND };
    const { book } = await bench(context, { stored: [RELEASED], downMs });
    assert.deepEqual(scopes(book.state.trips), ['cluster']);
  });

  test('is removed after five minutes of recovery', async (context) => {
    const { guard, book, time } = await bench(context, { stored: [RELEASED] });
    guard.review();
    await time.pass(CALM_MS);
    guard.review();
    await time.settle();
    assert.deepEqual([book.state.trips, book.state.released], [[], undefined]);
  });
});

test('allows no deltas before the stored state is read', async (context) => {
  const { book, time, guard, fail, calls, log } = await bench(context, { isAway: true });
  void fail(1);
  await time.pass(10 * SECOND);
  assert.deepEqual([guard.maySend, calls.freed], [false, 0]);
  assert.ok(log.lines.length > 5 && log.lines.length < 20, `${log.lines.length} reads`);
  const unread = { event: 'rules.unreadable', fields: { error: new StoreError('the table is away') } };
  for (const line of log.lines) assert.deepEqual(line, { level: 'warn', ...unread });
  book.isAway = false;
  await time.pass(2 * SECOND);
  assert.deepEqual([guard.maySend, calls.freed], [true, 1]);
});

test('allows deltas of a cluster that it does not know only once the stored state is read', async (context) => {
  const { book, time, guard, state } = await bench(context, { isAway: true });
  state.knows = false;
  assert.deepEqual([guard.maySend, guard.trips], [false, []]);
  book.isAway = false;
  await time.pass(2 * SECOND);
  assert.equal(guard.maySend, true);
  assert.equal(await guard.whyUnwritable(), undefined);
});

test('ignores rules that are older than its own write', async (context) => {
  const { guard, governing, fail, book } = await bench(context);
  const old = governing();
  await fail(1, 2, 3);
  guard.ruled(old);
  assert.deepEqual(guard.trips, book.state.trips);
});

test('reads once, not again and again, for a revision that the store no longer has', async (context) => {
  const { guard, governing, book, time, fail } = await bench(context);
  const read = context.mock.method(book, 'read');
  guard.ruled(governing({ guardRevision: 7 }));
  await time.settle();
  assert.equal(read.mock.callCount(), 1);
  await fail(1, 2, 3);
  assert.deepEqual([scopes(guard.trips), read.mock.callCount()], [['cluster'], 1]);
});

test('ignores a read that is answered after its own write', async (context) => {
  const { guard, governing, fail, book, time, logged } = await bench(context);
  const late = Promise.withResolvers<StoredRules>();
  const before = await book.read(C1);
  context.mock.method(book, 'read', () => late.promise, { times: 1 });
  guard.ruled(governing({ guardRevision: 1 }));
  await fail(1, 2, 3);
  late.resolve(before);
  await time.settle();
  assert.deepEqual([scopes(guard.trips), logged()], [['cluster'], [['guard.tripped', 'cluster']]]);
});

for (const [passedMs, others, expected] of [
  [9 * 60 * SECOND, [], ['customTaints']],
  [11 * 60 * SECOND, [], []],
  [11 * 60 * SECOND, [1, 2, 3], ['cluster']],
] as const)
  test(`counts custom taints of ten minutes: those of ${passedMs} ms ago beside ${others.length} nodes down`, async (context) => {
    const { fail, taint, book, time } = await bench(context);
    await fail(...others);
    await taint(4, 5);
    await time.pass(passedMs);
    await taint(6, 7, 8);
    assert.deepEqual(scopes(book.state.trips), expected);
  });

test('records each trip and each reset, in the audit and in the log', async (context) => {
  const { guard, fail, heal, taint, book, time, recorded } = await bench(context);
  const writes = context.mock.method(book, 'changeGuard');
  await fail(1, 2, 3);
  await heal(1, 2, 3);
  await time.pass(CALM_MS);
  // The next trip begins in the review in which the first ends.
  await taint(4, 5, 6, 7, 8);
  await fail(1, 2, 3);
  await heal(4, 5, 6, 7, 8);
  await time.pass(CALM_MS);
  guard.review();
  await time.settle();
  const then = NOW + CALM_MS;
  const [down, custom] = ['3 of 10 nodes down', '5 of 10 nodes with custom taints'];
  assert.deepEqual(
    writes.mock.calls.map(({ arguments: given }) => Object.values({ ...given[3] })),
    [
      [C1, 'the guard', NOW, 'guard-tripped', `guard tripped: ${down}`],
      [
        C1,
        'the guard',
        then,
        'guard-tripped',
        `guard tripped: ${custom}; guard reset: it had tripped with ${down}`,
      ],
      [C1, 'the guard', then, 'guard-tripped', `guard tripped: ${down}`],
      [C1, 'the guard', then + CALM_MS, 'guard-calm', `guard reset: it had tripped with ${custom}`],
    ],
  );
  assert.deepEqual(recorded(), [
    'warn guard.tripped cluster 3 of 10',
    'warn guard.tripped customTaints 5 of 10',
    'info guard.released cluster 3 of 10 by auto',
    'warn guard.tripped cluster 3 of 10',
    'info guard.released customTaints 5 of 10 by auto',
  ]);
});

test('logs what another process began and ended, by scope, zone, and time', async (context) => {
  const inZone = (zone: string, trippedAt = 1): Trip => ({ ...TRIP, scope: 'zone', zone, trippedAt });
  const custom: Trip = { ...TRIP, scope: 'customTaints' };
  const stored = [inZone('a'), inZone('b'), custom];
  const { guard, book, governing, time, recorded } = await bench(context, { stored });
  book.set([inZone('a', 2), inZone('b'), inZone('c'), custom, TRIP]);
  guard.ruled(governing());
  await time.settle();
  const first = [
    'warn guard.tripped zone a 5 of 10',
    'warn guard.tripped zone c 5 of 10',
    'warn guard.tripped cluster 5 of 10',
    'info guard.released zone a 5 of 10 by operator',
  ];
  assert.deepEqual(recorded(), first);
  // The write of its own resets finds that another process released one of the trips.
  book.set([inZone('b'), inZone('c'), custom, TRIP]);
  await time.pass(CALM_MS);
  guard.review();
  await time.settle();
  assert.deepEqual(recorded().slice(first.length), [
    'info guard.released zone a 5 of 10 by operator',
    'info guard.released zone b 5 of 10 by auto',
    'info guard.released zone c 5 of 10 by auto',
    'info guard.released customTaints 5 of 10 by auto',
    'info guard.released cluster 5 of 10 by auto',
  ]);
});

test('logs its own reset as its own although the rules show the reset before the write is answered', async (context) => {
  const { guard, book, governing, time, recorded } = await bench(context, { stored: [TRIP] });
  const answered = Promise.withResolvers<'changed'>();
  const change = book.changeGuard.bind(book);
  book.changeGuard = async (...args) => (await change(...args)) && answered.promise;
  guard.review();
  await time.pass(CALM_MS);
  guard.review();
  await time.settle();
  guard.ruled(governing());
  await time.settle();
  assert.deepEqual(recorded(), ['info guard.released cluster 5 of 10 by auto']);
  answered.resolve('changed');
});

test('keeps counting custom taints while it holds evictions', async (context) => {
  const { guard, taint, heal, book, time } = await bench(context);
  await taint(1, 2, 3, 4, 5);
  assert.deepEqual(scopes(book.state.trips), ['customTaints']);
  await time.pass(60 * 60 * SECOND);
  guard.review();
  await time.pass(CALM_MS);
  guard.review();
  await time.settle();
  assert.deepEqual(scopes(book.state.trips), ['customTaints']);
  void heal(1, 2, 3);
  await time.pass(CALM_MS);
  guard.review();
  await time.settle();
  assert.deepEqual(book.state.trips, []);
});

test('only logs a trip in dry run, and allows deltas immediately', async (context) => {
  const policy = { ...RULES.policy, guard: { ...RULES.policy.guard, dryRun: true } };
  const { guard, fail, book, logged } = await bench(context, { rules: { policy } });
  void fail(1, 2, 3);
  assert.ok(guard.maySend);
  await fail(4);
  assert.equal(book.tries, 0);
  assert.deepEqual(logged(), [['guard.would-trip', 'cluster']]);
});

test('saves nothing after its relay lost the lease', async (context) => {
  const { fail, book, stopping, time } = await bench(context);
  book.isAway = true;
  await fail(1, 2, 3);
  stopping.abort();
  book.isAway = false;
  await time.pass(10 * SECOND);
  assert.deepEqual(book.state.trips, []);
});

test('saves nothing from an outdated view, for any earlier failures', async (context) => {
  const { book, fail, state, time, guard, calls } = await bench(context);
  book.isAway = true;
  void fail(1, 2, 3);
  await time.pass(SECOND);
  const { tries } = book;
  assert.ok(tries > 0);
  state.knows = false;
  book.isAway = false;
  await time.pass(60 * SECOND);
  assert.ok(book.tries <= tries + 1);
  assert.deepEqual([scopes(book.state.trips), calls.freed], [[], 0]);
  state.knows = true;
  guard.review();
  await time.pass(SECOND);
  assert.deepEqual(scopes(book.state.trips), ['cluster']);
});
