import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Context } from 'aws-lambda';
import { createHandler } from '#functions/heartbeat/handler.ts';
import { Emf } from '#shared/aws/emf.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DISCONNECTED_AFTER_MS, LEASE_TTL_MS, type LeaseRecord } from '#shared/state/lease.ts';
import type { RegisteredCluster } from '#shared/state/registry.ts';
import { StoreError } from '#shared/state/store.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';

const registered = (name: string): RegisteredCluster => ({
  name: clusterName(name),
  access: { kind: 'local-context', context: name },
  addedAt: NOW,
});

const MINUTE_MS = 60_000;

/** Returns a heartbeat function over leases that tests write. */
function bench(context: TestContext) {
  const time = driveTimers(context, NOW);
  const log = recordingLog();
  const counts: number[] = [];
  const unreported: number[] = [];
  const write = (line: string) => {
    const { taintward_unwatched_clusters, taintward_cluster_last_contact_age_seconds, _aws } =
      JSON.parse(line);
    assert.deepEqual(_aws.CloudWatchMetrics[0].Metrics, [
      { Name: 'taintward_unwatched_clusters', Unit: 'Count' },
      { Name: 'taintward_cluster_last_contact_age_seconds', Unit: 'Seconds' },
    ]);
    counts.push(...taintward_unwatched_clusters);
    unreported.push(...taintward_cluster_last_contact_age_seconds);
  };
  const table = { names: [] as string[], strays: [] as string[], leases: new Map<string, LeaseRecord>() };
  let reads = 0;
  const handler = createHandler({
    registry: { list: async () => ({ clusters: table.names.map(registered), strays: table.strays }) },
    leases: {
      async readAll(clusters) {
        reads += 1;
        return clusters.map((name) => table.leases.get(name)).filter((lease) => lease !== undefined);
      },
    },
    emf: new Emf({ namespace: 'taintward', clock: { now: Date.now }, write }),
    stopwatch: Date.now,
    log,
  });
  return {
    table,
    time,
    log,
    unreported,
    /** Writes a lease. Each call is a renewal. */
    renew(name: string, holder?: string, times: Partial<LeaseRecord> = {}) {
      const renewals = (table.leases.get(name)?.renewals ?? 0) + 1;
      const lease = { cluster: clusterName(name), epoch: 1, renewals, renewedAt: NOW, ...times };
      table.leases.set(name, holder === undefined ? lease : { ...lease, holder });
    },
    /** Runs the function once and returns the number of unwatched clusters and of reads. */
    async beat() {
      const before = reads;
      await handler({}, {} as Context);
      return { unwatched: counts.at(-1), reads: reads - before };
    },
    unwatched: () =>
      log.lines.filter(({ event }) => event === 'cluster.unwatched').map(({ fields }) => fields['cluster']),
  };
}

/** Renews leases as relays do, until the end of the test. */
function keep(context: TestContext, renew: () => void) {
  let timeout: NodeJS.Timeout;
  const again = () => {
    renew();
    timeout = setTimeout(again, 3_000);
  };
  again();
  context.after(() => clearTimeout(timeout));
}

test('counts and names the clusters whose lease no relay holds', async (context) => {
  const given = bench(context);
  given.table.names = ['dead', 'held', 'released', 'never'];
  given.renew('dead', 'a');
  given.renew('released');
  keep(context, () => given.renew('held', 'b'));
  const beat = given.beat();
  await given.time.pass(LEASE_TTL_MS);
  assert.deepEqual(await beat, { unwatched: 3, reads: 2 });
  assert.deepEqual(given.unwatched(), ['dead', 'released', 'never']);
  // An event is delivered at least once.
  const repeated = given.beat();
  await given.time.pass(LEASE_TTL_MS);
  assert.equal((await repeated).unwatched, 3);
  assert.deepEqual(given.unwatched().slice(3), ['dead', 'released', 'never']);
});

test('reads leases once from the second run on', async (context) => {
  const given = bench(context);
  given.table.names = ['one', 'other'];
  const renew = () => ['one', 'other'].map((name) => given.renew(name, 'a'));
  renew();
  const first = given.beat();
  renew();
  await given.time.pass(LEASE_TTL_MS);
  assert.deepEqual(await first, { unwatched: 2, reads: 2 }, 'nobody renewed them since');
  renew();
  await given.time.pass(MINUTE_MS);
  assert.deepEqual(await given.beat(), { unwatched: 0, reads: 1 });
  given.renew('one', 'a');
  await given.time.pass(MINUTE_MS);
  assert.deepEqual(await given.beat(), { unwatched: 1, reads: 1 });
  assert.deepEqual(given.unwatched().at(-1), 'other');
});

test('reads leases twice in a run that follows another immediately', async (context) => {
  const given = bench(context);
  given.table.names = ['held'];
  keep(context, () => given.renew('held', 'a'));
  const first = given.beat();
  await given.time.pass(LEASE_TTL_MS);
  assert.deepEqual(await first, { unwatched: 0, reads: 2 });
  const second = given.beat();
  await given.time.pass(LEASE_TTL_MS);
  assert.deepEqual(await second, { unwatched: 0, reads: 2 });
});

test("names disconnected clusters and the age of their last contact by the relays' clocks", async (context) => {
  const given = bench(context);
  given.table.names = ['heard', 'disconnected', 'never heard', 'registered anew', 'dead'];
  const renewedAt = NOW + 3_600_000;
  const renew = () => {
    given.renew('heard', 'a', { renewedAt, lastContactAt: renewedAt - DISCONNECTED_AFTER_MS });
    given.renew('disconnected', 'a', { renewedAt, lastContactAt: renewedAt - DISCONNECTED_AFTER_MS - 1 });
    given.renew('never heard', 'a', { renewedAt: NOW + DISCONNECTED_AFTER_MS + 1 });
    given.renew('registered anew', 'a', {
      renewedAt: NOW + DISCONNECTED_AFTER_MS,
      lastContactAt: NOW - 3_600_000,
    });
  };
  given.renew('dead', 'a', { renewedAt, lastContactAt: NOW });
  keep(context, renew);
  const beat = given.beat();
  await given.time.pass(LEASE_TTL_MS);
  assert.equal((await beat).unwatched, 1);
  // The lease of cluster `dead` was last renewed an hour after the cluster's last contact. No later contact is known.
  assert.deepEqual(given.unreported, [3_610]);
  assert.deepEqual(
    given.log.lines.flatMap(({ event, fields }) => (event === 'cluster.disconnected' ? [fields] : [])),
    [
      { cluster: 'disconnected', since: renewedAt - DISCONNECTED_AFTER_MS - 1 },
      { cluster: 'never heard', since: NOW },
    ],
  );
});

test('keeps counting the age of the last contact across lease failovers and without a holder', async (context) => {
  const given = bench(context);
  given.table.names = ['passed on'];
  const renew = (holder: string | undefined, sinceContactMs: number) =>
    given.renew('passed on', holder, { lastContactAt: NOW, renewedAt: NOW + sinceContactMs });
  renew('a', 190_000);
  renew(undefined, 200_000);
  await given.beat();
  await given.time.pass(MINUTE_MS);
  await given.beat();
  renew('b', 320_000);
  await given.beat();
  assert.deepEqual(given.unreported, [200, 260, 320]);
});

test('counts the age of a contact that is more recent than the renewal from the renewal on', async (context) => {
  const given = bench(context);
  given.table.names = ['prod'];
  given.renew('prod', undefined, { lastContactAt: NOW + 1_000 });
  await given.beat();
  await given.time.pass(MINUTE_MS);
  await given.beat();
  assert.deepEqual(given.unreported, [0, 60]);
});

test('reports zero clusters when none is registered, because missing data raises an alarm', async (context) => {
  assert.deepEqual(await bench(context).beat(), { unwatched: 0, reads: 1 });
});

test('logs invalid registrations and counts the clusters', async (context) => {
  const { table, log, beat } = bench(context);
  table.names.push('a');
  table.strays.push('The item X of Y is none.');
  assert.equal((await beat()).unwatched, 1);
  const errors = log.lines.filter(({ level }) => level === 'error');
  assert.deepEqual(
    errors.map(({ event, fields }) => [event, fields['error']]),
    [['registry.invalid-item', 'The item X of Y is none.']],
  );
});

test("fails when the table can't be read, and writes the metrics from before", async () => {
  const written: string[] = [];
  const emf = new Emf({
    namespace: 'taintward',
    clock: { now: () => NOW },
    write: (line) => written.push(line),
  });
  const handler = createHandler({
    registry: { list: async () => ({ clusters: [registered('a')], strays: [] }) },
    leases: {
      readAll() {
        emf.put('reads', 1);
        return Promise.reject(new StoreError('out of reach'));
      },
    },
    emf,
    stopwatch: () => 0,
    log: recordingLog(),
  });
  await assert.rejects(handler({}, {} as Context), StoreError);
  assert.deepEqual(
    written.map((line) => JSON.parse(line).reads),
    [[1]],
  );
});
