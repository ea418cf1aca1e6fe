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
    known: 'appeared',
    seenAt: at(seenAt),
    timeAdded: at(timeAdded),
  }) as const;
/** The record of a pod that tolerates the taint of second 1000 for 300 s: its relay saw the taint, and the delta was heard, when each clock says. */
const scheduledBy = ({ seen, heard }: { readonly seen: number; readonly heard: number }) => {
  const delta = nodeDelta(1, {
    observedAt: at(seen),
    taints: [unreachable(seen, 1000)],
    pods: [pod('u1', { tolerations })],
  });
  return planned(emptyPartition, delta, { now: at(heard) }).schedule[0];
};

test('a relay whose clock is behind does not make a deadline too early: the taint itself says when it was added', () => {
  const record = scheduledBy({ seen: 760, heard: 1001 });
  assert.equal(record?.fireAt, at(1300));
  assert.equal(record.reasons[0]?.since, at(1000));
});

test('a deadline that a clock of next year set is one of now as soon as a relay with an honest clock tells of the node', () => {
  const seen = (second: number) => ({ observedAt: at(second), pods: [pod('u1', { tolerations })] });
  let partition = after(nodeDelta(1, { ...seen(YEAR), taints: [unreachable(YEAR, 0)] }));
  assert.equal(recordIn(partition)?.fireAt, at(YEAR + 300));
  for (const [index, second] of [60, 600, 1200].entries()) {
    const found = { ...unreachable(60, 0), known: 'found' as const };
    const version = { epoch: 2, sequence: index + 1 };
    const delta = nodeDelta(2, { ...seen(second), version, taints: [found] });
    partition = committed(partition, planned(partition, delta, { now: at(second), leaseEpoch: 2 }));
    assert.equal(recordIn(partition)?.fireAt, at(360), `told at second ${second}`);
  }
});

test('whoever keeps writing a time ahead into a taint does not put an eviction off', () => {
  const told = (sequence: number, second: number) =>
    nodeDelta(sequence, {
      observedAt: at(second),
      taints: [unreachable(0, second + 60)],
      pods: [pod('u1', { tolerations })],
    });
  let partition = after(told(1, 0));
  for (let second = 20; second <= 280; second += 20) {
    const delta = told(1 + second / 20, second);
    partition = committed(partition, planned(partition, delta, { now: at(second) }));
    assert.equal(recordIn(partition)?.fireAt, at(300), `written at second ${second}`);
  }
});

test('a delta function whose clock is far behind starts no countdown before its relay saw the taint', () => {
  const record = scheduledBy({ seen: 1000, heard: 700 });
  assert.equal(record?.fireAt, at(1300));
});
