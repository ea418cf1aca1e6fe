import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { CALM_MS } from '#shared/eviction/guard.ts';
import { TAKEOVER_PATH } from '#shared/kubernetes/takeover.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { momentComes } from '#test/cluster/rig/on-time.ts';
import { OwnClock } from '#test/cluster/rig/own-clock.ts';
import { Ruling } from '#test/cluster/rig/ruling.ts';
import type { ServiceProcess } from '#test/cluster/rig/service-process.ts';
import { surfacesOf } from '#test/cluster/rig/surfaces.ts';
import { TakeoverStage } from '#test/cluster/rig/takeover-stage.ts';
import { FOREVER, tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';

/** Long enough for one heartbeat, but not for two. */
const LAPSE_SECONDS = 30;
const LAPSE_MS = LAPSE_SECONDS * 1000;
/** The policy's seconds, which replace the 300 s of the pods' defaults. */
const POLICY_SECONDS = 35;
/** The seconds of some pods: the built-in controller would apply them much earlier. */
const OWN_SECONDS = 3;
/** Half of the steady nodes and these: the node controller slows down where more of a zone fail. */
const FAILING_NODES = 5;
/** The policy's seconds where many nodes fail: short, to verify that nothing follows. */
const HELD_SECONDS = 5;
/** The time after the deadline for which pods must stay: it covers several attempts of the node controller. */
const HELD_MS = 5_000;
/** Nodes report every ten seconds, and the guard checks at the same interval whether it can reset. */
const CALM_SEEN_WITHIN_MS = 40_000;
/** The error of a clock that holds evictions. */
const WRONG_MS = 120_000;
const KEYS = [NODE_NOT_READY, NODE_UNREACHABLE];
const POLICY = {
  treatAsNoExecute: KEYS,
  tolerationSecondsOverrides: { [NODE_NOT_READY]: POLICY_SECONDS, [NODE_UNREACHABLE]: POLICY_SECONDS },
};
const TWIN = 'NoSchedule';
/** A service that finds a takeover ineffective by a dry run names this taint. */
const UNPROVEN = `${NODE_NOT_READY}:NoExecute`;
const POLICY_PATH =
  '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/taintward-takeover-nodes';
const BINDING_PATH = POLICY_PATH.replace('policies/', 'policybindings/');

/** A service in observe mode. Its guard trips at the number of nodes that fail simultaneously below, and not before. */
const ONLOOKER = `mode: observe
guard:
  cluster: { percent: 20, nodes: ${FAILING_NODES} }
  zone: off
  customTaints: off
`;

let stage: TakeoverStage;
/** The clock of all services except the onlooker. */
let clock: OwnClock;
/** The rules of the first service that evicts. */
let ruling: Ruling;
/** The rules of the onlooker, which runs all the time. */
let onlooker: Ruling;
/** The time at which the nodes that failed simultaneously began to return. */
let backSince: number;
before(async () => {
  stage = await TakeoverStage.open();
  clock = new OwnClock(stage.stage.path('own-clock'));
  await stage.command('apply', '--heartbeat-timeout', String(LAPSE_SECONDS));
  const policy = stage.stage.write('onlooker.yaml', ONLOOKER);
  onlooker = new Ruling(await stage.stage.start({ policy }));
});
afterEach((context) => {
  stage.nodes.check();
  if (!('passed' in context) || context.passed) return;
  for (const { at, text } of stage.stage.services.at(-1)?.output.slice(-40) ?? [])
    context.diagnostic(`${new Date(at).toISOString().slice(11, 23)} the service said: ${text}`);
});
after(() => stage.close());

/** Creates the pods of a node that is to die, with different tolerations. */
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

/** Removes a node and its remaining pods, which the built-in controller would evict, and count, minutes later. */
async function removeWithPods(node: string, pods: readonly PodLife[]): Promise<void> {
  const { cluster } = stage.stage;
  await Promise.all(
    pods.filter(({ removedAt }) => removedAt === undefined).map((pod) => cluster.deletePod(pod)),
  );
  await stage.nodes.remove(node);
}

const gone = (pod: PodLife) => until(`${pod.name} is evicted`, () => pod.evictedAt);
const executing = (node: string) =>
  stage
    .taints(node)
    .then((taints) => taints.filter(({ key, effect }) => KEYS.includes(key) && effect === 'NoExecute'));

test('the guard holds the pods of many simultaneously failed nodes until it is released, and no other controller evicts them', async () => {
  const { cluster } = stage.stage;
  const seconds = Object.fromEntries(KEYS.map((key) => [key, HELD_SECONDS]));
  const since = Date.now();
  const service = await stage.serve({ ...POLICY, tolerationSecondsOverrides: seconds });
  await stage.heartbeatAfter(since);
  ruling = new Ruling(service);
  const names = Array.from({ length: FAILING_NODES }, (_, index) => `many-${index}`);
  const nodes = await Promise.all(names.map((name) => stage.nodes.add(name)));
  const pods = await Promise.all(
    nodes.map((node, index) =>
      cluster.addPod(node, `many-${index}`, { tolerations: KEYS.map((key) => tolerates(key, OWN_SECONDS)) }),
    ),
  );
  await Promise.all(nodes.map((node) => stage.nodes.fail(node)));
  await stage.nodes.untilDown(nodes);
  const dueAt = Date.now() + HELD_SECONDS * 1000;
  await momentComes(dueAt + HELD_MS);
  assertUntouched(...pods);
  assert.deepEqual(
    (await ruling.trips()).map(({ scope, nodes: down }) => `${scope} ${down}`),
    ['cluster 3'],
  );
  assert.deepEqual(
    (await onlooker.trips()).map(({ scope, nodes: down }) => `${scope} ${down}`),
    [`cluster ${FAILING_NODES}`],
  );
  await ruling.releaseGuard();
  await Promise.all(pods.map((pod) => gone(pod)));
  assert.deepEqual((await Promise.all(nodes.map(executing))).flat(), []);
  assert.equal(await stage.builtIn.deletions(), 0);
  backSince = Date.now();
  for (const node of nodes) stage.nodes.revive(node);
  await stage.nodes.untilUp(nodes);
  for (const node of nodes) await stage.nodes.remove(node);
});

test('pods of nodes that are not ready or unreachable are evicted by policy unless they are held, and the built-in controller deletes none', async (t) => {
  const { service } = stage.stage;
  stage.stage.write('policy.yaml', JSON.stringify({ mode: 'enforce', ...POLICY }));
  const [silent, unready] = [await stage.nodes.add('silent'), await stage.nodes.add('unready')];
  const pods = [await podsOn(silent, 'silent'), await podsOn(unready, 'unready')];
  const held = await stage.stage.cluster.addPod(unready, 'unready-held');
  const { namespace } = stage.stage.cluster;
  const hold = await ruling.hold({ kind: 'pod', namespace, name: held.name });
  stage.nodes.die(silent);
  await stage.nodes.fail(unready);
  const noticed = await Promise.all([
    stage.tainted(silent, NODE_UNREACHABLE, TWIN),
    stage.tainted(unready, NODE_NOT_READY, TWIN),
  ]);
  for (const [index, { soon, late, forever }] of pods.entries()) {
    for (const pod of [soon, late]) {
      const afterMs = (await gone(pod)) - (noticed[index] ?? 0);
      t.diagnostic(`${pod.name} went ${afterMs} ms after the taint was seen`);
      // The taint was there up to one poll before it was seen.
      assert.ok(afterMs > POLICY_SECONDS * 1000 - 1_500, `${pod.name} went after ${afterMs} ms`);
    }
    assertUntouched(forever);
  }
  assertUntouched(held);
  await ruling.release(hold);
  await gone(held);
  for (const node of [silent, unready]) {
    assert.deepEqual(await executing(node), []);
    await stage.nodes.remove(node);
  }
  assert.equal(await stage.builtIn.deletions(), 0);
  // A delete is counted when it is answered, which is after others see the deletion.
  const deletions = () => service.metric('taint_eviction_controller_pod_deletions_total');
  await until('it has counted them', async () => (await deletions()) >= FAILING_NODES + 5);
  assert.equal(await deletions(), FAILING_NODES + 5);
  assert.match(await stage.command('status'), /takeover +active since/);
});

test('a manually set taint with one of these keys is admitted, too', async () => {
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

/** Actions that keep the service from evicting from then on. */
const OBSTACLES: Readonly<Record<string, (service: ServiceProcess) => void | Promise<void>>> = {
  'the service is killed': (service) => service.kill(),
  'the service is frozen': (service) => service.pause(),
  'it loses its permissions, but may renew the heartbeat': () => stage.stage.account.revoke(),
  'its clock is set two minutes ahead': () => clock.set(WRONG_MS),
  'its clock is set two minutes back': () => clock.set(-WRONG_MS),
};

for (const [what, obstruct] of Object.entries(OBSTACLES)) {
  test(`the built-in controller evicts as upstream once ${what}, and the heartbeat has expired`, async (t) => {
    // The service of the previous tests would renew the heartbeat.
    await stage.stage.service.kill();
    const since = Date.now();
    const service = await stage.serve(POLICY, clock.env);
    await stage.heartbeatAfter(since);
    const node = await stage.nodes.add(`nobody-${Object.keys(OBSTACLES).indexOf(what)}`);
    const { soon, late, forever } = await podsOn(node, node.slice(node.indexOf('nobody')));
    const before = await stage.builtIn.deletions();
    await stage.nodes.fail(node);
    await stage.tainted(node, NODE_NOT_READY, TWIN);
    await obstruct(service);
    const obstructedAt = Date.now();
    const at = await stage.tainted(node, NODE_NOT_READY, 'NoExecute');
    const { heartbeat = 0 } = (await stage.live()) ?? {};
    t.diagnostic(`the node controller's taint got in ${at - heartbeat} ms after the last heartbeat`);
    assert.ok(at - heartbeat >= LAPSE_MS - 1_000, 'its moment is cut to the second');
    t.diagnostic(`the built-in controller evicted after ${(await gone(soon)) - obstructedAt} ms`);
    assertUntouched(late, forever);
    await stage.builtIn.untilDeleted(before + 1);
    await until('status says so', async () =>
      /ALARM +The heartbeat (expired|is suspended)/.test(await stage.command('status')),
    );
    await service.kill();
    clock.set(0);
    if (what.includes('permissions')) await stage.stage.account.grant();
    await removeWithPods(node, [late, forever]);
  });
}

for (const [what, path] of [
  ['its parameter', '/apis/taintward.dev/v1/takeovers/live'],
  [
    'the definition of that',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/takeovers.taintward.dev',
  ],
] as const) {
  test(`the built-in controller evicts once ${what} is deleted, although the service is alive`, async () => {
    const since = Date.now();
    await stage.serve(POLICY);
    await stage.heartbeatAfter(since);
    const node = await stage.nodes.add(`without-${path.length}`);
    const { soon, late, forever } = await podsOn(node, `without-${path.length}`);
    await stage.nodes.fail(node);
    await stage.tainted(node, NODE_NOT_READY, TWIN);
    assert.deepEqual(await executing(node), []);
    const before = await stage.builtIn.deletions();
    await stage.stage.cluster.api.remove(path);
    await stage.tainted(node, NODE_NOT_READY, 'NoExecute');
    await gone(soon);
    await stage.builtIn.untilDeleted(before + 1);
    await removeWithPods(node, [late, forever]);
    await stage.stage.service.kill();
    await stage.command('apply', '--heartbeat-timeout', String(LAPSE_SECONDS));
  });
}

for (const [what, path, why] of [
  ['policy', POLICY_PATH, UNPROVEN],
  ['binding', BINDING_PATH, UNPROVEN],
  ['parameter', TAKEOVER_PATH, 'takeovers/live'],
] as const) {
  test(`a service that renews the heartbeat reports within a minute that the ${what} is deleted`, async (t) => {
    const since = Date.now();
    const service = await stage.serve(POLICY);
    await stage.heartbeatAfter(since);
    const deletedAt = Date.now();
    await stage.stage.cluster.api.remove(path);
    const { at } = await service.untilPrinted('takeover.heartbeat-suspended', why);
    t.diagnostic(`it reported that after ${at - deletedAt} ms`);
    assert.ok(at - deletedAt < 60_000, `it reported that after ${at - deletedAt} ms`);
    await service.kill();
    await stage.command('apply', '--heartbeat-timeout', String(LAPSE_SECONDS));
  });
}

test('an ineffective policy is detected, reported everywhere within a minute, and takes nothing over', async () => {
  const { api } = stage.stage.cluster;
  await api.patch(POLICY_PATH, { spec: { matchConditions: [{ name: 'never', expression: 'false' }] } });
  // The relay starts only once the API server applies the change.
  const renewedAt = Math.floor(Date.now() / 1000) * 1000;
  await api.patch(TAKEOVER_PATH, { spec: { heartbeat: new Date(renewedAt).toISOString() } });
  const tried = await stage.nodes.add('tried');
  await until('the policy does nothing', async () => {
    const taint = { key: NODE_NOT_READY, effect: 'NoExecute', timeAdded: new Date(renewedAt).toISOString() };
    await api.patch(`/api/v1/nodes/${tried}`, { spec: { taints: [taint] } });
    return (await executing(tried)).length > 0;
  });
  await stage.nodes.remove(tried);
  const node = await stage.nodes.add('unproven');
  const { soon, late, forever } = await podsOn(node, 'unproven');
  const before = await stage.builtIn.deletions();
  const service = await stage.serve(POLICY);
  await until('the takeover is withheld for that', async () =>
    (await stage.live())?.withheld?.includes(UNPROVEN),
  );
  assert.equal((await stage.live())?.heartbeat, renewedAt, 'it is not renewed');
  // The onlooker records its own reason in turn: its policy only observes.
  await until('status says why', async () => {
    const { alarms } = JSON.parse(await stage.command('status', '-o', 'json'));
    return alarms.some((alarm: string) => alarm.includes(UNPROVEN));
  });
  await service.untilPrinted('takeover.heartbeat-suspended', UNPROVEN);
  await until(
    'its metric says so',
    async () =>
      (await service.metric('taintward_cluster_faults{cluster="alpha",type="heartbeat-suspended"}')) === 1,
  );
  const shows = await surfacesOf(service);
  await shows('heartbeat-suspended', true);
  await stage.nodes.fail(node);
  await stage.tainted(node, NODE_NOT_READY, 'NoExecute');
  await gone(soon);
  await stage.builtIn.untilDeleted(before + 1);
  const since = Date.now();
  // A change that somebody else made to it is not undone by applying it again.
  await api.remove(POLICY_PATH);
  await stage.command('apply', '--heartbeat-timeout', String(LAPSE_SECONDS));
  await stage.heartbeatAfter(since);
  await shows('heartbeat-suspended', false);
  await removeWithPods(node, [late, forever]);
  await stage.stage.service.kill();
});

for (const [which, aheadMs] of [
  ['ahead', 20_000],
  ['behind', -20_000],
] as const) {
  test(`a service whose clock is twenty seconds ${which} writes the API server's time, and a stop lets no other controller evict`, async (t) => {
    const since = Date.now();
    const policy = { ...POLICY, tolerationSecondsOverrides: {} };
    clock.set(aheadMs);
    await new Ruling(await stage.serve(policy, clock.env)).stop();
    const heartbeat = await stage.heartbeatAfter(since - 5_000);
    const seenAt = Date.now();
    t.diagnostic(`a heartbeat that was seen at once is ${seenAt - heartbeat} ms old`);
    assert.ok(heartbeat <= seenAt + 1_000 && heartbeat >= seenAt - 60_000);
    const node = await stage.nodes.add(`skewed-${which}`);
    const { soon, late, forever } = await podsOn(node, `skewed-${which}`);
    await stage.nodes.fail(node);
    await stage.tainted(node, NODE_NOT_READY, TWIN);
    await momentComes(Date.now() + OWN_SECONDS * 1000 + HELD_MS);
    assert.deepEqual(await executing(node), []);
    assertUntouched(soon, late);
    await removeWithPods(node, [soon, late, forever]);
    await stage.stage.service.kill();
    clock.set(0);
  });
}

test('release returns eviction to the built-in controller immediately, and removes all objects', async () => {
  const since = Date.now();
  await stage.serve(POLICY);
  await stage.heartbeatAfter(since);
  const node = await stage.nodes.add('released');
  await stage.nodes.fail(node);
  await stage.tainted(node, NODE_NOT_READY, TWIN);
  assert.deepEqual(await executing(node), []);
  assert.match(await stage.command('release'), /^Released/);
  await stage.tainted(node, NODE_NOT_READY, 'NoExecute');
  const { api } = stage.stage.cluster;
  for (const collection of [
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies',
    '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings',
    '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  ]) {
    // A definition is removed shortly after its deletion, when its objects have been removed.
    await until(`nothing of it is left of ${collection}`, async () => {
      const { items } = (await api.read(collection)) as { items: { metadata: { name: string } }[] };
      return !items.some(({ metadata }) => metadata.name.includes('taintward'));
    });
  }
  assert.doesNotMatch(await stage.command('release'), /^Released/);
  await stage.nodes.remove(node);
});

test('an unreleased guard resets automatically after five minutes of recovery', async (t) => {
  // On a busy machine the guard reset while earlier tests ran.
  const leftMs = backSince + CALM_MS + CALM_SEEN_WITHIN_MS - Date.now();
  await until(
    'the guard lets go',
    async () => (await onlooker.trips()).length === 0,
    Math.max(leftMs, 10_000),
  );
  const [service] = stage.stage.services;
  assert.ok(service);
  const words = ['guard reset automatically'];
  // A decision is in the state shortly before it is in the output.
  const released = await service.untilPrinted(...words);
  assert.equal(service.printed(...words).length, 1);
  const afterMs = released.at - backSince;
  t.diagnostic(`it let go ${afterMs} ms after the nodes began to come back`);
  assert.ok(afterMs >= CALM_MS && afterMs <= CALM_MS + CALM_SEEN_WITHIN_MS, `it let go after ${afterMs} ms`);
});
