import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareVersions, type Delta } from '#shared/eviction/facts.ts';
import { type EvictionRecord, isAnnounced, isTombstone, type Partition } from '#shared/eviction/records.ts';
import { firstMatch } from '#shared/taints/match.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import {
  after,
  at,
  changesNothing,
  committed,
  emptyPartition,
  forecast,
  happened,
  nodeDelta,
  planned,
  podDelta,
  rules,
} from './builders.ts';
import { type RelayHistory, relayHistory } from './relay-history.ts';

/** A history and its deltas in any order, with repetitions. */
const disorder = relayHistory.chain((history) =>
  fc.record({
    history: fc.constant(history),
    delivered: fc
      .array(fc.nat({ max: Math.max(0, history.deltas.length - 1) }), { maxLength: 10 })
      .map((again) => [...history.deltas, ...again.flatMap((index) => history.deltas[index] ?? [])])
      .chain((deltas) => fc.shuffledSubarray(deltas, { minLength: deltas.length })),
  }),
);

const applied = (deltas: readonly Delta[], from: Partition = emptyPartition): Partition =>
  deltas.reduce((partition, delta) => committed(partition, planned(partition, delta)), from);

const scheduledIn = (partition: Partition): readonly EvictionRecord[] => [...partition.scheduled.values()];

/**
 * Returns the deadline of each scheduled pod. Past deadlines are all alike, because they depend on the time of
 * processing.
 */
function dueTimes(partition: Partition, now: EpochMs): ReadonlyMap<string, EpochMs | 'past'> {
  const due = scheduledIn(partition).map(({ uid, dueAt }) => [uid, dueAt > now ? dueAt : 'past'] as const);
  return new Map(due.sort());
}

/** Returns the deadline by a direct formula, for the tolerations in a delta. */
function plainDeadline(partition: Partition, delta: Delta, { uid, podSince }: EvictionRecord): number {
  const pods = delta.kind === 'node' ? delta.pods : delta.kind === 'pod' ? [delta.pod] : [];
  const tolerations = pods.find((pod) => pod.uid === uid)?.tolerations ?? [];
  const ends = (partition.node?.taints ?? []).map((taint) => {
    const match = firstMatch(tolerations, taint, rules.matching);
    const seconds = match ? Number(match.tolerationSeconds ?? Infinity) : 0;
    return Math.max(taint.since, podSince) + seconds * 1000;
  });
  return Math.min(...ends);
}

test('is no earlier than ordered delivery with the last resync, and hardly later, for any order and repetition of deltas', () => {
  fc.assert(
    fc.property(disorder, ({ history: { deltas, resync }, delivered }) => {
      const now = resync.observedAt;
      const tidy = dueTimes(applied([...deltas, resync]), now);
      const untidy = dueTimes(applied([...delivered, resync]), now);
      assert.deepEqual([...untidy.keys()], [...tidy.keys()]);
      // A late delta without a taint that came back starts the countdown when a later delta found the taint: some
      // seconds late, and never early.
      const longestMs = now - (deltas[0]?.observedAt ?? now);
      for (const [uid, dueAt] of untidy) {
        const [ours, theirs] = [dueAt, tidy.get(uid)].map((at) => (typeof at === 'number' ? at : now));
        const delayMs = (ours ?? 0) - (theirs ?? 0);
        assert.ok(delayMs >= 0 && delayMs <= longestMs, `${uid} is ${delayMs} ms late`);
      }
    }),
    { numRuns: 500 },
  );
});

test('recovers from any lost deltas with the last resync', () => {
  fc.assert(
    fc.property(relayHistory.chain(withLosses), ({ history: { deltas, resync }, received }) => {
      const tidy = dueTimes(applied([...deltas, resync]), resync.observedAt);
      assert.deepEqual(dueTimes(applied([...received, resync]), resync.observedAt), tidy);
    }),
    { numRuns: 300 },
  );
});

const withLosses = (history: RelayHistory) =>
  fc.record({ history: fc.constant(history), received: fc.subarray([...history.deltas]) });

test('changes nothing for a repeated delta, arms the same timers and repeats the cancellations', () => {
  fc.assert(
    fc.property(disorder, ({ history: { resync }, delivered }) => {
      let partition = emptyPartition;
      for (const delta of [...delivered, resync]) {
        const first = planned(partition, delta);
        partition = committed(partition, first);
        const again = planned(partition, delta);
        assert.equal(changesNothing(again), true);
        const announced = first.cancel.filter((each) => isAnnounced(each, delta.observedAt));
        const repeated = new Map(
          again.canceledBefore.map(({ endedAt: _endedAt, ...end }) => [end.uid, end] as const),
        );
        assert.deepEqual(
          announced.map(({ uid }) => repeated.get(uid)),
          announced,
        );
        assert.deepEqual(again.arm, first.arm);
      }
    }),
    { numRuns: 300 },
  );
});

test('leaves no scheduled record without a timer, although handlers crash before they arm', () => {
  const crashes = disorder.chain(({ delivered }) =>
    fc.record({
      delivered: fc.constant(delivered),
      dead: fc.array(fc.boolean(), { minLength: delivered.length, maxLength: delivered.length }),
      patience: fc.infiniteStream(fc.nat({ max: 4 })),
    }),
  );
  fc.assert(
    fc.property(crashes, ({ delivered, dead, patience }) => {
      const armed = new Set<EpochMs>();
      let partition = emptyPartition;
      // A message whose handler crashed is redelivered after some others.
      const queue = delivered.map((delta, index) => ({ delta, dies: dead[index] ?? false }));
      for (let next = queue.shift(); next; next = queue.shift()) {
        const { delta, dies } = next;
        const decided = planned(partition, delta);
        partition = committed(partition, decided);
        if (dies) queue.splice(patience.next().value ?? 0, 0, { delta, dies: false });
        else for (const moment of decided.arm) armed.add(moment);
      }
      for (const record of scheduledIn(partition))
        assert.ok(armed.has(record.dueAt), `${record.uid} has no timer`);
    }),
    { numRuns: 500 },
  );
});

test('stores no deadline earlier than the rule', () => {
  fc.assert(
    fc.property(disorder, ({ history: { resync }, delivered }) => {
      let partition = emptyPartition;
      for (const delta of [...delivered, resync]) {
        const decided = planned(partition, delta);
        const { schedule, reschedule, confirm } = decided;
        partition = committed(partition, decided);
        for (const record of [...schedule, ...reschedule, ...confirm]) {
          assert.ok(
            record.dueAt >= plainDeadline(partition, delta, record),
            `${record.uid} is due too early`,
          );
        }
      }
    }),
    { numRuns: 300 },
  );
});

test('keeps evicted and deleted pods ended, for any later deltas', () => {
  const ended = disorder.chain(({ history, delivered }) =>
    fc.record({
      delivered: fc.constant([...delivered, history.resync]),
      cut: fc.nat({ max: delivered.length }),
    }),
  );
  fc.assert(
    fc.property(ended, fc.constantFrom('evicted', 'already-gone'), ({ delivered, cut }, outcome) => {
      let partition = applied(delivered.slice(0, cut));
      for (const { uid } of scheduledIn(partition)) partition = happened(partition, uid, outcome);
      for (const delta of delivered.slice(cut)) {
        const tombstones = [...partition.ended.values()].filter(isTombstone);
        partition = applied([delta], partition);
        for (const tombstone of tombstones)
          assert.equal(forecast(partition, tombstone.uid), tombstone.outcome);
      }
    }),
    { numRuns: 300 },
  );
});

test('never replaces the state of a node by older state', () => {
  fc.assert(
    fc.property(disorder, ({ delivered }) => {
      let partition = emptyPartition;
      for (const delta of delivered) {
        const before = partition.node;
        partition = applied([delta], partition);
        if (before && partition.node) assert.ok(compareVersions(partition.node.version, before.version) >= 0);
      }
    }),
    { numRuns: 200 },
  );
});

test('keeps a node with scheduled pods live', () => {
  fc.assert(
    fc.property(disorder, ({ history: { resync }, delivered }) => {
      let partition = emptyPartition;
      for (const delta of [...delivered, resync]) {
        const decided = planned(partition, delta);
        partition = committed(partition, decided);
        if (delta.kind === 'node' && scheduledIn(partition).length > 0) assert.equal(decided.live, true);
      }
    }),
    { numRuns: 200 },
  );
});

test('keeps a node live when an older deletion without pods arrives after a newer delta of a pod', () => {
  const before = after(nodeDelta(1, { pods: [] }), podDelta(5));
  const gone = planned(before, nodeDelta(3, { pods: [], deletedAt: at(3) }));
  assert.deepEqual([gone.node?.taints, gone.cancel, gone.live], [[], [], true]);
  const late = planned(committed(before, gone), nodeDelta(6), { leaseEpoch: 9 });
  assert.deepEqual([late.decisions.length, late.live], [1, true]);
});
