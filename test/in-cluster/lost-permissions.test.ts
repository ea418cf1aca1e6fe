import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { z } from 'zod';
import { clusterName } from '#shared/eviction/identity.ts';
import { Transport } from '#shared/kubernetes/http/transport.ts';
import { RestObjects } from '#shared/kubernetes/rest-objects.ts';
import { LEASE_GROUP, LEASES, ObjectLeases } from '#shared/state/objects/object-leases.ts';
import { Replicas } from '#test/cluster/rig/replicas.ts';
import { until } from '#test/cluster/rig/until.ts';

/** Time within which a lease contains lost access. */
const WITHIN_MS = 30_000;

let replicas: Replicas;
before(async () => {
  replicas = await Replicas.open();
});
afterEach(() => replicas.killAll());
after(() => replicas?.close());

test('a replica with permission to read alone observes, and enforces nothing until it has the others', async () => {
  const { cluster } = replicas;
  const role = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${cluster.run}-taintward-in-cluster`;
  const { rules } = z.object({ rules: z.array(z.unknown()) }).parse(await cluster.api.read(role));
  const reads = [{ apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['get', 'list', 'watch'] }];
  await cluster.api.patch(role, { rules: reads });
  const node = await cluster.addNode('observed');
  const pod = await cluster.addPod(node, 'observed');
  const observer = await replicas.startLeader({ policy: 'mode: observe\n' });
  await cluster.taint(node, { key: 'x' });
  await observer.untilPrinted('observed: would be evicted');
  await replicas.killAll();
  // The previous leader's lease expires first.
  const enforcing = { policy: 'mode: enforce\nguard: off\n' };
  const { stderr } = await (await replicas.spawn(enforcing)).exit;
  assert.match(stderr, /: delete pods, patch pods\/status\./);
  assert.equal(pod.evictedAt, undefined);
  await cluster.api.patch(role, { rules });
  await replicas.startLeader(enforcing);
  await until('the pod is evicted', () => pod.evictedAt);
});

test('the Lease of a replica whose permissions were revoked reports it within 30 s', async (t) => {
  const { cluster } = replicas;
  const transport = new Transport(cluster.connection);
  t.after(() => transport.close());
  const place = { group: LEASE_GROUP, resource: LEASES, namespace: cluster.namespace };
  const leases = new ObjectLeases(new RestObjects(transport, place));
  const faults = async () => (await leases.read(clusterName('in-cluster')))?.faults;
  await replicas.startLeader();
  await until('it reports that nothing is wrong', async () => (await faults())?.length === 0);
  const from = Date.now();
  const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
  await cluster.api.remove(`${bindings}/${cluster.run}-taintward-in-cluster`);
  const logged = await until(
    'it reports what was lost',
    async () => {
      const found = await faults();
      return found?.length === 2 && found;
    },
    WITHIN_MS,
  );
  t.diagnostic(`told after ${Date.now() - from} ms`);
  assert.deepEqual(
    logged.map(({ type, resource, status }) => [type, resource, status]),
    [
      ['list-failing', 'pods', 403],
      ['watch-failing', 'nodes', 403],
    ],
  );
});
