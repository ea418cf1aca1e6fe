import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import {
  after,
  at,
  committed,
  emptyPartition,
  nodeDelta,
  planned,
  pod,
  recordIn,
  tolerating,
} from './builders.ts';

const YEAR = 365 * 86_400;
const tolerations = [tolerating(NODE_UNREACHABLE, 300)];
const unreachable = (seenAt: number, timeAdded: number) =>
  ({
    key: NODE_UNREACHABLE,
    effect: 'NoExecute',
    known: 'added',
    seenAt: at(seenAt),
    timeAdded: at(timeAdded),
  }) as const;
/**
 * Returns the record of a pod that tolerates a taint of second 1000 for 300 s. `seen` is the time of the
 * relay's clock when it saw the taint, `received` the time of the delta function's clock.
 */
const scheduledBy = ({ seen, received }: { readonly seen: number; readonly received: number }) => {
  const delta = nodeDelta(1, {
    observedAt: at(seen),
    taints: [unreachable(seen, 1000)],
    pods: [pod('u1', { tolerations })],
  });
  return planned(emptyPartition, delta, { now: at(received) }).schedule[0];
};

test('sets no early deadline when the relay’s clock is behind, because the taint has its own time', () => {
  const record = scheduledBy({ seen: 760, received: 1001 });
  assert.equal(record?.dueAt, at(1300));
  assert.equal(record.causes[0]?.since, at(1000));
});

test('corrects a deadline of next year when a relay with a correct clock reports the node', () => {
  const seen = (second: number) => ({ observedAt: at(second), pods: [pod('u1', { tolerations })] });
  let partition = after(nodeDelta(1, { ...seen(YEAR), taints: [unreachable(YEAR, 0)] }));
  assert.equal(recordIn(partition)?.dueAt, at(YEAR + 300));
  for (const [index, second] of [60, 600, 1200].entries()) {
    const found = { ...unreachable(60, 0), known: 'preexisting' as const };
    const version = { epoch: 2, sequence: index + 1 };
    const delta = nodeDelta(2, { ...seen(second), version, taints: [found] });
    partition = committed(partition, planned(partition, delta, { now: at(second), leaseEpoch: 2 }));
    assert.equal(recordIn(partition)?.dueAt, at(360), `told at second ${second}`);
  }
});

test('does not postpone an eviction when a user keeps writing a future time into a taint', () => {
  const seenAt = (sequence: number, second: number) =>
    nodeDelta(sequence, {
      observedAt: at(second),
      taints: [unreachable(0, second + 60)],
      pods: [pod('u1', { tolerations })],
    });
  let partition = after(seenAt(1, 0));
  for (let second = 20; second <= 280; second += 20) {
    const delta = seenAt(1 + second / 20, second);
    partition = committed(partition, planned(partition, delta, { now: at(second) }));
    assert.equal(recordIn(partition)?.dueAt, at(300), `written at second ${second}`);
  }
});

test('starts no countdown before the relay saw the taint, although the delta function’s clock is far behind', () => {
  const record = scheduledBy({ seen: 1000, received: 700 });
  assert.equal(record?.dueAt, at(1300));
});
