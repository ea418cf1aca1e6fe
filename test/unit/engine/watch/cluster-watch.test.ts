import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Registry } from 'prom-client';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { LiveNode, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { at, rules } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { liveNode, livePod } from './live-objects.ts';
import { ends, endsAfter, listOf } from './scripted-resource.ts';
import { WatchedCluster, watchOf } from './watched-cluster.ts';

const SECOND = 1000;
const IN_2999 = Date.UTC(2999, 0);
const cluster = 'c1';
const broken = new ApiError('the connection was reset', 0);

/** Returns a watch of a cluster with a pod on a tainted node, which is not started yet. */
function bench(context: TestContext) {
  const time = driveTimers(context, at(0));
  const api = new WatchedCluster(Date.now);
  api.nodes.lists = [listOf(liveNode('n1', 'a'), liveNode('n2'))];
  api.pods.lists = [listOf(livePod())];
  const view = new ClusterView(clusterName(cluster), 1);
  const log = recordingLog();
  const metrics = relayMetrics(new Registry());
  metrics.begin(clusterName(cluster));
  const watch = watchOf(api, view, { log, metrics });
  context.after(() => watch.stop());
  const linesAfter = async (ms: number, change = () => watch.start()) => {
    const { length } = log.lines;
    change();
    await time.pass(ms);
    return log.lines.slice(length);
  };
  return { time, api, view, watch, metrics, linesAfter };
}

const SYNCED = { level: 'info', event: 'relay.synced', fields: { cluster, nodes: 2, tainted: 1, pods: 1 } };

test('logs and counts lists, failures, and how long the server was away', async (context) => {
  const { api, metrics, watch, linesAfter } = bench(context);
  api.nodes.watches = [endsAfter(2 * SECOND, broken), ends(broken), ends('quiet')];
  api.pods.watches = [endsAfter(20 * SECOND, broken), ends('quiet')];
  assert.deepEqual(await linesAfter(SECOND), [SYNCED]);
  const failed = (resource: string) => ({
    level: 'warn',
    event: 'relay.watch-failed',
    fields: { cluster, resource, error: broken },
  });
  const [first, second, back, ...more] = await linesAfter(10 * SECOND);
  assert.deepEqual([first, second, more], [failed('nodes'), failed('nodes'), []]);
  assert.partialDeepStrictEqual(back, { level: 'info', event: 'cluster.reconnected', fields: { cluster } });
  const outageMs = Number(back?.fields['outageMs']);
  assert.ok(Number.isInteger(outageMs) && outageMs > SECOND && outageMs < 3 * SECOND, `${outageMs}`);
  assert.deepEqual(await linesAfter(20 * SECOND), [failed('pods')]);
  const counts = async (counter: 'lists' | 'watchFailures') =>
    (await metrics[counter].get()).values.map(({ labels, value }) => [
      ...[labels['cluster'], labels['resource']],
      value,
    ]);
  assert.deepEqual(await counts('lists'), [
    [cluster, 'nodes', 1],
    [cluster, 'pods', 1],
  ]);
  assert.deepEqual(await counts('watchFailures'), [
    [cluster, 'nodes', 2],
    [cluster, 'pods', 1],
  ]);
  assert.deepEqual(watch.connectionState, { kind: 'live' });
});

test('logs a restored etcd, and lists the pods again', async (context) => {
  const { api, linesAfter } = bench(context);
  const older: WatchEvent<LiveNode> = { kind: 'bookmark', resourceVersion: '0' };
  api.nodes.watches = [{ events: [older], end: 'hang' }, ends('quiet')];
  const lines = await linesAfter(10 * SECOND);
  assert.deepEqual(
    lines.filter(({ event }) => event === 'relay.etcd-restore-detected'),
    [{ level: 'warn', event: 'relay.etcd-restore-detected', fields: { cluster } }],
  );
  assert.equal(api.pods.listed.length, 2);
});

test('logs changed rules', async (context) => {
  const { watch, linesAfter } = bench(context);
  await linesAfter(SECOND);
  const [line] = await linesAfter(SECOND, () => watch.ruled(rules));
  assert.deepEqual(line, { level: 'info', event: 'rules.changed', fields: { cluster } });
});

test('logs the wrong times of at most a hundred pods and a hundred nodes, each once', async (context) => {
  const { api, linesAfter } = bench(context);
  const many = Array.from({ length: 150 }, (_, index) => `${index}`);
  const taints = [{ key: 'a', effect: 'NoExecute', timeAdded: IN_2999 }];
  api.nodes.lists = [listOf(...many.map((name) => ({ ...liveNode(`n${name}`), taints })))];
  const unbound = livePod('unbound', { node: undefined, podSince: IN_2999 });
  const node = nodeName('n0');
  api.pods.lists = [listOf(unbound, ...many.map((name) => livePod(`u${name}`, { node, podSince: IN_2999 })))];
  const lines = await linesAfter(SECOND);
  const ofPods = lines.filter(({ event }) => event === 'pod.scheduled-time-in-future');
  const ofNodes = lines.filter(({ event }) => event === 'node.taint-time-in-future');
  assert.deepEqual([ofPods.length, ofNodes.length], [100, 100]);
  const about = { cluster, node: 'n0', namespace: 'default', pod: 'pod-u0', uid: 'u0' };
  assert.deepEqual(ofPods[0], {
    level: 'warn',
    event: 'pod.scheduled-time-in-future',
    fields: { ...about, podScheduledAt: IN_2999 },
  });
  assert.deepEqual(ofNodes[0], {
    level: 'warn',
    event: 'node.taint-time-in-future',
    fields: { cluster, node: 'n0', taint: 'a:NoExecute', timeAdded: IN_2999 },
  });
});
