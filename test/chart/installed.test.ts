import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ServerLoad } from '#test/cluster/rig/server-load.ts';
import { runName, TestCluster } from '#test/cluster/rig/test-cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import { renderChart, type Values } from '../../deploy/helm.ts';
import { openAgentAccount } from './agent-account.ts';
import { kubectl } from './kubectl.ts';
import { Release } from './release.ts';

/** All values except the ServiceMonitor, whose kind the cluster does not know. */
const SERVICE: Values = {
  mode: 'service',
  flowControl: { enabled: true },
  admissionPolicy: { enabled: true, nodes: true },
  rbac: { evictionApi: true, takeover: true, userRoles: true },
  service: { policy: 'mode: enforce\nguard: { cluster: off, zone: off, customTaints: off }\n' },
};
const AGENT: Values = {
  mode: 'agent',
  flowControl: { enabled: true },
  admissionPolicy: { enabled: true, nodes: true },
  rbac: { evictionApi: true, takeover: true },
  agent: { region: 'eu-west-1', account: '111122223333', cluster: 'prod', id: 'edge-1' },
};
/**
 * The kinds of all objects that the chart installs or that the installed service creates; custom resources are deleted
 * with their definitions.
 */
const KINDS = [
  ...['customresourcedefinitions', 'clusterroles', 'clusterrolebindings'],
  ...['flowschemas', 'prioritylevelconfigurations'],
  ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
  ...['roles', 'rolebindings', 'serviceaccounts', 'configmaps', 'secrets', 'services', 'resourcequotas'],
  ...['networkpolicies', 'poddisruptionbudgets', 'deployments', 'leases'],
];
const OUR_KINDS = ['nodeevictions.taintward.dev', 'evictionrules.taintward.dev'];

let cluster: TestCluster;
let found: ReadonlySet<string>;
before(async () => {
  cluster = await TestCluster.open('KUBECONFIG', runName());
  // Other suites leave these definitions, and Helm adopts no objects that it has not created.
  kubectl(['delete', 'customresourcedefinitions', '--ignore-not-found', ...OUR_KINDS]);
  found = inventory();
});
after(() => cluster?.close());

/** Returns the existing objects of {@link KINDS}, in the test's namespace or in none. */
const inventory = (): ReadonlySet<string> =>
  new Set(inNamespace('get', KINDS.join(), '--output', 'name').split('\n').filter(Boolean));
const left = (): readonly string[] => [...inventory()].filter((name) => !found.has(name));
const inNamespace = (...args: readonly string[]) => kubectl([...args, '--namespace', cluster.namespace]);

for (const values of [SERVICE, AGENT]) {
  test(`mode ${values['mode']} is applied server-side, needs no change then, and is deleted completely`, async (t) => {
    const yaml = renderChart(values, cluster.namespace);
    const remove = () => kubectl(['delete', '--ignore-not-found', '--filename', '-'], yaml);
    t.after(remove);
    kubectl(['apply', '--server-side', '--filename', '-'], yaml);
    assert.equal(kubectl(['diff', '--server-side', '--filename', '-'], yaml), '');
    remove();
    await until('all of it is gone', () => left().length === 0);
  });
}

test('helm installs two replicas that work with the permissions of their account, and uninstalls them', async (t) => {
  const release = await Release.install({
    cluster,
    values: SERVICE,
    deployment: 'taintward',
    program: 'service',
  });
  t.after(() => release.uninstall());
  assert.match(release.notes, /kubectl get nodeevictions/);

  const { metadata, spec } = release.deployment.spec.template;
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'strictly' }, spec };
  inNamespace('label', 'namespace', cluster.namespace, 'pod-security.kubernetes.io/enforce=restricted');
  const create = ['create', '--dry-run=server', '--namespace', cluster.namespace, '--filename', '-'];
  kubectl(create, JSON.stringify(pod));
  inNamespace('label', 'namespace', cluster.namespace, 'pod-security.kubernetes.io/enforce-');

  const begun = await ServerLoad.of(cluster.connection);
  for (let replica = 0; replica < release.deployment.spec.replicas; replica++) {
    await release.start({ args: ['--namespace', cluster.namespace] });
  }
  const [leader, standby, ...others] = await release.settled('in-cluster live', 'in-cluster standby');
  assert.ok(leader && standby && others.length === 0);

  const node = await cluster.addNode('tainted');
  const early = await cluster.addPod(node, 'early');
  await cluster.taint(node, { key: 'x' });
  await until('its pod is evicted', () => early.evictedAt);

  const { code, seconds } = await leader.stop();
  assert.equal(code, 0);
  const leads = async () => (await standby.ready())?.includes('in-cluster live');
  await until('the other one leads', leads);
  const late = await cluster.addPod(node, 'late');
  await until('a pod is evicted by the other one', () => late.evictedAt);
  t.diagnostic(`told to stop, the leader was gone after ${seconds.toFixed(1)} s`);
  await standby.stop();

  assert.deepEqual(release.refused(), []);
  const load = await ServerLoad.of(cluster.connection);
  for (const schema of ['taintward', 'taintward-leader-election']) {
    assert.ok(load.dispatched(schema) > begun.dispatched(schema), `no request was one of ${schema}`);
  }

  assert.equal((await release.upgrade({ ...SERVICE, replicas: 3 })).spec.replicas, 3);
  await release.uninstall();
  const kept = ['configmap/taintward-gone-in-cluster', 'lease.coordination.k8s.io/taintward-in-cluster'];
  // Objects that the service created itself are deleted with the namespace.
  await until('all that was installed is gone', () => left().every((name) => kept.includes(name)));
});

test('helm installs an agent whose replicas follow the cluster with the permissions of their account', async (t) => {
  const account = await openAgentAccount(cluster.run);
  t.after(() => account.close());
  const release = await Release.install({
    cluster,
    values: { ...AGENT, agent: account.settings },
    deployment: 'taintward-agent',
    program: 'agent',
  });
  t.after(() => release.uninstall());
  assert.match(release.notes, /taintward clusters add prod --agent edge-1/);
  for (let replica = 0; replica < release.deployment.spec.replicas; replica++) {
    await release.start({ env: account.env });
  }
  const replicas = await release.settled('prod live', 'prod standby');
  const ends = await Promise.all(replicas.map((replica) => replica.stop()));
  assert.deepEqual(
    ends.map(({ code }) => code),
    [0, 0],
  );
  const seconds = ends.map((end) => end.seconds.toFixed(1)).join(' and ');
  t.diagnostic(`told to stop, they were gone after ${seconds} s`);
  assert.deepEqual(release.refused(), []);
});
