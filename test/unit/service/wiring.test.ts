import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type LocalService, startLocalService } from '#functions/service/service.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { EmbeddedRateLimiter } from '#shared/state/rate-limiter.ts';
import { sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import { StoreError } from '#shared/state/store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { endsWithin } from '#shared/time/stopping.ts';
import { aNode, aRecord } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { settled, until } from '#test/world/turns.ts';

const C1 = clusterName('c1');
/** A cluster that is not admitted. */
const C2 = clusterName('c2');
const N1 = nodeName('n1');
/** Longer than any stop takes. */
const STOP_MS = 10_000;

/** Makes each call of a method wait until it is released. */
function hold(object: object, name: string) {
  const method = Reflect.get(object, name) as (...given: unknown[]) => unknown;
  const { promise, resolve: release } = Promise.withResolvers<void>();
  let begun = 0;
  const holding = async (...given: unknown[]) => {
    begun += 1;
    await promise;
    return method.apply(object, given);
  };
  Object.assign(object, { [name]: holding });
  return { release, begun: () => begun };
}

/** A service on one cluster, with a pod on a tainted node `n1`, and with its parts for `hold`. */
async function service(t: TestContext, { leads }: { readonly leads?: Promise<void> } = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'wiring-'));
  const log = recordingLog();
  const kept = sqliteState({
    ...{ path: join(dir, STORE_FILE), historyDays: 7, clock: systemClock, log },
    lost: assert.fail,
  });
  const cluster = new FakeCluster(systemClock);
  const pod = cluster.putPod(livePod('u1', { tolerations: [] }));
  const api = Object.assign(cluster, { host: 'c1', allowed: async () => true });
  const regained = t.mock.fn<(act: () => void) => void>();
  const state = Object.assign(kept, { whenRegained: regained }, leads ? { leads } : {});
  const close = t.mock.method(state, 'close');
  const start = async () => {
    started = await startLocalService({
      clusters: {
        ...{ apis: new Map([[C1, api]]), states: new Map(), troubles: new Map() },
        faults: new Map([[C2, [{ type: 'permission-missing', since: 0, error: 'no' } as never]]]),
        admit: (take) => take(C1, api),
      },
      ...{ state, log, matching: { comparisonOperators: false }, policies: { enforce: true } },
      probes: { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } },
    });
    return started;
  };
  let started: LocalService | undefined;
  t.after(async () => {
    if (started && close.mock.callCount() === 0) await endsWithin(STOP_MS, started.stop());
    rmSync(dir, { recursive: true });
  });
  /** Stores an eviction of the pod that is due. */
  const schedule = () => {
    const { uid, namespace, name, podSince } = pod;
    const record = aRecord({ ...{ uid, namespace, name, podSince }, fireAt: Date.now() - 1 });
    const change = { node: aNode(), schedule: [record], end: [], live: true };
    return state.store.commit({ cluster: C1, node: N1 }, 0, change, Date.now());
  };
  const taint = () => cluster.putNode({ ...liveNode('n1', 'maintenance'), taintsStamp: 'anna@1' });
  cluster.putNode(liveNode('n1'));
  return { start, state, cluster, api, close, regained, schedule, taint, log };
}

describe('a service that stops waits for', () => {
  const cases: Readonly<
    Record<string, (parts: Awaited<ReturnType<typeof service>>) => readonly [object, string]>
  > = {
    'a decision in progress': ({ state }) => [state.store, 'commit'],
    'an eviction in progress': ({ api }) => [api, 'deletePod'],
    'an Event in progress': ({ api }) => [api, 'createEvent'],
    'the release of its lease': ({ state }) => [state.leases, 'release'],
    'a maintenance task in progress': ({ state }) => [state, 'asked'],
  };
  for (const [what, part] of Object.entries(cases)) {
    test(`${what}, and closes its store last`, async (t) => {
      const parts = await service(t);
      t.mock.timers.enable({ apis: ['setInterval'] });
      const { stop, view } = await parts.start();
      const held = hold(...part(parts));
      parts.taint();
      t.mock.timers.tick(5_000);
      const isRelease = what.startsWith('the release');
      if (!isRelease) await until(() => held.begun() > 0);
      if (what.startsWith('a decision')) assert.equal(view().queues['decisions'], 1);
      if (what.startsWith('an eviction')) assert.equal(view().queues['evictions'], 1);
      // Events don't occupy the workers.
      if (what.startsWith('an Event')) await until(() => view().queues['evictions'] === 0);
      let ended = false;
      const stopped = stop().then(() => {
        ended = true;
      });
      await until(() => held.begun() > 0);
      await settled();
      assert.deepEqual([ended, parts.close.mock.callCount()], [false, 0]);
      held.release();
      await stopped;
      assert.equal(parts.close.mock.callCount(), 1);
    });
  }
});

test('a standby that takes over tries again after an unreadable store, takes no permits of its predecessor, and evicts what is due', async (t) => {
  const { promise: leads, resolve: lead } = Promise.withResolvers<void>();
  const { start, state, cluster, regained, schedule, taint, log } = await service(t, { leads });
  const begin = t.mock.method(EmbeddedRateLimiter.prototype, 'begin');
  const upcoming = t.mock.method(state.store, 'upcoming');
  taint();
  await schedule();
  const { leading, probePort, stop } = await start();
  const ready = await (await fetch(`http://127.0.0.1:${probePort}/readyz`)).text();
  assert.match(ready, /^c2 permission-missing since 1970/m);
  await settled();
  assert.deepEqual([begin.mock.callCount(), upcoming.mock.callCount(), cluster.deletions.length], [0, 0, 0]);
  const read = t.mock.method(state.rulesStore, 'read', async () => {
    read.mock.restore();
    throw new StoreError('The store is unavailable.');
  });
  lead();
  await leading;
  assert.deepEqual(
    log.lines.filter(({ event }) => event === 'maintenance.failed').map(({ fields }) => fields['task']),
    ['take-over'],
  );
  assert.deepEqual([begin.mock.callCount(), upcoming.mock.callCount()], [1, 1]);
  await until(() => cluster.deletions.length === 1);
  // The timers are armed again when the lease is renewed after all.
  assert.equal(regained.mock.callCount(), 1);
  regained.mock.calls[0]?.arguments[0]();
  await until(() => upcoming.mock.callCount() === 2);
  await stop();
});

test('a standby that never led stops', async (t) => {
  const { start, close } = await service(t, { leads: new Promise(() => undefined) });
  const { stop } = await start();
  await settled();
  assert.ok(await endsWithin(STOP_MS, stop()));
  assert.equal(close.mock.callCount(), 1);
});
