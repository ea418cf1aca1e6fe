import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { distinct, historyOf, withHistory } from '#shared/state/objects/node-eviction.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { anEnding, NOW } from '#test/contracts/partition-builders.ts';

const ref = { cluster: clusterName('in-cluster'), node: nodeName('n1') };

/** Entries of one time. Two of these do not fit into a node's history. */
const entriesOf = (at: number, count: number) => ({
  at,
  noted: [],
  ended: Array.from({ length: count }, () => ({
    ...anEnding(undefined, { error: randomBytes(48 * 1024).toString('hex') }),
    endedAt: at,
  })),
});

/** Returns how many ends of each time a node's history keeps of these. */
function kept(more: Parameters<typeof withHistory>[1]) {
  const history = withHistory({ ref }, more, NOW, HISTORY_DAYS);
  return history && historyOf({ ref, history, ended: [] }).map(({ at, ended }) => [at - NOW, ended.length]);
}

test('equal entries of one time are one', () => {
  const moment = entriesOf(NOW, 1);
  assert.deepEqual(distinct([moment, moment]), [moment]);
});

test("a node's history without room keeps the newest times, and of a single time the last entries", () => {
  assert.deepEqual(kept([entriesOf(NOW - 2, 1), entriesOf(NOW - 1, 1)]), [[-1, 1]]);
  assert.deepEqual(kept([entriesOf(NOW - 1, 2)]), [[-1, 1]]);
});

test("a node's history is absent when all of it is too old", () => {
  assert.equal(kept([entriesOf(NOW - HISTORY_DAYS * 24 * 3_600_000, 1)]), undefined);
});
