import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { TakeoverStage } from '#test/cluster/rig/takeover-stage.ts';
import { FOREVER, tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';

/** Room for one heartbeat, and not for two. */
const LAPSE_SECONDS = 30;
const LAPSE_MS = LAPSE_SECONDS * 1000;
/** What policy says, in place of the 300 s that pods say. */
const POLICY_SECONDS = 35;
/** What some pods say: the built-in controller would go by it long before. */
const OWN_SECONDS = 3;
/** From the last sign of life, or the word that it is not ready, to the NoSchedule taint: at most the grace and one look each 5 s. */
const NOTICED_WITHIN_MS = 40_000;
/** The node controller taints one node in ten seconds, and asks again for what was not admitted. */
const ASKED_AGAIN_WITHIN_MS = 30_000;
const KEYS = [NODE_NOT_READY, NODE_UNREACHABLE];
const POLICY = {
  virtualKeys: KEYS,
  tolerationSeconds: { [NODE_NOT_READY]: POLICY_SECONDS, [NODE_UNREACHABLE]: POLICY_SECONDS },
};
const TWIN = 'NoSchedule';

let stage: TakeoverStage;
before(async () => {
  stage = await TakeoverStage.open();
  stage.command('apply', '--lapse', String(LAPSE_SECONDS));
});
afterEach((context) => {
  stage.nodes.check();
  if (!('passed' in context) || context.passed) return;
  for (const { at, text } of stage.stage.services.at(-1)?.output.slice(-40) ?? [])
    context.diagnostic(`${new Date(at).toISOString().slice(11, 23)} the service said: ${text}`);
});
after(() => stage.close());

/** The pods of a node that is to die: each tolerates its taints as it says. */
async function podsOn(node: string, name: string) {
  const { cluster } = stage.stage;
  const own = KEYS.map((key) => tolerates(key, OWN_SECONDS));
  const [soon, late, forever] = await Promise.all([
    cluster.addPod(node, `${name}-soon`, { tolerations: own }),
    cluster.addPod(node, `${name}-late`),
    cluster.addPod(node, `${name}-forever`, { tolerations: [FOREVER] }),
  ]);
  return { soon, late, forever };
}

const gone = (pod: PodLife, withinMs: number) =>
  until(`${pod.name} is evicted`, withinMs, () => pod.evictedAt);
const executing = (node: string) =>
  stage
    .taints(node)
    .then((taints) => taints.filter(({ key, effect }) => KEYS.includes(key) && effect === 'NoExecute'));

test('pods of nodes that are not ready or unreachable go by our rule, and the built-in controller deletes none', async (t) => {
  const service = await stage.serve(POLICY);
  await stage.heartbeatAfter(0);
  const [silent, unready] = [await stage.nodes.add('silent'), await stage.nodes.add('unready')];
  const pods = [await podsOn(silent, 'silent'), await podsOn(unready, 'unready')];
  stage.nodes.die(silent);
  await stage.nodes.fail(unready);
  const noticed = await Promise.all([
    stage.tainted(silent, NODE_UNREACHABLE, TWIN, NOTICED_WITHIN_MS),
    stage.tainted(unready, NODE_NOT_READY, TWIN, NOTICED_WITHIN_MS),
  ]);
  for (const [index, { soon, late, forever }] of pods.entries()) {
    for (const pod of [soon, late]) {
      const afterMs = (await gone(pod, (POLICY_SECONDS + 20) * 1000)) - (noticed[index] ?? 0);
      t.diagnostic(`${pod.name} went ${afterMs} ms after the taint was seen`);
      // The taint was there up to a look before it was seen.
      assert.ok(Math.abs(afterMs - POLICY_SECONDS * 1000) < 1_500, `${pod.name} went after ${afterMs} ms`);
    }
    assertUntouched(forever);
  }
  for (const node of [silent, unready]) {
    assert.deepEqual(await executing(node), []);
    await stage.nodes.remove(node);
  }
  assert.equal(await stage.builtIn.deletions(), 0);
  assert.equal(await service.metric('taint_eviction_controller_pod_deletions_total'), 4);
  assert.match(stage.command('status'), /at nodes +alive since/);
});

test('a taint that somebody sets by hand is admitted, of these keys, too', async () => {
  const { cluster } = stage.stage;
  const node = await stage.nodes.add('by-hand');
  const taints = [...KEYS, 'gpu'].map((key) => ({ key, effect: 'NoExecute' }));
  const answer = await cluster.api.patch(`/api/v1/nodes/${node}`, { spec: { taints } });
  const { spec } = answer as { spec: { taints: { key: string; timeAdded?: string }[] } };
  assert.deepEqual(
    spec.taints.filter(({ timeAdded }) => timeAdded === undefined).map(({ key }) => key),
    [...KEYS, 'gpu'],
  );
  await stage.nodes.remove(node);
});

test('once the service is killed, and the lapse is over, the built-in controller evicts as upstream', async (t) => {
  const node = await stage.nodes.add('orphaned');
  const { soon, late, forever } = await podsOn(node, 'orphaned');
  const before = await stage.builtIn.deletions();
  await stage.nodes.fail(node);
  await stage.tainted(node, NODE_NOT_READY, TWIN, NOTICED_WITHIN_MS);
  await stage.stage.service.kill();
  const { heartbeat = 0 } = (await stage.live()) ?? {};
  const at = await stage.tainted(node, NODE_NOT_READY, 'NoExecute', LAPSE_MS + ASKED_AGAIN_WITHIN_MS);
  t.diagnostic(`the node controller's taint got in ${at - heartbeat} ms after the last heartbeat`);
  assert.ok(at - heartbeat >= LAPSE_MS - 1_000, 'its moment is cut to the second');
  await gone(soon, OWN_SECONDS * 1000 + 5_000);
  assertUntouched(late, forever);
  assert.equal(await stage.builtIn.deletions(), before + 1);
  assert.match(stage.command('status'), /ALARM +It lapsed/);
  await stage.nodes.remove(node);
});

for (const [what, path] of [
  ['its parameter', '/apis/taintward.dev/v1/takeovers/live'],
  [
    'the definition of that',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/takeovers.taintward.dev',
  ],
] as const) {
  test(`once ${what} is deleted, the built-in controller evicts, although the service is alive`, async () => {
    const since = Date.now();
    await stage.serve(POLICY);
    await stage.heartbeatAfter(since);
    const node = await stage.nodes.add(`without-${path.length}`);
    const { soon } = await podsOn(node, `without-${path.length}`);
    await stage.nodes.fail(node);
    await stage.tainted(node, NODE_NOT_READY, TWIN, NOTICED_WITHIN_MS);
    assert.deepEqual(await executing(node), []);
    const before = await stage.builtIn.deletions();
    await stage.stage.cluster.api.remove(path);
    await stage.tainted(node, NODE_NOT_READY, 'NoExecute', ASKED_AGAIN_WITHIN_MS);
    await gone(soon, OWN_SECONDS * 1000 + 5_000);
    assert.equal(await stage.builtIn.deletions(), before + 1);
    await stage.nodes.remove(node);
    await stage.stage.service.kill();
    stage.command('apply', '--lapse', String(LAPSE_SECONDS));
  });
}

for (const [which, aheadMs] of [
  ['ahead', 120_000],
  ['behind', -120_000],
] as const) {
  test(`a service whose clock is two minutes ${which} says the API server's time, and a pause of its policy is nobody else's turn`, async (t) => {
    const since = Date.now();
    const shift = `const now = Date.now; Date.now = () => now() + ${aheadMs};`;
    const preload = `data:text/javascript,${encodeURIComponent(shift)}`;
    const policy = { ...POLICY, mode: 'paused' as const, tolerationSeconds: {} };
    await stage.serve(policy, { NODE_OPTIONS: `--import=${preload}` });
    const heartbeat = await stage.heartbeatAfter(since - 5_000);
    const seenAt = Date.now();
    t.diagnostic(`a heartbeat that was seen at once is ${seenAt - heartbeat} ms old`);
    assert.ok(heartbeat <= seenAt + 1_000 && heartbeat >= seenAt - 5_000);
    const node = await stage.nodes.add(`skewed-${which}`);
    const { soon, late } = await podsOn(node, `skewed-${which}`);
    await stage.nodes.fail(node);
    await stage.tainted(node, NODE_NOT_READY, TWIN, NOTICED_WITHIN_MS);
    // Two of the node controller's tries, and long past the time of one of the pods.
    await new Promise((resolve) => setTimeout(resolve, 12_000));
    assert.deepEqual(await executing(node), []);
    assertUntouched(soon, late);
    await stage.nodes.remove(node);
    await stage.stage.service.kill();
  });
}

test('release gives eviction back at once, and leaves nothing behind', async () => {
  const since = Date.now();
  await stage.serve(POLICY);
  await stage.heartbeatAfter(since);
  const node = await stage.nodes.add('released');
  await stage.nodes.fail(node);
  await stage.tainted(node, NODE_NOT_READY, TWIN, NOTICED_WITHIN_MS);
  assert.deepEqual(await executing(node), []);
  assert.match(stage.command('release'), /^Released/);
  await stage.tainted(node, NODE_NOT_READY, 'NoExecute', ASKED_AGAIN_WITHIN_MS);
  const { api } = stage.stage.cluster;
  for (const collection of [
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies',
    '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  ]) {
    const { items } = (await api.read(collection)) as { items: { metadata: { name: string } }[] };
    const left = items.map(({ metadata }) => metadata.name).filter((name) => name.includes('taintward'));
    assert.deepEqual(left, [], collection);
  }
  assert.match(stage.command('release'), /nothing to release/);
  await stage.nodes.remove(node);
});
