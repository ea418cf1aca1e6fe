import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { IN_CLUSTER } from '#shared/state/objects/kubernetes-state.ts';
import { ObjectRulesStore } from '#shared/state/objects/object-rules-store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { Child } from '#test/world/child.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { forwarding, kubeconfigOf, startProgram } from '../entries/entries.ts';

const STATE =
  /\/namespaces\/(?<place>[^/]+\/(?:nodeevictions|evictionrules|leases|configmaps))(?:\/(?<name>[^/?]+))?(?:\?|$)/;
const LEASE = 'other/leases';
const RULES = 'other/evictionrules';
const DAY_MS = 24 * 3_600_000;

/** The simulated cluster behind a server that also keeps the objects of the state. */
async function stateCluster(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'in-cluster-'));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir });
  const forward = forwarding(cluster);
  const kept = new Map<string, FakeObjects>();
  const objects = (place: string) => {
    const found = kept.get(place) ?? new FakeObjects();
    kept.set(place, found);
    return found;
  };
  const marks: string[] = [];
  /** Requests that fail, by their place in the state, and by whether they are lists. */
  const failing = { lease: false, listsOfRules: false };
  const reviews = { areHeld: false, held: 0 };
  const lease = {
    objects: objects(LEASE),
    async read() {
      const [found] = await Array.fromAsync(lease.objects.list());
      return found as
        | (KubernetesObject & { readonly spec: { readonly holderIdentity?: string } })
        | undefined;
    },
  };
  const server = createServer(async (incoming, answer) => {
    const { method, url = '' } = incoming;
    const { place, name = '' } = STATE.exec(url)?.groups ?? {};
    if (url.includes('/status?fieldManager=')) marks.push(url);
    if (reviews.areHeld && url.includes('/selfsubjectaccessreviews')) return void reviews.held++;
    if (place === undefined) return forward(incoming, answer);
    const isRead = method === 'GET';
    const write = async () =>
      found[method === 'POST' ? 'create' : 'replace']((await json(incoming)) as KubernetesObject);
    const read = async () =>
      name === ''
        ? { metadata: {}, items: await Array.fromAsync(found.list(labelsOf(url))) }
        : found.get(name);
    const found = objects(place);
    const fails = place === RULES ? failing.listsOfRules && isRead && name === '' : failing.lease;
    if ((place === RULES || place === LEASE) && fails) return void answer.writeHead(500).end();
    const result = await (isRead ? read() : write());
    const status = { kind: 'Status', code: isRead ? 404 : 409, reason: 'Other', details: { name } };
    answer
      .writeHead(result === undefined ? status.code : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(result ?? status));
  });
  t.after(async () => {
    await cluster.close();
    rmSync(dir, { recursive: true });
  });
  const kubeconfig = await kubeconfigOf(t, server);
  const args = [
    ...['--in-cluster', '--context', 'c', '--kubeconfig', kubeconfig, '--namespace', 'other'],
    ...['--port', '0', '--log', 'json'],
  ];
  const start = (others: readonly string[], env = {}) =>
    startProgram(t, '#functions/service/main.ts', [...args, ...others], env);
  return { cluster, start, marks, failing, reviews, lease, objects };
}

const labelsOf = (url: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (new URL(url, 'http://c').searchParams.get('labelSelector') ?? '')
      .split(',')
      .filter(Boolean)
      .map((each) => each.split('=') as [string, string]),
  );

/** Resolves with the match of a line that a replica prints for its user. */
const printed = async ({ err }: Child, pattern: RegExp) =>
  (await err.first((line) => pattern.exec(line) ?? undefined)) ?? assert.fail(err.text);

test('a replica leads, evicts under its name by the policy in its ConfigMap, and releases its lease when it stops', async (t) => {
  const { cluster, start, marks, reviews, lease, objects } = await stateCluster(t);
  const rulesStore = new ObjectRulesStore({ objects: objects(RULES) });
  const formerly = { now: () => Date.now() - 8 * DAY_MS };
  await perform(
    { kind: 'apply-policy', cluster: IN_CLUSTER, text: 'mode: observe\n' },
    { rulesStore, clock: formerly, actor: 'anna' },
  );
  const configMap = { metadata: { name: 'taintward-policy' }, data: { 'policy.yaml': 'mode: enforce\n' } };
  await objects('other/configmaps').create(configMap as unknown as KubernetesObject);
  // Calls have indefinite time for their answers.
  const env = {
    NODE_OPTIONS:
      '--import=data:text/javascript,const{setTimeout:wait}=globalThis;globalThis.setTimeout=(act,ms,...given)=>wait(act,ms===10000?2**31-1:ms,...given)',
  };
  const replica = start(['--history-days', '9'], env);
  const [, name] = await printed(replica, /^Replica (\S+), state in namespace other\. .*:(\d+)\/readyz/);
  await printed(replica, /^This replica is/);
  await printed(replica, /^in-cluster: enforce mode/);
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  await replica.out.first((line) => /"pod":"web.*"pod\.evicted"/.test(line) || undefined);
  assert.match(marks[0] ?? '', new RegExp(`-${name}$`));
  const audit = await rulesStore.audit({ from: 0, to: Number.POSITIVE_INFINITY });
  assert.deepEqual([audit.length, audit.at(-1)?.actor], [2, 'anna'], 'kept for nine days');
  assert.ok((await lease.read())?.spec.holderIdentity);
  // A replica that stops waits for no such answer.
  reviews.areHeld = true;
  const [text, owner] = ['mode: enforce\nmethod: evict\n', 'another'];
  await perform(
    { kind: 'apply-policy', cluster: IN_CLUSTER, text, owner },
    { rulesStore, clock: systemClock, actor: 'another' },
  );
  await until('its permissions are reviewed', () => reviews.held > 0);
  const { code, stderr } = await replica.stop();
  assert.match(stderr, /^Stopping\. /m);
  assert.deepEqual([code, (await lease.read())?.spec.holderIdentity ?? ''], [0, '']);
  const events = replica.out.all.map((line) => JSON.parse(line).event);
  assert.deepEqual([events[0], ...events.slice(-2)], ['relay.started', 'relay.stopping', 'relay.stopped']);
});

test('a leader that could not read all rules prints the error, evicts no more once its lease expired, and ends when another replica has its lease', async (t) => {
  const { cluster, start, failing, lease, marks } = await stateCluster(t);
  failing.listsOfRules = true;
  const replica = start(['--enforce']);
  await printed(replica, /^This replica is/);
  await printed(replica, /evictionrules/);
  failing.listsOfRules = false;
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  await replica.out.first((line) => /"pod":"db.*"eviction\.scheduled"/.test(line) || undefined);
  failing.lease = true;
  await replica.out.first((line) => /hold the lease/.test(line) || undefined);
  assert.deepEqual(
    marks.filter((url) => url.includes('/db-')),
    [],
  );
  const found = (await lease.read()) ?? assert.fail();
  await lease.objects.remove(found.metadata.name, `${found.metadata.resourceVersion}`);
  const other: KubernetesObject & typeof found = {
    ...found,
    spec: { ...found.spec, holderIdentity: 'another' },
  };
  await lease.objects.create(other);
  failing.lease = false;
  const { code, stderr } = await replica.exit;
  assert.deepEqual([code, /no longer the/.test(stderr)], [1, true]);
});
