import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextLoop } from 'node:timers/promises';
import { startLocalService } from '#functions/service/service.ts';
import { encodeRetry } from '#shared/aws/due-message.ts';
import type { ClusterState } from '#shared/engine/clusters/probe-server.ts';
import { type ClusterName, clusterName, nodeName } from '#shared/eviction/identity.ts';
import { Leadership } from '#shared/state/objects/leadership.ts';
import { policyFile } from '#shared/state/policy-file.ts';
import type { RulesStore } from '#shared/state/rules-store.ts';
import { sqliteRequests, sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { takeStateDirectory } from '#shared/state/sqlite/state-directory.ts';
import { systemClock } from '#shared/time/clock.ts';
import { aRecord } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const C1 = clusterName('c1');
const HOUR_MS = 3_600_000;

/** Starts the service without clusters and with mocked hours. It stops at the end of the test. */
async function startService(
  context: TestContext,
  states: ReadonlyMap<ClusterName, ClusterState> = new Map(),
) {
  const dir = mkdtempSync(join(tmpdir(), 'service-'));
  context.mock.timers.enable({ apis: ['setInterval'] });
  const state = takeStateDirectory(dir);
  const log = recordingLog();
  const service = await startLocalService({
    clusters: { apis: new Map(), states, troubles: new Map(), faults: new Map(), admit: () => undefined },
    state: sqliteState({
      directory: state.path,
      historyDays: 7,
      clock: systemClock,
      log,
      lost: assert.fail,
    }),
    probes: { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } },
    matching: { comparisonOperators: false },
    policies: { enforce: false },
    log,
  });
  context.after(async () => {
    await service.stop();
    state.release();
    rmSync(dir, { recursive: true });
  });
  return { service, log, path: state.file('store.sqlite') };
}

test('survives a failed hourly maintenance task', async (context) => {
  const { service, log, path } = await startService(context);
  const operator = new DatabaseSync(path);
  const tables = operator.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  );
  for (const { name } of tables.all()) operator.exec(`DROP TABLE "${name}"`);
  operator.close();
  context.mock.timers.tick(HOUR_MS);
  const failedTasks = () => new Set(log.lines.map(({ event, fields }) => `${event} ${fields['task']}`));
  while (!failedTasks().has('maintenance.failed rearm')) await nextLoop();
  assert.ok(failedTasks().has('maintenance.failed purge'));
  const health = await fetch(`http://127.0.0.1:${service.probePort}/healthz`);
  assert.equal(health.status, 200);
});

test('retries a failed eviction soon after the request and logs an unreadable request', async (context) => {
  const { log, path } = await startService(context);
  const store = new SqliteStore({ path });
  context.after(() => store.close());
  const ref = { cluster: C1, node: nodeName('n1') };
  const now = Date.now();
  const record = aRecord({ dueAt: now - 1, gaveUpAt: now });
  await store.commit(ref, 0, { schedule: [record], end: [], live: true }, now);
  await sqliteRequests(store.database).send([
    { body: 'unreadable' },
    { body: encodeRetry({ ...ref, pods: [record.uid] }) },
  ]);
  context.mock.timers.tick(5_000);
  // The process doesn't manage the cluster, so the retried eviction ends.
  const events = () => log.lines.map(({ event }) => event);
  while (!events().includes('eviction.unregistered')) await nextLoop();
  assert.deepEqual(events(), ['maintenance.failed', 'eviction.unregistered']);
  assert.match(String(log.lines[0]?.fields['error']), /is not JSON/);
  assert.deepEqual((await store.load(ref, now)).scheduled.size, 0);
});

test('reports a cluster that denies access', async (context) => {
  const { service } = await startService(
    context,
    new Map([[clusterName('beta'), { kind: 'access-denied' }]]),
  );
  const readiness = await fetch(`http://127.0.0.1:${service.probePort}/readyz`);
  assert.equal(readiness.status, 503);
  assert.match(await readiness.text(), /^\[-\]beta\/access-denied failed: /);
});

/** Starts the service on a cluster with 20 newly tainted nodes as the leader. It writes policies only after `mayWrite`. */
async function startLeading(context: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'service-'));
  const file = join(dir, 'policy.yaml');
  writeFileSync(file, 'mode: enforce\nguard: off\n');
  const log = recordingLog();
  const kept = sqliteState({
    directory: dir,
    historyDays: 7,
    clock: systemClock,
    log,
    lost: assert.fail,
  });
  const leadership = new Leadership(new FakeObjects(), systemClock);
  const mayWrite = Promise.withResolvers<void>();
  const rulesStore = new Proxy(kept.rulesStore, {
    get:
      (book, name: keyof RulesStore) =>
      async (...given: readonly unknown[]) => {
        if (name === 'changeOrders') await mayWrite.promise;
        return Reflect.apply(book[name], book, given);
      },
  });
  const cluster = new FakeCluster(systemClock);
  for (let index = 0; index < 20; index++) {
    const taintsStamp = `anna@${new Date().toISOString()}`;
    cluster.putNode({ ...liveNode(`n${index}`, 'maintenance'), taintsStamp });
    cluster.putPod(livePod(`u${index}`, { node: nodeName(`n${index}`), tolerations: [] }));
  }
  const api = Object.assign(cluster, { host: 'c1', allowed: async () => true });
  const purge = context.mock.fn(async () => undefined);
  const service = await startLocalService({
    clusters: {
      apis: new Map([[C1, api]]),
      states: new Map(),
      troubles: new Map(),
      faults: new Map(),
      admit: (take) => take(C1, api),
    },
    state: { ...kept, rulesStore, leases: leadership, leads: leadership.begun, purge },
    probes: { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } },
    matching: { comparisonOperators: false },
    policies: { enforce: false, source: policyFile(file) },
    log,
  });
  await leadership.begun;
  for (let turns = 0; turns < 100; turns++) await nextLoop();
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= service.stop();
    return stopped;
  };
  context.after(async () => {
    await stop();
    rmSync(dir, { recursive: true });
  });
  return { service, log, cluster, mayWrite, purge, stop };
}

test('the leader watches its cluster only after its policies apply, so a disabled guard never trips', async (context) => {
  const { log, cluster, mayWrite } = await startLeading(context);
  mayWrite.resolve();
  const tripped = () => log.lines.some(({ event }) => event === 'guard.tripped');
  while (cluster.deletions.length < 20 && !tripped()) await nextLoop();
  assert.equal(tripped(), false);
});

test('a process that is stopped while it becomes the leader starts no maintenance', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const { service, mayWrite, purge, stop } = await startLeading(context);
  const stopped = stop();
  mayWrite.resolve();
  await Promise.all([stopped, service.leading]);
  context.mock.timers.tick(HOUR_MS);
  await nextLoop();
  assert.equal(purge.mock.callCount(), 0);
});
