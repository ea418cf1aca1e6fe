import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextLoop } from 'node:timers/promises';
import { DeadLetters } from '#functions/local/dead-letters.ts';
import { startLocalService } from '#functions/local/service.ts';
import { sqliteState } from '#functions/local/service-state.ts';
import { openDatabase } from '#functions/local/sqlite-database.ts';
import { STORE_FILE, takeStateDirectory } from '#functions/local/state-directory.ts';
import type { ClusterState } from '#functions/watch-relay/probe-server.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { systemClock } from '#shared/time/clock.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

const HOUR_MS = 3_600_000;

/** The service without a cluster in service, whose hours pass when the test says so; it ends with the test. */
async function startService(
  context: TestContext,
  states: ReadonlyMap<ClusterName, ClusterState> = new Map(),
) {
  const dir = mkdtempSync(join(tmpdir(), 'service-'));
  context.after(() => rmSync(dir, { recursive: true }));
  context.mock.timers.enable({ apis: ['setInterval'] });
  const state = takeStateDirectory(dir);
  const log = recordingLog();
  const service = await startLocalService({
    clusters: { apis: new Map(), states, troubles: new Map(), admit: () => undefined },
    state: sqliteState({ path: state.file(STORE_FILE), historyDays: 7, clock: systemClock, log }),
    probes: { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } },
    matching: { comparisonOperators: false },
    policies: { enforce: false },
    log,
    stateLost: (error) => assert.fail(error),
  });
  context.after(async () => {
    await service.stop();
    state.release();
  });
  return { service, log, path: state.file('store.sqlite') };
}

test('the service outlives an hourly upkeep that fails', async (context) => {
  const { service, log, path } = await startService(context);
  const operator = new DatabaseSync(path);
  const tables = operator.prepare(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  );
  for (const { name } of tables.all()) operator.exec(`DROP TABLE "${name}"`);
  operator.close();
  context.mock.timers.tick(HOUR_MS);
  const failedTasks = () => new Set(log.lines.map(({ event, fields }) => `${event} ${fields['task']}`));
  while (!failedTasks().has('upkeep.failed rearm')) await nextLoop();
  assert.ok(failedTasks().has('upkeep.failed purge'));
  const health = await fetch(`http://127.0.0.1:${service.probePort}/healthz`);
  assert.equal(health.status, 200);
});

test('a dead letter goes back to its queue soon after somebody asked for it', async (context) => {
  const { log, path } = await startService(context);
  const database = openDatabase(path);
  context.after(() => database.close());
  const letters = new DeadLetters({ database, clock: systemClock, log });
  letters.add('pod-deltas.fifo', { body: 'unreadable', groupId: 'g' }, 'it was');
  letters.redrive(1);
  context.mock.timers.tick(5_000);
  while (letters.list()[0]?.id !== 2) await nextLoop();
  const [again] = letters.list();
  assert.deepEqual([again?.queue, again?.body, again?.groupId], ['pod-deltas.fifo', 'unreadable', 'g']);
  assert.match(String(again?.reason), /is not JSON/);
  assert.deepEqual(
    log.lines.map(({ event }) => event),
    ['message.refused'],
  );
});

test('a cluster that is refused is shown as such', async (context) => {
  const { service } = await startService(context, new Map([[clusterName('beta'), { kind: 'refused' }]]));
  const readiness = await fetch(`http://127.0.0.1:${service.probePort}/readyz`);
  assert.deepEqual([readiness.status, await readiness.text()], [503, 'beta refused\n']);
});
