import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setImmediate as nextLoop } from 'node:timers/promises';
import { startLocalService } from '#functions/local/service.ts';
import { takeStateDirectory } from '#functions/local/state-directory.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

test('the service outlives an hourly upkeep that fails', async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'service-'));
  context.after(() => rmSync(dir, { recursive: true }));
  context.mock.timers.enable({ apis: ['setInterval'] });
  const state = takeStateDirectory(dir);
  const log = recordingLog();
  const service = await startLocalService({
    clusters: new Map(),
    state,
    probes: { host: '127.0.0.1', port: 0 },
    matching: { comparisonOperators: false },
    log,
  });
  const operator = new DatabaseSync(state.file('store.sqlite'));
  const tables = operator.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  for (const { name } of tables) operator.exec(`DROP TABLE "${name}"`);
  operator.close();
  context.mock.timers.tick(3_600_000);
  await nextLoop();
  await service.stop();
  state.release();
  assert.deepEqual(
    log.lines.map(({ event, fields }) => [event, fields['task']]),
    [
      ['upkeep.failed', 'purge'],
      ['upkeep.failed', 'rearm'],
    ],
  );
});
