import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { FORGOTTEN_MS } from '#shared/engine/watch/lease-session.ts';
import { TAINT_MANAGER_REASON } from '#shared/kubernetes/announcement.ts';
import { RULES_MAX_AGE_MS } from '#shared/state/rules-store.ts';
import { RULES_FILE, STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import { taintward } from '#test/transcripts/transcript.ts';
import { fileStage } from './rig/file-stage.ts';
import { kubeconfigText } from './rig/kubeconfig.ts';
import { OwnClock } from './rig/own-clock.ts';
import { ServiceProcess } from './rig/service-process.ts';
import { CONTEXT } from './rig/stage.ts';
import { surfacesOf, WITHIN_MS } from './rig/surfaces.ts';
import { until } from './rig/until.ts';
import { passOn, Wiretap } from './rig/wiretap.ts';

/*
 * Each condition is brought about as in production: by the API server, the network, a process, or a clock. Then all
 * surfaces show it in time, with the same message; and none does, once it is over.
 */

const stage = fileStage('bare');

/** `delayed` and `stuck-terminating` hold after a minute. */
const AFTER_A_MINUTE_MS = 60_000 + WITHIN_MS;

/** Waits until `promises` resolve, which bring about conditions beside each other. */
const beside = (...promises: readonly Promise<unknown>[]) => Promise.all(promises);

test('what becomes of pods: a delayed eviction, a pod that is stuck, and a taint from the future', async (t) => {
  const { cluster } = stage();
  const service = await stage().start({ kubeconfig: await stage().tap() });
  const { wiretap } = stage();
  const shows = await surfacesOf(service);
  const [denied, stuck] = await Promise.all(
    ['denied', 'stuck'].map(async (name) => cluster.addPod(await cluster.addNode(name), name)),
  );
  assert.ok(denied && stuck);
  const finalizers = (...names: readonly string[]) =>
    cluster.api.patch(cluster.podPath('stuck'), { metadata: { finalizers: names } });
  await finalizers('taintward.dev/suite');
  const denials = wiretap.hold(({ method, path }) => method === 'DELETE' && path.includes('/denied'));
  t.after(() => denials.release());
  const future = await cluster.addNode('future');
  await cluster.addPod(future, 'future', { tolerations: [{ key: 'x', operator: 'Exists' }] });

  await beside(
    cluster.taint(cluster.nodeName('denied'), { key: 'x' }),
    cluster.taint(cluster.nodeName('stuck'), { key: 'x' }),
  );
  await cluster.setTaints(future, [{ key: 'x', timeAdded: new Date(Date.now() + 3_600_000).toISOString() }]);
  await beside(
    shows('taint-time-in-future', true),
    shows('delayed', true, AFTER_A_MINUTE_MS),
    shows('stuck-terminating', true, AFTER_A_MINUTE_MS),
  );
  denials.release();
  await finalizers();
  // In the next test, tainted nodes would trip the guard.
  await Promise.all(['denied', 'stuck', 'future'].map((name) => cluster.untaint(cluster.nodeName(name))));
  await beside(
    shows('taint-time-in-future', false),
    shows('delayed', false),
    shows('stuck-terminating', false),
  );
});

test('what a relay meets: revoked permissions, an API server that is cut off, another clock, and a stop', async () => {
  const { account } = stage();
  const clock = new OwnClock(stage().path('clock'));
  const service = await stage().start({ kubeconfig: await stage().tap(), env: clock.env });
  const { wiretap } = stage();
  const shows = await surfacesOf(service);

  await account.revoke();
  // Permissions are reviewed every 25 s, and commands take their time.
  await beside(shows('list-failing', true, 2 * WITHIN_MS), shows('watch-failing', true, 2 * WITHIN_MS));
  await account.grant();
  await beside(shows('list-failing', false), shows('watch-failing', false));

  await wiretap.cut();
  await shows('api-server-unreachable', true);
  await wiretap.mend();
  await shows('api-server-unreachable', false);

  clock.set(45_000);
  await shows('clocks-differ', true);
  clock.set(0);
  await shows('clocks-differ', false);

  const inState = ['--reason', 'an incident', '--state-dir', service.stateDir] as const;
  await taintward('stop', CONTEXT, ...inState);
  await shows('stopped', true);
  await taintward('resume', CONTEXT, ...inState);
  await shows('stopped', false);
});

/** Keeps all other processes from writing to a database; returns the function that ends it. */
function lock(file: string): () => void {
  const database = new DatabaseSync(file);
  database.exec('BEGIN IMMEDIATE');
  return () => database.close();
}

test('what a disk meets: another process locks the store, and the rules while the guard trips', async () => {
  const { cluster } = stage();
  const policy = { mode: 'enforce', guard: { customTaints: { percent: 1, nodes: 2 } } };
  const service = await stage().start({ policy: stage().write('policy.yaml', JSON.stringify(policy)) });
  const shows = await surfacesOf(service);
  const names = await Promise.all(['first', 'second', 'third'].map((name) => cluster.addNode(name)));
  await Promise.all(names.map((node, at) => cluster.addPod(node, `on-${at}`)));
  const [first, ...others] = names;
  assert.ok(first);

  const unlockStore = lock(join(service.stateDir, STORE_FILE));
  await cluster.taint(first, { key: 'x' });
  await shows('store-failing', true);
  unlockStore();
  await shows('store-failing', false);

  const unlockRules = lock(join(service.stateDir, RULES_FILE));
  await beside(...others.map((node) => cluster.taint(node, { key: 'x' })));
  await shows('guard-unsaved', true);
  unlockRules();
  await beside(shows('guard-unsaved', false), shows('guard-tripped', true));
  await Promise.all(names.map((node) => cluster.untaint(node)));
});

test('what a policy allows: a failed eviction, and a tripped guard', async () => {
  const { cluster } = stage();
  const policy = { mode: 'enforce', giveUpAfter: '1s', guard: { customTaints: { percent: 1, nodes: 2 } } };
  const service = await stage().start({
    kubeconfig: await stage().tap(),
    policy: stage().write('policy.yaml', JSON.stringify(policy)),
  });
  const { wiretap } = stage();
  const shows = await surfacesOf(service);
  const [one, two, three] = await Promise.all(['one', 'two', 'three'].map((name) => cluster.addNode(name)));
  assert.ok(one && two && three);
  const pod = await cluster.addPod(one, 'fails');
  wiretap.carry = async ({ request, response, forward }) => {
    if (request.method === 'DELETE') return void response.writeHead(500).end('{}');
    return passOn(await forward(), response);
  };
  await cluster.taint(one, { key: 'x' });
  await shows('failed', true);
  await beside(cluster.taint(two, { key: 'x' }), cluster.taint(three, { key: 'x' }));
  await shows('guard-tripped', true);
  await cluster.deletePod(pod);
  const inState = ['--reason', 'a test', '--state-dir', service.stateDir] as const;
  const { code, err } = await taintward('release', 'guard', CONTEXT, '--scope', 'customTaints', ...inState);
  assert.equal(code, 0, err);
  await beside(shows('failed', false), shows('guard-tripped', false));
});

test('who else is there: the same cluster under another name, and another installation', async (t) => {
  const { cluster, account } = stage();
  const tap = await Wiretap.open(cluster.connection);
  t.after(() => tap.close());
  await tap.cut();
  const entries = [CONTEXT, 'beta'].map((context, at) => ({
    context,
    connection: at === 0 ? cluster.connection : tap.connection,
    token: account.token,
  }));
  const kubeconfig = stage().write('both.kubeconfig', await kubeconfigText(entries));
  const stateDir = stage().newStateDir();
  const both = await ServiceProcess.spawn({ kubeconfig, contexts: [CONTEXT, 'beta'], stateDir });
  stage().services.push(both);
  await both.untilPrinted(`${CONTEXT}  watching`);
  // Without the right to read namespaces, clusters are compared by their nodes.
  await cluster.addNode('known');
  const shows = await surfacesOf(both);
  await tap.mend();
  await shows('same-cluster', true);

  const showsOfOther = await surfacesOf(await stage().start());
  // Which of the two evicts a pod first is chance, and the other notices it.
  let isNoticed = false;
  const noticed = Promise.any(
    [shows, showsOfOther].map((show) => show('conflicting-installation', true, 4 * WITHIN_MS)),
  ).then(() => {
    isNoticed = true;
  });
  for (let nodes = 0; !isNoticed && nodes < 20; nodes++) {
    const node = await cluster.addNode(`shared-${nodes}`);
    await Promise.all(Array.from({ length: 10 }, (_, pod) => cluster.addPod(node, `shared-${nodes}-${pod}`)));
    await cluster.taint(node, { key: 'maintenance' });
    await until('its pods are evicted', () =>
      [...cluster.witness.pods.values()].every((pod) => pod.node !== node || pod.evictedAt !== undefined),
    );
  }
  await noticed;
});

test('what an unknown account and a silent network meet: access denied, and disconnected', async (t) => {
  const { cluster, account } = stage();
  const tap = await Wiretap.open(cluster.connection);
  t.after(() => tap.close());
  await tap.cut();
  const entries = [
    { context: CONTEXT, connection: cluster.connection, token: account.token },
    { context: 'unknown', connection: cluster.connection, token: 'unknown' },
    { context: 'silent', connection: tap.connection, token: account.token },
  ];
  const service = await ServiceProcess.spawn({
    kubeconfig: stage().write('three.kubeconfig', await kubeconfigText(entries)),
    contexts: entries.map(({ context }) => context),
    stateDir: stage().newStateDir(),
  });
  stage().services.push(service);
  await service.untilPrinted(`${CONTEXT}  watching`);
  const shows = await surfacesOf(service);
  await beside(shows('access-denied', true), shows('disconnected', true));
});

test('who evicts: nobody in observe mode, and another taint manager despite a stop', async () => {
  const { cluster } = stage();
  const clock = new OwnClock(stage().path('later'));
  const observing = await stage().start({ policy: false, env: clock.env });
  const shows = await surfacesOf(observing);
  const [node, other] = await Promise.all([cluster.addNode('nobody'), cluster.addNode('stopped')]);
  const pod = await cluster.addPod(node, 'nobody');
  await cluster.taint(node, { key: 'x' });
  clock.set(FORGOTTEN_MS + 60_000);
  await shows('no-eviction-controller', true);
  await cluster.deletePod(pod);
  clock.set(0);
  await shows('no-eviction-controller', false);
  await observing.kill();

  const stopped = await stage().start();
  const showsOfStopped = await surfacesOf(stopped);
  const changes = () => stopped.printed('rules changed').length;
  const before = changes();
  await taintward('stop', CONTEXT, '--reason', 'an incident', '--state-dir', stopped.stateDir);
  await until('the relay applies the stop', () => changes() > before);
  // Until then, a pass may apply the rules that it has read before the stop.
  await delay(RULES_MAX_AGE_MS);
  const held = await cluster.addPod(other, 'stopped');
  await cluster.taint(other, { key: 'x' });
  // What is gone before the relay has listed the node's pods, it cannot notice.
  await until('the stop holds the pod', async () =>
    (await taintward('pending', '--state-dir', stopped.stateDir)).out.includes(held.name),
  );
  const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: TAINT_MANAGER_REASON }];
  const status = `${cluster.podPath(held.name)}/status?fieldManager=kube-controller-manager`;
  await cluster.api.patch(status, { status: { conditions } });
  await cluster.api.remove(cluster.podPath(held.name));
  await showsOfStopped('built-in-evicts', true);
});
