import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getHeapStatistics } from 'node:v8';
import fc from 'fast-check';
import { PassingPods } from '#shared/engine/watch/memory-limits.ts';
import { PodMerge } from '#shared/engine/watch/pod-merge.ts';
import type { Change, LivePod } from '#shared/kubernetes/api.ts';
import { livePod } from './live-objects.ts';

const MAX_KEPT = 10_000;

const upsert = (uid: string, version: number): Change<LivePod> => ({
  kind: 'upsert',
  object: livePod(uid, { resourceVersion: String(version) }),
});
const removal = (uid: string, version: number): Change<LivePod> => ({
  ...upsert(uid, version),
  kind: 'delete',
});

/** Returns each pod as its UID and version, sorted. */
const brief = (pods: Iterable<LivePod>) => [...pods].map((pod) => `${pod.uid}@${pod.resourceVersion}`).sort();

/** The pods that a sink of the merge has. */
class Sink {
  readonly pods = new Map<string, LivePod>();

  replace(pods: readonly LivePod[]): void {
    this.pods.clear();
    for (const pod of pods) this.pods.set(pod.uid, pod);
  }

  change({ kind, object }: Change<LivePod>): void {
    if (kind === 'upsert') this.pods.set(object.uid, object);
    else this.pods.delete(object.uid);
  }
}

/** Returns the pods of a node after `count` of the changes. */
function stateAt(changes: readonly Change<LivePod>[], count: number): readonly LivePod[] {
  const state = new Sink();
  for (const change of changes.slice(0, count)) state.change(change);
  return [...state.pods.values()];
}

/**
 * Writes to few pods. The first has version 8, so that versions get longer on the way. A deleted pod does not
 * return.
 */
const histories = fc
  .array(fc.record({ slot: fc.nat(3), goes: fc.boolean() }), { minLength: 1, maxLength: 30, size: 'max' })
  .map((writes) => {
    const lives = new Map<number, { readonly uid: string; readonly there: boolean }>();
    return writes.map(({ slot, goes }, index): Change<LivePod> => {
      const version = index + 8;
      const before = lives.get(slot);
      const uid = before?.there ? before.uid : `u${slot}.${version}`;
      const there = !(goes && before?.there);
      lives.set(slot, { uid, there });
      return there ? upsert(uid, version) : removal(uid, version);
    });
  });

/** A step of the merge: the next event arrives, a list is requested, or a list answers as of a given time. */
type Turn = 'hear' | 'ask' | { readonly asOf: number };

const turns: fc.Arbitrary<Turn[]> = fc.array(
  fc.oneof(
    fc.constant('hear' as const),
    fc.constant('ask' as const),
    fc.record({ asOf: fc.double({ min: 0, max: 1, noNaN: true }) }),
  ),
  { maxLength: 80, size: 'max' },
);

test('lists and events in any order leave neither a phantom nor a gap after all events', () => {
  fc.assert(
    fc.property(histories, turns, fc.nat(30), (changes, order, missed) => {
      const merge = new PodMerge(new PassingPods());
      const sink = new Sink();
      // A watch that begins in the middle: earlier changes are only in lists.
      let heard = Math.min(missed, changes.length);
      let asks: { readonly id: number; readonly floor: number }[] = [];
      const ask = () => asks.push({ id: merge.ask(), floor: heard });
      const answer = (asOf: number) => {
        const [asked, ...later] = asks;
        if (!asked) return;
        asks = later;
        // Not older than the last event at the request, and perhaps ahead of the events.
        const count = asked.floor + Math.round(asOf * (changes.length - asked.floor));
        const version = changes[count - 1]?.object.resourceVersion ?? '7';
        const pods = merge.answer(asked.id, stateAt(changes, count), version);
        assert.equal(pods === undefined, later.length > 0, 'only the answer to the last ask counts');
        if (pods) sink.replace(pods);
      };
      const hear = () => {
        const change = changes[heard];
        if (!change) return;
        heard += 1;
        if (merge.receive(change)) sink.change(change);
      };
      for (const turn of order) {
        if (turn === 'hear') hear();
        else if (turn === 'ask') ask();
        else answer(turn.asOf);
      }
      if (!merge.listed) ask();
      while (asks.length > 0) answer(0);
      while (heard < changes.length) hear();
      assert.deepEqual(brief(sink.pods.values()), brief(stateAt(changes, changes.length)));
    }),
    { numRuns: 2_000 },
  );
});

test('ignores events before a list has answered', () => {
  const merge = new PodMerge(new PassingPods());
  assert.equal(merge.receive(upsert('u1', 5)), false);
  merge.ask();
  assert.equal(merge.receive(upsert('u1', 6)), false);
  assert.equal(merge.listed, false);
});

test('ignores an event that a list covers, for any length of its number', () => {
  const merge = new PodMerge(new PassingPods());
  merge.answer(merge.ask(), [], '10');
  assert.equal(merge.receive(upsert('u1', 9)), false);
  assert.equal(merge.receive(upsert('u1', 10)), false);
  assert.equal(merge.receive(upsert('u1', 11)), true);
});

test('ignores an answer after more events than it keeps, and accepts the next answer', () => {
  const merge = new PodMerge(new PassingPods());
  const asked = merge.ask();
  for (let heard = 0; heard <= MAX_KEPT; heard++) merge.receive(upsert('u1', heard + 2));
  assert.equal(merge.answer(asked, [], '1'), undefined);
  assert.equal(merge.listed, false);
  assert.deepEqual(merge.answer(merge.ask(), [], '10005'), []);
});

test('ignores an answer after events beyond the memory limit, and frees their memory', () => {
  const passing = new PassingPods();
  const [merge, other] = [new PodMerge(passing), new PodMerge(passing)];
  const larger = (uid: string, version: number): Change<LivePod> => {
    const labels = { large: 'x'.repeat(getHeapStatistics().heap_size_limit / 60) };
    return { kind: 'upsert', object: livePod(uid, { resourceVersion: String(version), labels }) };
  };
  const [asked, askedOther] = [merge.ask(), other.ask()];
  for (let heard = 0; heard < 5; heard++) {
    merge.receive(larger('u1', heard + 2));
    other.receive(larger('u2', heard + 2));
  }
  assert.deepEqual(brief(merge.answer(asked, [], '1') ?? []), ['u1@6']);
  assert.equal(other.answer(askedOther, [], '1'), undefined);
  const again = other.ask();
  for (let heard = 0; heard < 9; heard++) other.receive(larger('u2', heard + 2));
  assert.deepEqual(brief(other.answer(again, [], '1') ?? []), ['u2@10']);
});

test('keeps the previous list when a list gets no answer', () => {
  const merge = new PodMerge(new PassingPods());
  merge.answer(merge.ask(), [], '5');
  const asked = merge.ask();
  assert.equal(merge.receive(upsert('u1', 6)), true);
  merge.giveUp(asked);
  assert.equal(merge.receive(upsert('u2', 7)), true);
  assert.equal(merge.answer(asked, [], '5'), undefined);
});
