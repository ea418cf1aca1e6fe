import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { momentComes } from '#test/cluster/rig/on-time.ts';
import { CONTEXT, Replicas } from '#test/cluster/rig/replicas.ts';
import { ServerLoad } from '#test/cluster/rig/server-load.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { passOn, Wiretap } from '#test/cluster/rig/wiretap.ts';
import { taintward } from '#test/transcripts/transcript.ts';

const UNGUARDED = join(import.meta.dirname, '../cluster/rig/unguarded.yaml');
const IDLE_MS = 20_000;
/** The maximum for each time at which pods of a node are due. */
const MAX_WRITES = 3;
const GIVES_UP = 'mode: enforce\nguard: { cluster: off, zone: off, customTaints: off }\ngiveUpAfter: 1s\n';

let replicas: Replicas;
before(async () => {
  replicas = await Replicas.open();
  // The path from which the command line reads its kubeconfig, as kubectl does.
  process.env['KUBECONFIG'] = await replicas.operator();
});
afterEach(() => replicas.stopAll());
after(() => replicas?.close());

/** Runs `taintward` as an operator, on the state in the cluster. */
const run = (...words: readonly string[]) =>
  taintward('--in-cluster-context', CONTEXT, '--in-cluster-namespace', replicas.cluster.namespace, ...words);

/** Returns the output of `taintward`, which must succeed. */
async function printed(...words: readonly string[]): Promise<string> {
  const { out, err, code } = await run(...words);
  assert.equal(code, 0, err);
  return out;
}

test(`a node's object is written at most ${MAX_WRITES} times for each time at which pods are due`, async (t) => {
  const { cluster } = replicas;
  await replicas.startLeader();
  const node = await cluster.addNode('written');
  // All pods are scheduled before the first are due.
  const moments = [10, 16, 22];
  const pods = await Promise.all(
    moments.flatMap((seconds) =>
      Array.from({ length: 10 }, async (_, index) => {
        const tolerations = [tolerates('x', seconds)];
        return { seconds, life: await cluster.addPod(node, `written-${seconds}-${index}`, { tolerations }) };
      }),
    ),
  );
  const kept = async () => (await replicas.kept(node)) ?? { revision: 0, scheduled: 0 };
  await cluster.taint(node, { key: 'x' });
  await until('all are scheduled', async () => (await kept()).scheduled === pods.length);
  const writes = [(await kept()).revision];
  for (const [index, seconds] of moments.entries()) {
    const due = pods.filter((pod) => pod.seconds === seconds);
    await until(`those of ${seconds} s are gone`, () => due.every(({ life }) => life.removedAt));
    const before = writes.reduce((sum, each) => sum + each, 0);
    const left = pods.length - due.length * (index + 1);
    const { revision } = await until('that is kept', async () => {
      const now = await kept();
      return now.scheduled === left && now;
    });
    writes.push(revision - before);
  }
  const [scheduling, ...evicting] = writes;
  t.diagnostic(
    `writes: ${scheduling} to schedule ${pods.length} pods, then ${evicting.join(', ')} by moment`,
  );
  assert.ok(Math.max(...writes) <= MAX_WRITES);
});

test('two replicas write only the lease without tainted nodes', async (t) => {
  const { cluster } = replicas;
  await replicas.startLeader();
  await replicas.start();
  const ours = ['nodeevictions', 'evictionrules', 'configmaps'];
  const load = () => ServerLoad.of(cluster.connection);
  const writes = (at: ServerLoad) => ours.reduce((sum, resource) => sum + at.etcdWrites(resource), 0);
  const [before, beganAt] = [await load(), Date.now()];
  await momentComes(beganAt + IDLE_MS);
  const [after, seconds] = [await load(), (Date.now() - beganAt) / 1000];
  const perSecond = (of: (at: ServerLoad) => number) => ((of(after) - of(before)) / seconds).toFixed(2);
  t.diagnostic(
    `a second: ${perSecond((at) => at.etcdWrites('leases'))} writes of leases, ` +
      `${perSecond((at) => at.etcdRequests('taintward.dev') + at.etcdRequests('coordination.k8s.io'))} requests for leases and our kinds`,
  );
  assert.equal(writes(after), writes(before));
});

test('an operator stops and resumes evictions, and sees pending ones', async () => {
  const { cluster } = replicas;
  await replicas.startLeader();
  const node = await cluster.addNode('stopped');
  const pod = await cluster.addPod(node, 'stopped', { tolerations: [tolerates('x', 2)] });
  await printed('stop', 'in-cluster', '--reason', 'it is tried');
  await cluster.taint(node, { key: 'x' });
  await until('it is held', async () => (await replicas.kept(node))?.held === 1);
  // The leader's state is unknown until it has renewed its lease once.
  const shown = await until('it is shown', async () => {
    const { out, code } = await run('pending', 'in-cluster', '--held');
    return code === 0 && out;
  });
  assert.match(shown, /stopped/);
  assert.equal(pod.evictedAt, undefined);
  await printed('resume', 'in-cluster', '--reason', 'it was tried');
  await until('it is evicted', () => pod.evictedAt);
  assert.match(await printed('audit', 'in-cluster'), /it was tried/);
});

test('a failed eviction is retried when an operator requests it', async (t) => {
  const { cluster } = replicas;
  const wiretap = await Wiretap.open(cluster.connection);
  t.after(() => wiretap.close());
  const passes = wiretap.carry;
  wiretap.carry = async ({ request, response, forward }) => {
    if (request.method === 'DELETE') response.writeHead(500).end();
    else passOn(await forward(), response);
  };
  await replicas.startLeader({ connection: wiretap.connection, policy: GIVES_UP });
  const node = await cluster.addNode('tried');
  const pod = await cluster.addPod(node, 'tried');
  await cluster.taint(node, { key: 'x' });
  await until('it is given up', async () => (await replicas.kept(node))?.gaveUp === 1);
  wiretap.carry = passes;
  assert.match(await printed('retry', 'in-cluster'), /^1 failed eviction is retried/);
  const requestedAt = Date.now();
  const at = await until('it is evicted', () => pod.evictedAt);
  t.diagnostic(`evicted ${at - requestedAt} ms after it was asked for`);
});

test('a ConfigMap owns the policy of all replicas, and a command is rejected', async (t) => {
  const { cluster } = replicas;
  const path = `/api/v1/namespaces/${cluster.namespace}/configmaps`;
  const metadata = { name: 'taintward-policy' };
  await cluster.api.create(path, { metadata, data: { 'policy.yaml': GIVES_UP } });
  t.after(() => cluster.api.remove(`${path}/taintward-policy`));
  for (const name of ['first', 'second']) {
    const leader = await replicas.startLeader({ policy: false });
    const node = await cluster.addNode(`owned-${name}`);
    const pod = await cluster.addPod(node, `owned-${name}`);
    await cluster.taint(node, { key: 'x' });
    await until('it is evicted', () => pod.evictedAt);
    const { err, code } = await run('policy', 'apply', 'in-cluster', '-f', UNGUARDED, '--yes');
    assert.deepEqual([code, /ConfigMap \S+\/taintward-policy/.test(err)], [1, true]);
    await leader.stop();
  }
});

test('a standby is ready, and a replica that cannot read the lease is not', async (t) => {
  const { cluster } = replicas;
  const wiretap = await Wiretap.open(cluster.connection);
  t.after(() => wiretap.close());
  await replicas.startLeader();
  const standby = await replicas.start({ connection: wiretap.connection });
  const ready = async () => (await standby.states())?.join();
  await until('it is ready', async () => (await ready()) === 'in-cluster standby');
  const passes = wiretap.carry;
  wiretap.carry = async ({ request, response, forward }) => {
    if (request.path.includes('/leases/')) response.writeHead(403).end();
    else passOn(await forward(), response);
  };
  await until('it is not ready', async () => (await ready()) === undefined);
  wiretap.carry = passes;
  await until('it is ready again', async () => (await ready()) === 'in-cluster standby');
});
