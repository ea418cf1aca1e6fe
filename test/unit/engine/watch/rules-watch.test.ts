import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { StoreError } from '#shared/state/store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { rules } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';

const [C1, C2] = [clusterName('c1'), clusterName('c2')];
const SECOND = 1000;
const START = Date.UTC(2026, 0, 1);

function bench(context: TestContext) {
  const time = driveTimers(context, START);
  const written = new Map<ClusterName, Rules>([
    [C1, rules],
    [C2, rules],
  ]);
  const reads: (readonly ClusterName[])[] = [];
  const log = recordingLog();
  const away = { table: false, cluster: undefined as ClusterName | undefined };
  const watch = new RulesWatch({
    readAll: async (clusters) => {
      reads.push(clusters);
      if (away.table) throw new StoreError('the table is away');
      const readable = clusters.filter((name) => name !== away.cluster);
      return new Map(readable.map((name) => [name, written.get(name) ?? rules] as const));
    },
    clock: { now: Date.now },
    log,
  });
  context.after(() => watch.stop());
  const applied: string[] = [];
  /** The outcomes of the reads of each cluster. */
  const outcomes: unknown[] = [];
  const follow = (name: ClusterName, signal = new AbortController().signal) =>
    watch.follow(
      name,
      ({ policy }) => applied.push(`${name} ${policy.mode}`),
      signal,
      (error) => outcomes.push(error),
    );
  return { time, written, reads, log, away, applied, outcomes, follow };
}

test('delivers the rules immediately to a new follower of a cluster, and then only changes', async (context) => {
  const { time, written, applied, follow } = bench(context);
  follow(C1);
  await time.pass(1);
  assert.deepEqual(applied, ['c1 enforce']);
  await time.pass(10 * SECOND);
  assert.deepEqual(applied, ['c1 enforce']);
  written.set(C1, { ...rules, policy: { ...rules.policy, mode: 'observe' } });
  await time.pass(2 * SECOND);
  assert.deepEqual(applied, ['c1 enforce', 'c1 observe']);
});

test('keeps the last rules of a cluster that cannot be read, logs it once, and delays no other cluster', async (context) => {
  const { time, written, applied, outcomes, log, away, follow } = bench(context);
  follow(C1);
  follow(C2);
  await time.pass(1);
  assert.deepEqual(new Set(outcomes), new Set([undefined]));
  away.cluster = C1;
  written.set(C2, { ...rules, policy: { ...rules.policy, mode: 'observe' } });
  await time.pass(10 * SECOND);
  assert.deepEqual(applied, ['c1 enforce', 'c2 enforce', 'c2 observe']);
  const error = 'a newer release wrote them, or they were edited by hand: upgrade, or revert the edit';
  const unreadable = { level: 'error', event: 'rules.unreadable', fields: { cluster: C1, error } };
  assert.deepEqual(log.lines, [unreadable]);
  const errors = new Set(outcomes.filter((outcome) => outcome !== undefined).map(String));
  assert.deepEqual([...errors], [`Error: The cluster's rules can't be read: ${error}.`]);
  away.cluster = undefined;
  await time.pass(3 * SECOND);
  away.cluster = C1;
  await time.pass(3 * SECOND);
  assert.deepEqual(log.lines, [unreadable, unreadable], 'logged again after it was readable');
});

test('reads nothing without followers, and reads all clusters in one call', async (context) => {
  const { time, reads, follow } = bench(context);
  await time.pass(10 * SECOND);
  assert.deepEqual(reads, []);
  const leaving = new AbortController();
  follow(C1, leaving.signal);
  follow(C2);
  await time.pass(3 * SECOND);
  assert.deepEqual(reads.at(-1), [C1, C2]);
  leaving.abort();
  await time.pass(3 * SECOND);
  assert.deepEqual(reads.at(-1), [C2]);
});

test('follows a cluster that is followed again before its former follower leaves', async (context) => {
  const { time, reads, follow } = bench(context);
  const former = new AbortController();
  follow(C1, former.signal);
  follow(C1);
  former.abort();
  await time.pass(3 * SECOND);
  assert.deepEqual(reads.at(-1), [C1]);
});

test('reports the end of each rule, although the rules stay the same', async (context) => {
  const { time, written, applied, follow } = bench(context);
  const stop = { scope: 'cluster', actor: 'anna', at: START, reason: 'an incident' } as const;
  const ends = [10, 20, 30].map((seconds) => ({ ...stop, until: START + seconds * SECOND }));
  written.set(C1, { ...rules, stops: ends });
  follow(C1);
  for (const times of [1, 2, 3, 4, 4]) {
    await time.pass(5 * SECOND);
    assert.equal(applied.length, times);
    await time.pass(5 * SECOND);
    assert.equal(applied.length, Math.min(times + 1, 4), 'at its end');
  }
});

test('keeps the last rules while nothing can be read', async (context) => {
  const { time, away, written, log, applied, outcomes, follow } = bench(context);
  follow(C1);
  await time.pass(SECOND);
  away.table = true;
  written.set(C1, { ...rules, policyRevision: 9 });
  await time.pass(10 * SECOND);
  assert.deepEqual(applied, ['c1 enforce']);
  const error = new StoreError('the table is away');
  assert.deepEqual(log.lines[0], { level: 'warn', event: 'rules.unreadable', fields: { error } });
  assert.deepEqual(outcomes.at(-1), error);
  away.table = false;
  await time.pass(3 * SECOND);
  assert.equal(applied.length, 2);
});

test('reports a rule that was canceled before it was read, because it may have held pods', async (context) => {
  const { time, written, applied, follow } = bench(context);
  follow(C1);
  await time.pass(SECOND);
  written.set(C1, { ...rules, ordersRevision: rules.ordersRevision + 2 });
  await time.pass(3 * SECOND);
  assert.deepEqual(applied, ['c1 enforce', 'c1 enforce']);
});
