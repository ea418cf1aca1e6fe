import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, describe, type TestContext, test } from 'node:test';
import { MAX_RETRY_MS } from '#shared/eviction/retry.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { momentComes } from '#test/cluster/rig/on-time.ts';
import { until } from '#test/cluster/rig/until.ts';
import { passOn } from '#test/cluster/rig/wiretap.ts';
import { deployed, ENFORCE } from './rig/deployed-stage.ts';
import { hashOf, MAX_CHAIN } from './rig/loops/lineage.ts';

/*
 * Lambda counts the invocations in a chain of requests, and stops a function after 16 unless it is allowed to call
 * itself (`rig/loops`). `OUTAGE_MINUTES=40 node test/suite.ts test/deployed/loops.test.ts --isolation none` also
 * simulates an outage of that length.
 */

const BY_EVICTION = join(import.meta.dirname, 'rig/enforce-by-eviction.yaml');
const EVICT = 'taintward-evict';
/** Longer than the retry interval of a blocked pod. */
const RETRIED_WITHIN_MS = 90_000;
/** An outage with growing retry intervals, and with more attempts than a chain may have. */
const LONG_OUTAGE_MINUTES = 40;
const OUTAGE_MINUTES = Number(process.env['OUTAGE_MINUTES'] ?? 0);

/** Skips where the given account counts no chains, or the tests cannot see its counts. */
function tapOf(t: TestContext) {
  const { functionsTap } = deployed().account;
  if (!functionsTap) t.skip('the account runs the functions out of reach');
  return functionsTap;
}

/**
 * Makes all further requests of a relay continue a chain with that many invocations of `evict`, as if the chain had
 * begun long ago.
 */
async function behind(invocations: number): Promise<void> {
  const [relay] = await deployed().withRelays(1);
  assert.ok(relay);
  relay.tap.chain = new Map([[hashOf(EVICT), invocations]]);
}

/** Returns the longest chain in which `evict` has sent a message about a node, including the last invocation. */
const longestChain = (node: string): number =>
  Math.max(
    0,
    ...(deployed().account.functionsTap?.requests ?? [])
      .filter(({ operation, body }) => operation === 'SendMessageBatch' && body.includes(`"${node}\\"`))
      .map(({ lineage }) => lineage.get(hashOf(EVICT)) ?? 0),
  );

async function dropped(since: number): Promise<readonly string[]> {
  const lines = await deployed().logged('evict', since);
  return lines.filter((line) => line.includes('RecursiveInvocationException'));
}

/** Lets the service of a cluster use the Eviction API there. Returns a function that revokes the permission. */
async function grantEviction(): Promise<() => Promise<void>> {
  const { cluster } = deployed().alpha;
  const name = `${cluster.run}-eviction`;
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const metadata = { name, labels: cluster.labels };
  await cluster.api.create(`${rbac}/clusterroles`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata,
    rules: [{ apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] }],
  });
  await cluster.api.create(`${rbac}/clusterrolebindings`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', namespace: cluster.namespace, name: 'service' }],
  });
  return async () => {
    await cluster.api.remove(`${rbac}/clusterrolebindings/${name}`);
    await cluster.api.remove(`${rbac}/clusterroles/${name}`);
  };
}

describe('a chain of more than 16 invocations', () => {
  afterEach(() => {
    for (const relay of deployed().relays) relay.tap.chain = new Map();
  });

  test('evicts a pod that its budget has blocked that often, as soon as the budget allows it', async (t) => {
    if (!tapOf(t)) return;
    const { alpha, state } = deployed();
    const { cluster } = alpha;
    await behind(MAX_CHAIN - 3);
    const takeBack = await grantEviction();
    try {
      await deployed().cli('policy', 'apply', '--file', BY_EVICTION, 'alpha', '--yes');
      const node = await cluster.addNode('blocked');
      const labels = { app: 'blocked' };
      const pods = await Promise.all(
        ['blocked-1', 'blocked-2'].map((name) => cluster.addPod(node, name, { labels })),
      );
      await cluster.setBudget('blocked', pods.length, pods.length);
      const since = Date.now();
      await cluster.taint(node, { key: 'x' });
      for (const pod of pods)
        await until(
          `${pod.name} is blocked`,
          async () => (await state.record('alpha', pod))?.blocked !== undefined,
        );

      await until('that many attempts were made', () => longestChain(node) > MAX_CHAIN);
      assertUntouched(...pods);
      await cluster.setBudget('blocked', pods.length, 0);
      const allowedAt = Date.now();
      for (const pod of pods) await until(`${pod.name} is evicted`, () => pod.evictedAt, RETRIED_WITHIN_MS);
      t.diagnostic(
        `evicted within ${Date.now() - allowedAt} ms, after ${longestChain(node)} invocations in a chain`,
      );
      assert.deepEqual(await dropped(since), []);
    } finally {
      await deployed().cli('policy', 'apply', '--file', ENFORCE, 'alpha', '--yes');
      await takeBack();
    }
  });

  test('ends where the function does not allow it, as in an AWS account', async (t) => {
    if (!tapOf(t)) return;
    const { alpha, raw, queues } = deployed();
    const { cluster } = alpha;
    await behind(MAX_CHAIN);
    await raw.setLoops(EVICT, 'Terminate');
    try {
      const node = await cluster.addNode('stopped');
      const pod = await cluster.addPod(node, 'stopped');
      const since = Date.now();
      await cluster.taint(node, { key: 'x' });
      await until('the next invocation is dropped', async () => (await dropped(since)).length > 0);
      assertUntouched(pod);
      await cluster.untaint(node);
    } finally {
      await raw.setLoops(EVICT, 'Allow');
      await queues.evictionsDue.purge();
    }
  });

  test('evicts a pod once an API server that rejected writes for a long time accepts them again', async (t) => {
    if (!tapOf(t)) return;
    if (OUTAGE_MINUTES === 0) {
      t.skip(`takes ${LONG_OUTAGE_MINUTES} minutes: set OUTAGE_MINUTES`);
      return;
    }
    const { cluster, wiretap } = deployed().alpha;
    await deployed().withRelays(1);
    const node = await cluster.addNode('unwritten');
    const pod = await cluster.addPod(node, 'unwritten');
    const { carry } = wiretap;
    const since = Date.now();
    // Its relay stays connected all the time, so no reconnect triggers the waiting evictions.
    wiretap.carry = async (passage) => {
      const { request, response, forward } = passage;
      if (!['PATCH', 'DELETE'].includes(request.method)) return passOn(await forward(), response);
      const message = 'etcdserver: no leader';
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code: 500 };
      response.writeHead(500, { 'content-type': 'application/json' }).end(JSON.stringify(status));
    };
    try {
      await cluster.taint(node, { key: 'x' });
      await momentComes(since + OUTAGE_MINUTES * 60_000);
      assertUntouched(pod);
    } finally {
      wiretap.carry = carry;
    }
    const backAt = Date.now();
    await until(`${pod.name} is evicted`, () => pod.evictedAt, MAX_RETRY_MS + RETRIED_WITHIN_MS);
    t.diagnostic(
      `evicted ${Date.now() - backAt} ms after it took writes again, after ${longestChain(node)} invocations in a chain`,
    );
    for (const line of await deployed().logged('evict', since))
      if (line.includes('"eviction.retrying"')) t.diagnostic(line);
    if (OUTAGE_MINUTES >= LONG_OUTAGE_MINUTES)
      assert.ok(longestChain(node) > MAX_CHAIN, `${longestChain(node)}`);
    assert.deepEqual(await dropped(since), []);
  });
});
