import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { Decisions } from '#functions/service/decisions.ts';
import { type LocalService, startLocalService } from '#functions/service/service.ts';
import { Relay } from '#shared/engine/watch/relay.ts';
import { type ClusterName, clusterName, nodeName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { EmbeddedPermits } from '#shared/state/embedded-permits.ts';
import type { PolicySource } from '#shared/state/policy-file.ts';
import { sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { StoreError } from '#shared/state/store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { endsWithin } from '#shared/time/stopping.ts';
import { aNode, aRecord } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { tolerating } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
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

/**
 * A service on one cluster, with a pod on a tainted node `n1`, and with its parts for `hold`. `twin`: another name of the
 * cluster.
 */
async function service(
  t: TestContext,
  { leads, twin, source }: Partial<{ leads: Promise<void>; twin: ClusterName; source: PolicySource }> = {},
) {
  const dir = mkdtempSync(join(tmpdir(), 'wiring-'));
  const log = recordingLog();
  const kept = sqliteState({
    directory: dir,
    historyDays: 7,
    clock: systemClock,
    log,
    lost: assert.fail,
  });
  const cluster = new FakeCluster(systemClock);
  const pod = cluster.putPod(livePod('u1', { tolerations: [] }));
  const api = Object.assign(cluster, { host: 'c1', allowed: async () => true });
  const regained = t.mock.fn<(act: () => void) => void>();
  const state = Object.assign(kept, { whenRegained: regained }, leads ? { leads } : {});
  const close = t.mock.method(state, 'close');
  const names = twin ? [C1, twin] : [C1];
  const start = async () => {
    started = await startLocalService({
      clusters: {
        apis: new Map(names.map((name) => [name, api])),
        states: new Map(),
        troubles: new Map(),
        faults: new Map([[C2, [{ type: 'guard-unsaved', since: 0, error: 'no' }]]]),
        admit(take, signal, refused) {
          admitted = signal;
          for (const name of names) take(name, api);
          if (!twin) refused?.(C2);
        },
      },
      state,
      log,
      matching: { comparisonOperators: false },
      policies: { enforce: true, source },
      probes: { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } },
    });
    return started;
  };
  let started: LocalService | undefined;
  let admitted: AbortSignal | undefined;
  t.after(async () => {
    if (started && close.mock.callCount() === 0) await endsWithin(STOP_MS, started.stop());
    rmSync(dir, { recursive: true });
  });
  /** Stores an eviction of the pod that is due. */
  const schedule = (where = C1) => {
    const { uid, namespace, name, podSince } = pod;
    const record = aRecord({ uid, namespace, name, podSince, dueAt: Date.now() - 1 });
    const change = { node: aNode(), schedule: [record], end: [], live: true };
    return state.store.commit({ cluster: where, node: N1 }, 0, change, Date.now());
  };
  const taint = () => cluster.putNode({ ...liveNode('n1', 'maintenance'), taintsStamp: 'anna@1' });
  cluster.putNode(liveNode('n1'));
  const isAdmitting = () => admitted?.aborted === false;
  return { start, state, cluster, api, close, regained, schedule, taint, log, isAdmitting };
}

describe('a service that stops waits for', () => {
  const cases: Readonly<
    Record<string, (parts: Awaited<ReturnType<typeof service>>) => readonly [object, string]>
  > = {
    'a decision in progress': ({ state }) => [state.store, 'commit'],
    'an eviction in progress': ({ api }) => [api, 'deletePod'],
    'an Event in progress': ({ api }) => [api, 'createEvent'],
    'the release of its lease': ({ state }) => [state.leases, 'release'],
    'a maintenance task in progress': ({ state }) => [state, 'requests'],
  };
  for (const [what, part] of Object.entries(cases)) {
    test(`${what}, and closes its store last`, async (t) => {
      const parts = await service(t);
      t.mock.timers.enable({ apis: ['setInterval'] });
      const { stop, view } = await parts.start();
      const held = hold(...part(parts));
      // The queues may be slower than a stopping relay waits for them.
      t.mock.method(Decisions.prototype, 'drained', async () => undefined);
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

test('a standby that takes over tries again while the store is unreadable, takes no permits of its predecessor, and evicts what is due', async (t) => {
  const { promise: leads, resolve: lead } = Promise.withResolvers<void>();
  const { start, state, cluster, regained, schedule, taint, log } = await service(t, { leads });
  const begin = t.mock.method(EmbeddedPermits.prototype, 'begin');
  taint();
  await schedule();
  const { leading, probePort, stop } = await start();
  const answer = async (path: string) => (await fetch(`http://127.0.0.1:${probePort}/${path}`)).text();
  assert.match(await answer('readyz'), /^\[-\]c2\/guard-unsaved failed: .+ no\. Since 1970/m);
  assert.match(await answer('metrics'), /^taintward_evictions{.+} 1$/m);
  const { rulesStore, store } = state;
  const read = t.mock.method(rulesStore, 'read');
  const countdowns = t.mock.method(store, 'countdowns');
  const upcoming = t.mock.method(store, 'upcoming');
  await settled();
  const calls = () => [begin, countdowns, upcoming].map(({ mock }) => mock.callCount());
  assert.deepEqual([...calls(), cluster.deletions.length], [0, 0, 0, 0]);
  assert.equal((await rulesStore.read(C1)).orders.policy, undefined, 'the leader applies policies');
  for (const { mock } of [read, countdowns, upcoming])
    mock.mockImplementationOnce(() => {
      throw new StoreError('The store is unavailable.');
    });
  const failed = () =>
    log.lines.filter(({ event }) => event === 'maintenance.failed').map(({ fields }) => fields['task']);
  const time = driveTimers(t, Date.now(), 'running');
  lead();
  await time.settle();
  assert.deepEqual(failed(), ['take-over']);
  await time.pass(5_000);
  await leading;
  assert.deepEqual(failed(), ['take-over', 'take-over', 'take-over']);
  assert.deepEqual(calls(), [1, 3, 2]);
  await until(() => cluster.deletions.length === 1);
  // The timers are armed again when the lease is renewed after all.
  assert.equal(regained.mock.callCount(), 1);
  regained.mock.calls[0]?.arguments[0]();
  await until(() => upcoming.mock.callCount() === 3);
  assert.equal(await state.leases.read(C2), undefined, 'another replica may have access');
  await stop();
});

test('a service reports the faults of a cluster that it cannot access in its lease', async (t) => {
  const { start, state } = await service(t);
  const time = driveTimers(t, Date.now(), 'running');
  await start();
  await time.pass(4_000);
  assert.equal((await state.leases.read(C2))?.faults?.length, 1);
});

test('a service reports two names of one cluster', async (t) => {
  const { start } = await service(t, { twin: C2 });
  const { view } = await start();
  const faults = () => Object.values(view().clusters).flatMap((cluster) => cluster.faults);
  await until(() => faults().some((fault) => fault?.type === 'same-cluster'));
});

test('a service announces countdowns and evictions, and counts its deletions', async (t) => {
  const { start, cluster, taint } = await service(t);
  cluster.putPod(livePod('u2', { tolerations: [tolerating('maintenance', 300)] }));
  const { probePort, stop } = await start();
  const answer = async (path: string) => (await fetch(`http://127.0.0.1:${probePort}/${path}`)).text();
  taint();
  await until(() => cluster.events.length === 2);
  assert.deepEqual(cluster.events.map(({ pod }) => pod.name).toSorted(), ['pod-u1', 'pod-u2']);
  assert.match(await answer('metrics'), /^taint_eviction_controller_pod_deletions_total 1$/m);
  assert.match(await answer('readyz?verbose'), /^\[\+\]c1\/live ok$/m);
  t.mock.method(
    Relay.prototype,
    'trips',
    () => new Map([[C1, [{ scope: 'cluster' as const, trippedAt: 0, nodes: 1, total: 1 }]]]),
  );
  assert.match(await answer('readyz'), /^\[-\]c1\/guard-tripped /m);
  await stop();
});

test('a service posts Events after the evictions that are under way', async (t) => {
  const { start, cluster, api, taint } = await service(t);
  const { stop } = await start();
  const { deletePod } = api;
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const names: string[] = [];
  t.mock.method(api, 'deletePod', async (...given: Parameters<typeof deletePod>) => {
    names.push(given[0].name);
    if (given[0].name === 'pod-u2') await held;
    return deletePod.apply(api, given);
  });
  cluster.putPod(livePod('u2', { node: nodeName('n2'), tolerations: [] }));
  cluster.putNode({ ...liveNode('n2', 'maintenance'), taintsStamp: 'anna@1' });
  await until(() => names.length === 1);
  taint();
  await until(() => cluster.deletions.length === 1);
  await settled();
  assert.deepEqual(cluster.events, []);
  release();
  await until(() => cluster.events.length === 2);
  await stop();
});

test('a service arms the retry of an eviction that was stored although the store failed', async (t) => {
  const { start, state, cluster, api, taint } = await service(t);
  await start();
  const { commit } = state.store;
  let stored = 0;
  t.mock.method(state.store, 'commit', async (...given: Parameters<typeof commit>) => {
    await commit.apply(state.store, given);
    if (given[2].node?.retry && stored++ === 0) throw new StoreError('The store is unavailable.');
  });
  const deletion = t.mock.method(api, 'deletePod', async () => {
    throw new ApiError('busy', 429, 'TooManyRequests', 5);
  });
  const time = driveTimers(t, Date.now(), 'running');
  taint();
  while (stored === 0) await time.pass(50);
  deletion.mock.restore();
  await time.pass(2_000);
  assert.equal(cluster.deletions.length, 0);
  await time.pass(5_000);
  assert.equal(cluster.deletions.length, 1);
});

test('a service follows its policy, and reports permissions that it needs before an eviction is due', async (t) => {
  let text = 'mode: enforce\n';
  const source = { owner: 'a file', everyMs: 1_000, read: async () => text };
  const { start, api, log } = await service(t, { source });
  t.mock.timers.enable({ apis: ['setInterval'] });
  await start();
  api.allowed = async () => false;
  text = 'mode: enforce\nmethod: evict\n';
  t.mock.timers.tick(2_000);
  await until(() => log.lines.some(({ event }) => event === 'policy.permission-missing'));
});

for (const mayEvict of [true, false])
  test(`a service that ${mayEvict ? 'may evict renews' : 'lacks permissions suspends'} the heartbeat of a takeover`, async (t) => {
    const text = 'mode: enforce\ntreatAsNoExecute: [maintenance]\n';
    const source = { owner: 'a file', everyMs: 1_000, read: async () => text };
    const { start, cluster, api } = await service(t, { source });
    cluster.putTakeover(['maintenance'], 90_000);
    api.allowed = async () => mayEvict;
    const time = driveTimers(t, Date.now(), 'running');
    const { stop } = await start();
    await time.pass(21_000);
    assert.equal(cluster.takeover?.heartbeat !== undefined, mayEvict);
    await stop();
  });

test('a service evicts nothing in a cluster that its lease names as another, or that it does not manage', async (t) => {
  const { start, state, cluster, schedule, taint, log } = await service(t);
  taint();
  await schedule();
  await schedule(C2);
  t.mock.method(state.leases, 'read', async () => ({ sameAs: C2 }) as never);
  await start();
  for (const error of [/the same cluster/, /--context c2/])
    await until(() => log.lines.some(({ fields }) => error.test(String(fields['error']))));
  assert.deepEqual(cluster.deletions, []);
});

test('a service drops decisions of a relay that lost the lease', async (t) => {
  const { start, state, cluster, taint } = await service(t);
  const read = state.leases.read.bind(state.leases);
  let decisions = 0;
  t.mock.method(state.leases, 'read', async (...[cluster, options]: Parameters<typeof read>) => {
    // Only the relay's own read may lag.
    if (options) return read(cluster);
    decisions += 1;
    return { epoch: Infinity };
  });
  await start();
  taint();
  await until(() => decisions > 0);
  await settled();
  assert.deepEqual(cluster.deletions, []);
});

test('a service does not start when its policies cannot be applied', async (t) => {
  const { start, state } = await service(t);
  t.mock.method(state.rulesStore, 'read', async () => {
    throw new StoreError('The store is unavailable.');
  });
  await assert.rejects(start(), StoreError);
});

test('a standby that never led stops', async (t) => {
  const { start, close, isAdmitting } = await service(t, { leads: new Promise(() => undefined) });
  const { stop } = await start();
  await settled();
  assert.equal(isAdmitting(), true);
  assert.ok(await endsWithin(STOP_MS, stop()));
  assert.deepEqual([close.mock.callCount(), isAdmitting()], [1, false]);
});

test('a service that stops ends its attempts to take over', async (t) => {
  const { start, state } = await service(t, { leads: Promise.resolve() });
  const { mock } = t.mock.method(state.rulesStore, 'read', async () => {
    throw new StoreError('The store is unavailable.');
  });
  const time = driveTimers(t, Date.now(), 'running');
  const { leading, stop } = await start();
  await time.settle();
  const stopped = stop();
  await time.settle();
  const reads = mock.callCount();
  await Promise.all([leading, stopped]);
  assert.equal(mock.callCount(), reads);
});
