import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Delta, SeenTaint } from '#shared/eviction/facts.ts';
import {
  isDoubtful,
  mergeNodeState,
  raiseStarts,
  sameFacts,
  timeLiveTaints,
} from '#shared/eviction/node-state.ts';
import type { NodeState } from '#shared/eviction/records.ts';
import { heldText } from '#shared/eviction/skew.ts';
import { type LiveTaint, NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { at, found, nodeDelta, podDelta, podGone, taint } from './builders.ts';

/** Returns the node state after these deltas, in this order, each processed when it was observed. */
const merged = (...deltas: readonly Delta[]): NodeState => {
  const state = deltas.reduce<NodeState | undefined>(
    (known, delta) => mergeNodeState(known, delta, delta.observedAt),
    undefined,
  );
  assert.ok(state);
  return state;
};
const since = (state: NodeState) => state.taints.map((each) => each.since);
/** Returns a delta of the `epoch`th relay. */
const seenBy = (epoch: number, second: number, ...taints: readonly SeenTaint[]) =>
  nodeDelta(second, { version: { epoch, sequence: second }, taints });

describe('a countdown', () => {
  test('starts when the relay saw the taint appear, or found it', () => {
    for (const seen of [taint('a', 7), found('a', 7)])
      assert.deepEqual(since(merged(seenBy(1, 9, seen))), [at(7)]);
  });

  test('never starts in the future, for any clock of the relay', () => {
    const ahead = nodeDelta(1, { taints: [taint('a', 100)] });
    assert.deepEqual(since(mergeNodeState(undefined, ahead, at(5))), [at(5)]);
    assert.deepEqual(since(mergeNodeState(merged(nodeDelta(1)), ahead, at(5))), [at(5)]);
  });

  test('continues while the taint is present, with any value', () => {
    const revalued = nodeDelta(2, { taints: [taint('a', 0, 'other')] });
    assert.deepEqual(since(merged(nodeDelta(1, { taints: [taint('a', 0, 'one')] }), revalued)), [at(0)]);
  });

  test('continues when another relay finds the taint, however the first knew it', () => {
    const state = merged(nodeDelta(1), seenBy(2, 30, found('a', 30)), seenBy(3, 50, found('a', 50)));
    assert.deepEqual([since(state), state.taints[0]?.known], [[at(0)], 'added']);
    assert.deepEqual(since(merged(seenBy(1, 9, found('a', 9)), seenBy(2, 30, found('a', 30)))), [at(9)]);
  });

  test('restarts when any relay saw the taint appear later, even without a reported removal', () => {
    assert.deepEqual(since(merged(nodeDelta(1), seenBy(1, 30, taint('a', 30)))), [at(30)]);
    assert.deepEqual(since(merged(nodeDelta(1), seenBy(2, 31, taint('a', 31)))), [at(31)]);
  });

  test('restarts when a delta of any relay, however late, lacks the taint', () => {
    const successor = seenBy(2, 45, found('a', 45));
    // The taint came back by the time at which the successor found it.
    assert.deepEqual(since(merged(nodeDelta(1), successor, seenBy(1, 30))), [at(45)]);
    assert.deepEqual(since(merged(nodeDelta(1), successor, seenBy(1, 30), seenBy(1, 40, taint('a', 40)))), [
      at(45),
    ]);
    assert.deepEqual(since(merged(nodeDelta(1), successor, podGone(30, { taints: [] }))), [at(45)]);
    assert.deepEqual(since(merged(nodeDelta(1), successor, seenBy(1, 0))), [at(0)]);
  });

  test('restarts after a delta without the taint, although a later delta claims an earlier find', () => {
    assert.deepEqual(since(merged(nodeDelta(1), seenBy(1, 50), seenBy(2, 51, found('a', 45)))), [at(50)]);
  });

  test('starts when the next relay found the taint, if a delta too old to decide reported the removal', () => {
    const refused = (delta: Delta) => raiseStarts(merged(nodeDelta(1)), delta, at(50));
    const next = (state: NodeState) => since(mergeNodeState(state, seenBy(2, 45, found('a', 40)), at(51)));
    assert.deepEqual(next(refused(seenBy(1, 30))), [at(40)]);
    assert.deepEqual(next(refused(seenBy(1, 30, taint('a', 30)))), [at(30)]);
    assert.deepEqual(next(mergeNodeState(refused(seenBy(1, 30)), seenBy(2, 31, found('a', 20)), at(52))), [
      at(30),
    ]);
  });

  test('never starts earlier than before', () => {
    assert.deepEqual(since(merged(nodeDelta(1), seenBy(2, 30, taint('a', -5)))), [at(0)]);
  });

  test('does not restart for a deleted node whose taints the relay never saw', () => {
    const unseen = nodeDelta(20, { deletedAt: at(20), taints: [] });
    assert.deepEqual(since(merged(nodeDelta(1), unseen)), [at(0)]);
  });

  test('is shared by not-ready and unreachable, for any times that the node controller writes', () => {
    const notReady = { ...taint(NODE_NOT_READY), timeAdded: at(0) };
    const unreachable = { ...taint(NODE_UNREACHABLE), timeAdded: at(30) };
    const state = merged(nodeDelta(1, { taints: [notReady] }), nodeDelta(30, { taints: [unreachable] }));
    assert.deepEqual(since(state), [at(0)]);
    assert.equal(state.taints[0]?.key, NODE_UNREACHABLE);
  });

  test('continues for not-ready and unreachable while either taint stays, although the other is set again', () => {
    const set = (key: string, second: number) => ({ ...found(key, second), timeAdded: at(second) });
    const [notReady, unreachable] = [set(NODE_NOT_READY, 0), set(NODE_UNREACHABLE, 10)];
    const delta = (second: number, ...taints: readonly SeenTaint[]) =>
      nodeDelta(second, { taints, observedAt: at(second) });
    const both = [delta(1, notReady), delta(10, notReady, unreachable)];
    const setAgain = set(NODE_NOT_READY, 20);
    assert.deepEqual(since(merged(...both)), [at(0), at(0)]);
    assert.deepEqual(since(merged(...both, delta(20, unreachable, setAgain))), [at(0), at(0)]);
    assert.deepEqual(since(merged(...both, delta(20, unreachable, setAgain), delta(30, setAgain))), [at(0)]);
    assert.deepEqual(since(merged(...both, delta(30, notReady))), [at(0)]);
    assert.deepEqual(since(merged(...both, delta(20, setAgain))), [at(20)], 'neither stood');
    const liveStarts = (...live: readonly LiveTaint[]) =>
      timeLiveTaints(merged(...both), live, [], at(50)).map((each) => each.since);
    const live = (key: string, second: number) => ({ key, effect: 'NoExecute', timeAdded: at(second) });
    assert.deepEqual(liveStarts(live(NODE_UNREACHABLE, 25)), [at(25.999)]);
    assert.deepEqual(liveStarts(live(NODE_UNREACHABLE, 25), live(NODE_NOT_READY, 0)), [at(0), at(0)]);
    assert.deepEqual(liveStarts(live(NODE_UNREACHABLE, 25), live(NODE_NOT_READY, 26)), [
      at(25.999),
      at(26.999),
    ]);
  });

  test('restarts when the taint has another time than before', () => {
    const set = (second: number) => ({ ...found('a', 0), timeAdded: at(second) });
    assert.deepEqual(since(merged(seenBy(1, 1, set(0)), seenBy(1, 50, set(40)))), [at(40)]);
    assert.deepEqual(since(merged(seenBy(1, 1, set(0)), seenBy(1, 50, set(0)))), [at(0)]);
  });

  test('restarts no earlier than possible within the second that the taint names', () => {
    const set = (second: number, seenAt: number) => ({ ...found('a', 0), seenAt, timeAdded: at(second) });
    const sinceOf = (seenAt: number) =>
      since(merged(seenBy(1, 1, set(0, at(0))), seenBy(1, 50, set(40, seenAt))));
    assert.deepEqual(sinceOf(at(40) + 300), [at(40) + 300], 'seen within that second');
    assert.deepEqual(sinceOf(at(45)), [at(40) + 999]);
  });

  test('never starts before its taint was set again in the named second', () => {
    const ms = (most: number) => fc.integer({ min: 0, max: most });
    fc.assert(
      fc.property(ms(40_000), ms(5_000), ms(5_000), (afterMs, seenAfter, receivedAfter) => {
        const setAt = at(0) + afterMs;
        const named = Math.floor(setAt / 1000) * 1000;
        const seenAt = setAt + seenAfter;
        const delta = nodeDelta(50, { taints: [{ ...found('a', 0), seenAt, timeAdded: named }] });
        const [{ since: startedAt = Infinity } = {}] = raiseStarts(
          merged(seenBy(1, -9, { ...found('a', -9), timeAdded: at(-9) })),
          delta,
          seenAt + receivedAfter,
        ).taints;
        assert.ok(startedAt >= setAt, `${setAt - startedAt} ms early`);
        assert.ok(startedAt <= named + 999, 'later than it can have been');
      }),
    );
  });

  test('restarts for exactly the taint that a delta lacks', () => {
    const both = merged(nodeDelta(1, { taints: [taint('a'), taint('b')] }));
    const { taints } = raiseStarts(both, podGone(30, { taints: [taint('b')] }), at(50));
    assert.deepEqual(
      taints.map((each) => each.since),
      [at(30), at(0)],
    );
  });

  test('does not restart for a removal observed at exactly its start', () => {
    const [kept] = raiseStarts(
      merged(nodeDelta(1)),
      podGone(1, { observedAt: at(0), taints: [] }),
      at(50),
    ).taints;
    assert.deepEqual([kept?.since, kept?.known], [at(0), 'added']);
  });

  test('continues when the taint repeats its time, although that is later than the start', () => {
    const set = { ...found('a', 0), timeAdded: at(90) };
    assert.deepEqual(since(merged(seenBy(1, 1, set), seenBy(1, 50, set), seenBy(1, 100, set))), [at(0)]);
  });

  test('starts no earlier than the time of the taint, where the clock of the relay is behind', () => {
    const added = (second: number) => ({ ...taint('a', 760), timeAdded: at(second) });
    const behind = { observedAt: at(760), taints: [added(1000)] };
    const [stored] = mergeNodeState(undefined, nodeDelta(1, behind), at(1001)).taints;
    assert.deepEqual([stored?.since, stored?.known], [at(1000), 'added']);
    assert.deepEqual(since(merged(seenBy(1, 760, added(790)))), [at(790)]);
    assert.deepEqual(since(merged(seenBy(1, 760, added(700)))), [at(760)]);
    // The taint's time is later than the node was observed without it, so a found taint counts as appeared.
    const found30 = { ...found('a', 760), timeAdded: at(790) };
    assert.equal(merged(seenBy(1, 760, found30)).taints[0]?.known, 'added');
  });

  test('ignores a time more than 30 s ahead, also when it is rewritten repeatedly', () => {
    const ahead = (second: number, by: number) => ({ ...taint('a', 10), timeAdded: at(second + by) });
    assert.deepEqual(since(merged(seenBy(1, 10, ahead(10, 31)))), [at(10)]);
    const seconds = Array.from({ length: 100 }, (_, index) => 10 * (index + 1));
    const rewritten = merged(...seconds.map((second) => seenBy(1, second, ahead(second, 31))));
    assert.deepEqual(since(rewritten), [at(10)]);
  });

  test('counts the time of a taint once, so that a later observation does not restart it', () => {
    const set = { ...taint('a', 10), timeAdded: at(30) };
    assert.deepEqual(
      since(
        merged(
          seenBy(1, 10, set),
          seenBy(1, 20, set),
          seenBy(2, 50, { ...set, seenAt: at(50), known: 'preexisting' }),
        ),
      ),
      [at(30)],
    );
  });

  test('restarts at the next report of its taint after a wrong clock started it in the future', () => {
    const year = 365 * 86_400;
    const wrong = mergeNodeState(undefined, seenBy(1, year, taint('a', year)), at(year));
    const honest = (second: number) => seenBy(2, second, { ...found('a', 60), timeAdded: at(0) });
    const next = mergeNodeState(wrong, honest(60), at(61));
    assert.deepEqual(since(next), [at(60)]);
    assert.deepEqual(since(mergeNodeState(next, honest(600), at(601))), [at(60)]);
    assert.equal(next.taints[0]?.known, 'added');
  });

  test('never keeps a start in the future, and is not doubtful afterwards', () => {
    const seconds = fc.integer({ min: -100_000, max: 100_000 });
    fc.assert(
      fc.property(seconds, seconds, fc.boolean(), fc.boolean(), (ahead, seen, isFound, lacks) => {
        const first = isFound ? found('a', ahead) : taint('a', ahead);
        const wrong = mergeNodeState(undefined, seenBy(1, ahead, first), at(ahead));
        const now = Math.max(seen, 0);
        const next = mergeNodeState(wrong, seenBy(2, now, ...(lacks ? [] : [found('a', now)])), at(now));
        for (const known of next.taints) {
          assert.ok(known.since <= at(now) + 30_000);
          if (ahead > now + 30) assert.equal(isDoubtful(next, known), false);
        }
      }),
    );
  });

  test('ignores a next retry that is later than any rule allows, as stored by a wrong clock', () => {
    const year = at(365 * 86_400);
    const state = merged(nodeDelta(1));
    const retry = { attempts: 1, since: year, nextTryAt: year, error: 'no', everything: true };
    const waiting = { ...state, retry, blocked: { attempts: 1, nextTryAt: year } };
    const next = mergeNodeState(waiting, nodeDelta(2), at(2));
    assert.deepEqual([next.retry?.nextTryAt, next.blocked?.nextTryAt], [at(2), at(2)]);
    const soon = { ...waiting, retry: { ...retry, nextTryAt: at(3_000) } };
    assert.equal(mergeNodeState(soon, nodeDelta(2), at(2)).retry?.nextTryAt, at(3_000));
  });

  test('continues when the taint no longer has a time', () => {
    assert.deepEqual(
      since(merged(seenBy(1, 1, { ...found('a', 0), timeAdded: at(0) }), seenBy(1, 50, found('a', 0)))),
      [at(0)],
    );
  });

  test('starts with the find of the taint on a returning node, also before its deletion was seen', () => {
    const gone = nodeDelta(20, { deletedAt: at(20), taints: [], pods: [] });
    assert.deepEqual(since(merged(gone, seenBy(1, 40, found('a', 15)))), [at(15)]);
  });

  test('does not continue from stored taints of a deleted node after a reported removal', () => {
    const gone = (second: number, ...taints: readonly SeenTaint[]) =>
      nodeDelta(second, { version: { epoch: 2, sequence: second }, taints, deletedAt: at(40) });
    const doubted = raiseStarts(merged(nodeDelta(1)), seenBy(1, 30), at(50));
    const after = (known: NodeState, ...deltas: readonly Delta[]) =>
      since(deltas.reduce((state, delta) => mergeNodeState(state, delta, at(90)), known));
    const stale = gone(41, found('a', 0));
    for (const known of [doubted, merged(nodeDelta(1), seenBy(1, 30))]) {
      assert.deepEqual(after(known, stale), []);
      assert.deepEqual(after(known, gone(41, found('a', 30))), [], 'of the moment of that word');
      assert.deepEqual(after(known, stale, stale), [], 'delivered again');
      assert.deepEqual(after(known, stale, gone(50, found('a', 0))), [], 'at the next resync');
      assert.deepEqual(after(known, stale, seenBy(2, 60, found('a', 59))), [at(59)]);
      assert.deepEqual(after(known, gone(41, found('a', 35))), [at(35)], 'found after that');
      assert.deepEqual(after(known, gone(41, taint('a', 35))), [at(35)], 'seen to come after that');
    }
    assert.deepEqual(after(doubted, gone(41)), []);
    assert.deepEqual(after(merged(nodeDelta(1)), stale), [at(0)], 'nobody doubts it');
    assert.deepEqual(after(merged(nodeDelta(1)), gone(41)), [at(0)], 'nobody doubts it, or saw it');
  });

  test('is separate for each other key', () => {
    const both = nodeDelta(30, { taints: [taint('a'), taint('b', 30)] });
    assert.deepEqual(since(merged(nodeDelta(1), both)), [at(0), at(30)]);
  });
});

describe('the state of a node', () => {
  test('ignores older facts, but records that all pods were listed', () => {
    const state = merged(podDelta(20), nodeDelta(10, { taints: [] }));
    assert.deepEqual(since(state), [at(20)]);
    assert.deepEqual(state.version, { epoch: 1, sequence: 20 });
    assert.deepEqual(state.podsVersion, { epoch: 1, sequence: 10 });
  });

  test('keeps the latest time at which all pods were listed', () => {
    const { podsVersion } = merged(nodeDelta(20), nodeDelta(10), podDelta(30));
    assert.deepEqual(podsVersion, { epoch: 1, sequence: 20 });
  });

  test('follows the newest delta, also for the deletion of the node', () => {
    const gone = { deletedAt: at(20) };
    assert.equal(merged(nodeDelta(1), nodeDelta(20, gone), podGone(30, gone)).deletedAt, at(20));
    assert.equal(merged(nodeDelta(20, gone), nodeDelta(40)).deletedAt, undefined);
    assert.equal(merged(nodeDelta(40), nodeDelta(20, gone)).deletedAt, undefined);
  });

  test('has no countdown in common with a later node of its name', () => {
    const gone = nodeDelta(20, { deletedAt: at(20), taints: [taint(NODE_UNREACHABLE)] });
    const created = nodeDelta(40, { taints: [found(NODE_NOT_READY, 40)] });
    assert.equal(
      merged(nodeDelta(1, { taints: [taint(NODE_UNREACHABLE)] }), gone, created).taints[0]?.since,
      at(40),
    );
  });
});

describe('the stored state of a node', () => {
  test('is exactly the content of the newest delta', () => {
    const timed = { key: 'a', effect: 'NoExecute', known: 'added', since: at(0) };
    const version = { epoch: 1, sequence: 1 };
    const state = { taints: [timed], version, observedAt: at(1), podsVersion: version };
    assert.deepEqual(merged(nodeDelta(1)), state);
    assert.deepEqual(merged(nodeDelta(1, { guardRevision: 3, taintsStamp: 'kubectl@1' })), {
      ...state,
      guardRevision: 3,
      taintsStamp: 'kubectl@1',
    });
  });

  test('has no taint where the node was deleted before any relay saw a taint', () => {
    assert.deepEqual(merged(nodeDelta(1, { deletedAt: at(1), taints: [] })).taints, []);
  });
});

describe('the next retry of a node', () => {
  const retry = { attempts: 3, nextTryAt: at(100), since: at(60), error: 'no', everything: true };
  const failing = { ...merged(nodeDelta(1)), retry };
  const retryAfter = (delta: Delta, second: number) => mergeNodeState(failing, delta, at(second)).retry;

  const wake = (second: number, answeredSecond = second) =>
    nodeDelta(second, { wake: true, answeredAt: at(answeredSecond) });

  test('is unchanged by an answer: the server rejects the evictions', () => {
    for (const delta of [wake(70), nodeDelta(70), podDelta(70)]) assert.equal(retryAfter(delta, 70), retry);
  });

  test('is immediate after a wake, where evictions were held for differing clocks', () => {
    const error = heldText([]);
    const held = { ...failing, retry: { ...retry, error } };
    const after = (second: number) => mergeNodeState(held, wake(second), at(second)).retry;
    assert.deepEqual(after(70), { ...retry, error, attempts: 0, nextTryAt: at(70) });
    assert.equal(mergeNodeState(held, nodeDelta(70), at(70)).retry, held.retry);
  });

  test('is immediate after an answer, where the server did not answer the last try', () => {
    const outage = {
      attempts: 5,
      nextTryAt: at(100),
      since: at(10),
      error: 'silent',
      everything: true,
      triedAt: at(50),
    };
    const silent = { ...failing, outage };
    const after = (delta: Delta) => mergeNodeState(silent, delta, at(70)).outage;
    assert.deepEqual(after(wake(70, 51)), { ...outage, attempts: 0, nextTryAt: at(70) });
    // A change of rules wakes the node, too, but the answer is older than the try.
    for (const delta of [wake(70, 50), nodeDelta(70, { wake: true }), nodeDelta(70), podDelta(70)])
      assert.equal(after(delta), outage);
    const woken = { ...silent, outage: { ...outage, attempts: 0, nextTryAt: at(60) } };
    assert.equal(mergeNodeState(woken, wake(70), at(70)).outage, woken.outage);
    assert.equal(mergeNodeState(silent, nodeDelta(70, { taints: [] }), at(70)).outage, undefined);
  });

  test('ends with the last taint', () => {
    assert.equal(retryAfter(nodeDelta(70, { taints: [] }), 70), undefined);
  });
});

describe('two states are equal', () => {
  const state = merged(nodeDelta(1));
  test('with any versions, and with an empty or an absent value', () => {
    for (const same of [nodeDelta(2), nodeDelta(1, { taints: [taint('a', 0, '')] })])
      assert.equal(sameFacts(state, merged(same)), true);
  });

  const others: Readonly<Record<string, Delta>> = {
    'a taint more': nodeDelta(1, { taints: [taint('a'), taint('b')] }),
    'another key': nodeDelta(1, { taints: [taint('b')] }),
    'another value': nodeDelta(1, { taints: [taint('a', 0, 'v')] }),
    'another start': nodeDelta(1, { taints: [taint('a', 1)] }),
    'another way of knowing': nodeDelta(1, { taints: [found('a', 0)] }),
    'another moment on the taint': nodeDelta(1, { taints: [{ ...taint('a'), timeAdded: at(0) }] }),
    'a deletion': nodeDelta(1, { deletedAt: at(1) }),
    'another writer of its taints': nodeDelta(1, { taintsStamp: 'kubectl@1' }),
    'another effect': nodeDelta(1, { taints: [{ ...taint('a'), effect: 'NoSchedule', virtual: true }] }),
  };
  for (const [difference, delta] of Object.entries(others))
    test(`but not with ${difference}`, () => assert.equal(sameFacts(state, merged(delta)), false));

  test('but not without an earlier state', () => assert.equal(sameFacts(undefined, state), false));
});

describe('a virtual taint', () => {
  const virtual = (seenSecond: number): SeenTaint => ({
    ...taint(NODE_NOT_READY, seenSecond),
    effect: 'NoSchedule',
    virtual: true,
    timeAdded: at(seenSecond),
  });
  // The relay gives the NoExecute taint the time of the twin that it follows.
  const real = (seenSecond: number): SeenTaint => ({
    ...found(NODE_NOT_READY, seenSecond),
    timeAdded: at(0),
  });

  test('keeps its countdown when it becomes the NoExecute taint and virtual again', () => {
    const becoming = merged(seenBy(1, 1, virtual(0)), seenBy(1, 20, real(20)));
    assert.deepEqual(since(becoming), [at(0)]);
    assert.equal(becoming.taints[0]?.effect, 'NoExecute');
    assert.deepEqual(
      since(merged(seenBy(1, 1, virtual(0)), seenBy(1, 20, real(20)), seenBy(1, 40, virtual(0)))),
      [at(0)],
    );
  });

  test('restarts its countdown if it was set again before it became the NoExecute taint', () => {
    const again = { ...found(NODE_NOT_READY, 40), timeAdded: at(30) };
    assert.deepEqual(since(merged(seenBy(1, 1, virtual(0)), seenBy(1, 40, again))), [at(30) + 999]);
  });

  test('restarts its countdown when its own time changes', () => {
    assert.deepEqual(
      since(merged(seenBy(1, 1, virtual(0)), seenBy(1, 20, { ...virtual(0), timeAdded: at(15) }))),
      [at(15)],
    );
  });
});

describe('live taints', () => {
  test('have the stored start if known and the present otherwise, without other effects', () => {
    const live = [
      { key: 'a', value: 'new', effect: 'NoExecute' },
      { key: 'b', effect: 'NoExecute' },
      { key: 'c', effect: 'NoSchedule' },
    ];
    assert.deepEqual(
      timeLiveTaints(merged(nodeDelta(1)), live, [], at(50)).map(({ key, value, since }) => [
        key,
        value,
        since,
      ]),
      [
        ['a', 'new', at(0)],
        ['b', undefined, at(50)],
      ],
    );
    const [timed] = timeLiveTaints(undefined, live, [], at(50));
    assert.deepEqual([timed?.since, timed?.known], [at(50), 'preexisting']);
  });

  test('include virtual keys', () => {
    const live = [{ key: 'a', effect: 'NoSchedule' }];
    assert.deepEqual(timeLiveTaints(merged(nodeDelta(1)), live, ['a'], at(50)), [
      { key: 'a', effect: 'NoSchedule', virtual: true, since: at(0), known: 'added' },
    ]);
    assert.deepEqual(timeLiveTaints(merged(nodeDelta(1)), live, ['b'], at(50)), []);
  });

  test('start when they were set again, unless that is in the future', () => {
    const live = (second: number) => [{ key: 'a', effect: 'NoExecute', timeAdded: at(second) }];
    assert.equal(timeLiveTaints(merged(nodeDelta(1)), live(30), [], at(50))[0]?.since, at(30.999));
    assert.equal(timeLiveTaints(merged(nodeDelta(1)), live(30), [], at(30.2))[0]?.since, at(30.2));
    assert.equal(timeLiveTaints(merged(nodeDelta(1)), live(79), [], at(50))[0]?.since, at(79));
    assert.equal(timeLiveTaints(merged(nodeDelta(1)), live(90), [], at(50))[0]?.since, at(0));
    assert.equal(timeLiveTaints(merged(nodeDelta(1)), live(90), [], at(50), at(60))[0]?.since, at(50));
  });
});
