import assert from 'node:assert/strict';
import { describe, mock, type TestContext, test } from 'node:test';
import { followedFromOutside, RegistryFollower } from '#shared/aws/relay/follow-registry.ts';
import { type ClusterName, clusterName, podUid } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { Access, RegisteredCluster } from '#shared/state/registry.ts';
import { StoreError } from '#shared/state/store.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { json, scriptedServer } from '../../kubernetes/scripted-server.ts';

const POLL_MS = 10_000;

const registered = (name: string, context = name): RegisteredCluster<Access> => ({
  name: clusterName(name),
  access: { kind: 'local-context', context },
  addedAt: NOW,
});

/** Starts a recording relay that follows a registry, which the test changes. */
function follow(t: TestContext, only?: readonly string[]) {
  const time = driveTimers(t, NOW);
  const stopping = new AbortController();
  const registry = {
    clusters: [] as readonly RegisteredCluster[],
    list: async () => ({ clusters: registry.clusters, strays: [] }),
  };
  const calls: string[] = [];
  const connected: string[] = [];
  const broken = new Set<string>();
  const apis = new Map<ClusterName, KubernetesApi>();
  const log = recordingLog();
  const follower = new RegistryFollower({
    installation: undefined,
    registry,
    follows: followedFromOutside(only),
    connect: ({ access }, credentials) => {
      assert.equal(credentials, 'relay');
      const context = access.kind === 'local-context' ? access.context : access.kind;
      connected.push(context);
      if (broken.has(context)) throw new Error('broken');
      return { host: 'nowhere', requestOptions: () => Promise.reject(new Error('nowhere')) };
    },
    relay: {
      add: (name, api) => {
        calls.push(`+${name}`);
        apis.set(name, api);
      },
      remove: async (name) => {
        calls.push(`-${name}`);
      },
    },
    log,
    signal: stopping.signal,
  });
  const ended = follower.run();
  const stop = async () => {
    stopping.abort();
    await ended;
  };
  return { registry, calls, follower, connected, broken, apis, log, stop, poll: () => time.pass(POLL_MS) };
}

test("marks pods with the installation's name", async (t) => {
  const { host, requests } = await scriptedServer(t, json({}));
  const access = { server: new URL(`http://${host}`), headers: {} };
  const stopping = new AbortController();
  const mark = async (api: KubernetesApi) => {
    await api.markDisrupted(livePod(), podUid('u1'), NOW).catch(() => undefined);
    stopping.abort();
  };
  const follower = new RegistryFollower({
    installation: 'ours',
    follows: () => true,
    log: recordingLog(),
    signal: stopping.signal,
    registry: { list: async () => ({ clusters: [registered('a')], strays: [] }) },
    connect: () => ({ host, requestOptions: async () => access }),
    relay: { add: (_, api) => void mark(api), remove: async () => undefined },
  });
  await follower.run();
  assert.match(requests[0]?.url ?? '', /fieldManager=taintward-ours/);
});

describe('following the registry', () => {
  test('ignores clusters that the relay is not configured for', async (t) => {
    const { registry, calls, stop, poll } = follow(t, ['edge-*', 'prod']);
    registry.clusters = ['edge-1', 'edge', 'prod', 'prod-2', 'stage'].map((name) => registered(name));
    await poll();
    assert.deepEqual(calls, ['+edge-1', '+prod']);
    registry.clusters = [registered('edge-2'), registered('stage')];
    await poll();
    assert.deepEqual(calls.slice(2).toSorted(), ['+edge-2', '-edge-1', '-prod']);
    await stop();
  });

  test('ignores clusters with an agent, also when an agent is added later', async (t) => {
    const { registry, calls, stop, poll } = follow(t);
    const byAgent: RegisteredCluster = {
      ...registered('closed'),
      access: { kind: 'agent', agent: 'edge-1' },
    };
    registry.clusters = [registered('open'), byAgent];
    await poll();
    assert.deepEqual(calls, ['+open']);
    registry.clusters = [registered('open'), registered('closed')];
    await poll();
    assert.deepEqual(calls.slice(1), ['+closed']);
    registry.clusters = [registered('open'), byAgent];
    await poll();
    assert.deepEqual(calls.slice(2), ['-closed']);
    await stop();
  });

  test('follows an added cluster and leaves a removed cluster at the next poll', async (t) => {
    const { registry, calls, poll, stop } = follow(t);
    registry.clusters = [registered('a'), registered('b')];
    await poll();
    assert.deepEqual(calls, ['+a', '+b']);
    registry.clusters = [registered('b'), registered('c')];
    await poll();
    assert.deepEqual(calls, ['+a', '+b', '-a', '+c']);
    await poll();
    assert.equal(calls.length, 4);
    await stop();
  });

  test('leaves a cluster whose access changed, and follows it again', async (t) => {
    const { registry, calls, connected, apis, poll, stop } = follow(t);
    registry.clusters = [registered('a', 'old')];
    await poll();
    const former = apis.get(clusterName('a'));
    assert.ok(former);
    const close = mock.method(former, 'close');
    registry.clusters = [registered('a', 'new')];
    await poll();
    assert.deepEqual(calls, ['+a', '-a', '+a']);
    assert.deepEqual(connected, ['old', 'new']);
    assert.equal(close.mock.callCount(), 1);
    await stop();
  });

  test('follows the other clusters when the connection to one fails, and tries that cluster again', async (t) => {
    const { registry, calls, broken, log, poll, stop } = follow(t);
    broken.add('a');
    registry.clusters = [registered('a'), registered('b')];
    await poll();
    assert.deepEqual(calls, ['+b']);
    assert.deepEqual(
      log.lines.map(({ event, fields }) => [event, fields]),
      [
        ['cluster.access-denied', { cluster: 'a', error: new Error('broken') }],
        ['cluster.added', { cluster: 'b', access: 'local-context' }],
      ],
    );
    broken.clear();
    await poll();
    assert.deepEqual(calls, ['+b', '+a']);
    await stop();
  });

  test('follows the known clusters while the registry is unreadable, and reports that', async (t) => {
    const { registry, calls, follower, log, poll, stop } = follow(t);
    assert.equal(follower.error, 'they have not been read yet');
    registry.clusters = [registered('a')];
    await poll();
    assert.equal(follower.error, undefined);
    registry.list = () => Promise.reject(new StoreError('out of reach'));
    await poll();
    assert.deepEqual([calls, follower.error], [['+a'], new StoreError('out of reach')]);
    registry.list = async () => ({ clusters: [], strays: [] });
    await poll();
    assert.deepEqual([calls, follower.error], [['+a', '-a'], undefined]);
    assert.deepEqual(
      log.lines.slice(1).map(({ event, fields }) => [event, fields]),
      [
        ['registry.unreadable', { error: new StoreError('out of reach') }],
        ['cluster.removed', { cluster: 'a' }],
      ],
    );
    await stop();
  });
});
