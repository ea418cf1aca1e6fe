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
type Turn = 'receive' | 'list' | { readonly asOf: number };

const turns: fc.Arbitrary<Turn[]> = fc.array(
  fc.oneof(
    fc.constant('receive' as const),
    fc.constant('list' as const),
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
      let received = Math.min(missed, changes.length);
      let requests: { readonly id: number; readonly floor: number }[] = [];
      const startList = () => requests.push({ id: merge.ask(), floor: received });
      const answer = (asOf: number) => {
        const [request, ...later] = requests;
        if (!request) return;
        requests = later;
        // Not older than the last event at the request, and perhaps ahead of the events.
        const count = request.floor + Math.round(asOf * (changes.length - request.floor));
        const version = changes[count - 1]?.object.resourceVersion ?? '7';
        const pods = merge.answer(request.id, stateAt(changes, count), version);
        assert.equal(pods === undefined, later.length > 0, 'only the answer to the last ask counts');
        if (pods) sink.replace(pods);
      };
      const receive = () => {
        const change = changes[received];
        if (!change) return;
        received += 1;
        if (merge.receive(change)) sink.change(change);
      };
      for (const turn of order) {
        if (turn === 'receive') receive();
        else if (turn === 'list') startList();
        else answer(turn.asOf);
      }
      if (!merge.listed) startList();
      while (requests.length > 0) answer(0);
      while (received < changes.length) receive();
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
  const id = merge.ask();
  for (const version of [9, 10, 11]) merge.receive(upsert(`u${version}`, version));
  assert.deepEqual(brief(merge.answer(id, [], '10') ?? []), ['u11@11']);
  assert.equal(merge.receive(upsert('u1', 9)), false);
  assert.equal(merge.receive(upsert('u1', 10)), false);
  assert.equal(merge.receive(upsert('u1', 11)), true);
});

test('ignores an answer after more events than it keeps, and accepts the next answer', () => {
  const merge = new PodMerge(new PassingPods());
  const id = merge.ask();
  for (let received = 0; received <= MAX_KEPT; received++) merge.receive(upsert('u1', received + 2));
  assert.equal(merge.answer(id, [], '1'), undefined);
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
  const [id, otherId] = [merge.ask(), other.ask()];
  for (let received = 0; received < 5; received++) {
    merge.receive(larger('u1', received + 2));
    other.receive(larger('u2', received + 2));
  }
  assert.deepEqual(brief(merge.answer(id, [], '1') ?? []), ['u1@6']);
  assert.equal(other.answer(otherId, [], '1'), undefined);
  const [, again = 0] = ['once', 'twice'].map(() => {
    const list = other.ask();
    for (let received = 0; received < 9; received++) other.receive(larger('u2', received + 2));
    return list;
  });
  assert.deepEqual(brief(other.answer(again, [], '1') ?? []), ['u2@10']);
});

test('keeps the previous list when a list gets no answer', () => {
  const merge = new PodMerge(new PassingPods());
  merge.answer(merge.ask(), [], '5');
  const id = merge.ask();
  assert.equal(merge.receive(upsert('u1', 6)), true);
  merge.giveUp(id);
  assert.equal(merge.receive(upsert('u2', 7)), true);
  assert.equal(merge.answer(id, [], '5'), undefined);
  const later = merge.ask();
  merge.giveUp(id);
  assert.deepEqual(merge.answer(later, [], '8'), [], 'the end of an earlier list');
});
