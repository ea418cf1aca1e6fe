import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { TAKEOVER_ANNOTATION } from '#shared/taints/takeover-note.ts';
import { evictedOnTime } from '#test/cluster/rig/on-time.ts';
import { TakeoverStage } from '#test/cluster/rig/takeover-stage.ts';
import { FOREVER, tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { WatchedToleration } from '#test/cluster/rig/watched.ts';

const FALLBACK_SECONDS = 600;
/** Enough seconds to adopt a pod, even on a busy machine. */
const OWN_SECONDS = 40;
const LENGTHENED_SECONDS = OWN_SECONDS + FALLBACK_SECONDS;
const KEYS = [NODE_NOT_READY, NODE_UNREACHABLE];
const own = (seconds: number) => KEYS.map((key) => tolerates(key, seconds));

let stage: TakeoverStage;
before(async () => {
  stage = await TakeoverStage.open();
  const { api, namespace } = stage.stage.cluster;
  await api.patch(`/api/v1/namespaces/${namespace}`, {
    metadata: { labels: { 'taintward.dev/takeover': 'enabled' } },
  });
});
afterEach(() => stage.nodes.check());
after(() => stage.close());

interface Shown {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly tolerations: readonly WatchedToleration[] };
}

/** Returns a pod's annotation, and the seconds for which it tolerates each key. */
async function shown(name: string) {
  const { cluster } = stage.stage;
  const { metadata, spec } = (await cluster.api.read(cluster.podPath(name))) as Shown;
  const seconds = KEYS.map((key) => spec.tolerations.find((each) => each.key === key)?.tolerationSeconds);
  return { seconds, note: metadata.annotations?.[TAKEOVER_ANNOTATION], annotations: metadata.annotations };
}

const changeOf = (seconds: number) => KEYS.map((key) => `${key}=${seconds}+${FALLBACK_SECONDS}`).join(',');

test('adopts a pod whose built-in timer runs, holds it for longer than its own seconds, and restores it', async (t) => {
  const { cluster } = stage.stage;
  const node = await stage.nodes.add('adopted');
  const pod = await cluster.addPod(node, 'adopted', { tolerations: own(OWN_SECONDS) });
  const idle = await stage.nodes.add('idle');
  await cluster.addPod(idle, 'idle', { tolerations: own(OWN_SECONDS) });
  await stage.nodes.fail(node);
  const taintedAt = await stage.tainted(node, NODE_NOT_READY, 'NoExecute');

  await stage.command('apply', '--level', 'pod', '--fallback-delay', String(FALLBACK_SECONDS));
  assert.match(await stage.command('adopt'), /Pods taken over: 2\./);
  t.diagnostic(`adopted ${Date.now() - taintedAt} ms after the taint`);
  for (const name of ['adopted', 'idle']) {
    const { seconds, note } = await shown(name);
    assert.deepEqual([seconds, note], [[LENGTHENED_SECONDS, LENGTHENED_SECONDS], changeOf(OWN_SECONDS)]);
  }
  assert.match(await stage.command('adopt'), /Pods taken over: 0\./);

  await stage.serve({ mode: 'paused' });
  await new Promise((resolve) => setTimeout(resolve, taintedAt + (OWN_SECONDS + 10) * 1000 - Date.now()));
  assert.equal(pod.evictedAt, undefined);
  assert.equal(await stage.builtIn.deletions(), 0);
  await stage.stage.service.kill();

  assert.match(await stage.command('release', '--level', 'pod'), /Pods restored: 2\./);
  const releasedAt = Date.now();
  assert.deepEqual(await shown('adopted'), {
    seconds: [OWN_SECONDS, OWN_SECONDS],
    note: undefined,
    annotations: undefined,
  });
  assert.deepEqual(await shown('idle'), {
    seconds: [OWN_SECONDS, OWN_SECONDS],
    note: undefined,
    annotations: undefined,
  });
  const evictedAt = await until(
    'the built-in controller evicts it',
    () => pod.evictedAt,
    OWN_SECONDS * 1000 + 20_000,
  );
  t.diagnostic(`the built-in controller evicted it ${evictedAt - releasedAt} ms after the release`);
  await stage.builtIn.untilDeleted(1);
  await stage.nodes.remove(node);
});

test('takes new pods over, and evicts them by their own seconds, while the built-in controller waits', async () => {
  const { cluster } = stage.stage;
  await stage.command('apply', '--level', 'pod', '--fallback-delay', String(FALLBACK_SECONDS));
  const node = await stage.nodes.add('taken');
  const tolerations: Readonly<Record<string, readonly WatchedToleration[]>> = {
    bounded: own(OWN_SECONDS),
    wildcard: [{ operator: 'Exists', effect: 'NoExecute', tolerationSeconds: OWN_SECONDS }],
    unbounded: [FOREVER],
    untold: [],
  };
  const pods = await Promise.all(
    Object.entries(tolerations).map(([name, list]) => cluster.addPod(node, name, { tolerations: list })),
  );
  const [bounded, wildcard, unbounded, untold] = pods;
  assert.ok(bounded && wildcard && unbounded && untold);
  for (const { name } of [bounded, wildcard]) {
    const { seconds, note } = await shown(name);
    assert.deepEqual(
      [seconds, note],
      [[LENGTHENED_SECONDS, LENGTHENED_SECONDS], changeOf(OWN_SECONDS)],
      name,
    );
  }
  assert.deepEqual(await shown('unbounded'), {
    seconds: [undefined, undefined],
    note: undefined,
    annotations: undefined,
  });
  const { seconds, note } = await shown('untold');
  assert.deepEqual([seconds, note], [[900, 900], changeOf(300)]);

  await stage.serve({});
  const before = await stage.builtIn.deletions();
  const askedAt = Date.now();
  await stage.nodes.fail(node);
  const seenAt = await stage.tainted(node, NODE_NOT_READY, 'NoExecute');
  for (const pod of [bounded, wildcard]) await evictedOnTime(pod, OWN_SECONDS, { askedAt, seenAt });
  assert.equal(unbounded.evictedAt ?? untold.evictedAt, undefined);
  assert.equal(await stage.builtIn.deletions(), before);
  await stage.nodes.remove(node);
});

test('applies tolerations that are set on a taken-over pod', async () => {
  const { cluster } = stage.stage;
  const node = await stage.nodes.add('changed');
  const pod = await cluster.addPod(node, 'changed', { tolerations: own(OWN_SECONDS) });
  await cluster.tolerate(pod, (present) => present.map((each) => ({ ...each, tolerationSeconds: 55 })));
  const { seconds, note } = await shown('changed');
  assert.deepEqual([seconds, note], [[655, 655], changeOf(55)]);
});

/** Creates a pod there and deletes it; returns its annotation. */
async function noteOfOneMadeIn(namespace: string, labels: object = {}): Promise<string | undefined> {
  const { api } = stage.stage.cluster;
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const spec = { containers: [{ name: 'main', image: 'main' }], automountServiceAccountToken: false };
  const pod = (await api.create(path, { metadata: { name: 'made', labels }, spec })) as Shown;
  await api.remove(`${path}/made`, { gracePeriodSeconds: 0 });
  return pod.metadata.annotations?.[TAKEOVER_ANNOTATION];
}

test('leaves a pod or a namespace that opts out alone', async () => {
  const { api, namespace } = stage.stage.cluster;
  for (const value of ['disabled', 'off'])
    assert.equal(await noteOfOneMadeIn(namespace, { 'taintward.dev/takeover': value }), undefined, value);
  await api.create('/api/v1/namespaces', { metadata: { name: `${namespace}-other` } });
  assert.equal(await noteOfOneMadeIn(`${namespace}-other`), undefined);
  await api.remove(`/api/v1/namespaces/${namespace}-other`);
});

test('leaves its own pods alone in every namespace, and its own namespace regardless of the selector', async (t) => {
  const { api, namespace } = stage.stage.cluster;
  const ours = { 'app.kubernetes.io/name': 'taintward' };
  assert.equal(await noteOfOneMadeIn(namespace, ours), undefined);
  const name = `${namespace}-ours`;
  t.after(() => api.remove(`/api/v1/namespaces/${name}`));
  // The labels of the namespace in deploy/in-cluster, under any name.
  const labels = { ...ours, 'taintward.dev/takeover': 'disabled' };
  await api.create('/api/v1/namespaces', { metadata: { name, labels } });
  const selector = `kubernetes.io/metadata.name in (${name},${namespace})`;
  await stage.command('apply', '--level', 'pod', '--namespace-selector', selector);
  assert.equal(await noteOfOneMadeIn(name), undefined);
  const { pods } = JSON.parse(await stage.command('status', '-o', 'json'));
  assert.deepEqual(pods.namespaces, [namespace]);
});

test('release removes all objects', async () => {
  assert.match(await stage.command('release', '--level', 'pod'), /Pods restored: \d+\./);
  const { api } = stage.stage.cluster;
  for (const kind of ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings']) {
    const { items } = (await api.read(`/apis/admissionregistration.k8s.io/v1/${kind}`)) as {
      items: unknown[];
    };
    assert.deepEqual(items, []);
  }
  assert.match(await stage.command('status'), /pod level +not installed/);
});
