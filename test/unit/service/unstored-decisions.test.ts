import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startLocalService } from '#functions/service/service.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { StoreError } from '#shared/state/store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { eventually } from '#test/contracts/eventually.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';

const C1 = clusterName('c1');

test('a service on a full disk reports each cluster with unsaved changes until it can save them', async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'unstored-'));
  const log = recordingLog();
  const state = sqliteState({ directory: dir, historyDays: 7, clock: systemClock, log, lost: assert.fail });
  const { store } = state;
  const disk = { isFull: false };
  const commit = store.commit.bind(store);
  store.commit = async (...write) => {
    if (disk.isFull) throw new StoreError('The database cannot be used: the disk is full.');
    return commit(...write);
  };
  const cluster = new FakeCluster(systemClock);
  cluster.putNode(liveNode('n1'));
  const api = Object.assign(cluster, { host: 'c1' });
  const service = await startLocalService({
    clusters: {
      apis: new Map([[C1, api]]),
      states: new Map(),
      troubles: new Map(),
      faults: new Map(),
      admit: (take) => take(C1, api),
    },
    state,
    probes: { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } },
    matching: { comparisonOperators: false },
    policies: { enforce: false },
    log,
  });
  context.after(async () => {
    await service.stop();
    rmSync(dir, { recursive: true });
  });
  const viewed = () => service.view().clusters['c1'];
  await eventually(async () => assert.deepEqual([viewed()?.state, viewed()?.faults], ['live', []]));
  disk.isFull = true;
  cluster.putPod(livePod());
  cluster.putNode(liveNode('n1', 'a'));
  await eventually(async () => {
    const faults = viewed()?.faults?.map(({ type, error }) => `${type}: ${error}`);
    assert.deepEqual(faults, ['store-failing: The database cannot be used: the disk is full.']);
  });
  disk.isFull = false;
  await eventually(async () => assert.deepEqual(viewed()?.faults, []));
});
