import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { kubeconfigText } from '#test/cluster/rig/kubeconfig.ts';
import { CONTEXT } from '#test/cluster/rig/replicas.ts';
import { ServerLoad } from '#test/cluster/rig/server-load.ts';
import { runName, TestCluster } from '#test/cluster/rig/test-cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import { Wiretap } from '#test/cluster/rig/wiretap.ts';
import { chartArguments, helm, renderChart, type Values } from '../../deploy/helm.ts';
import { ContainerProcess, Deployment } from './container.ts';
import { kubectl } from './kubectl.ts';

/** The right to it comes with a takeover: who is refused knows that there is none. */
const TAKEOVER = '/apis/taintward.dev/v1/takeovers/live';
const SOON_MS = 15_000;
const READY_WITHIN_MS = 60_000;
/** All but the ServiceMonitor, whose kind the cluster does not know. */
const SERVICE: Values = {
  mode: 'service',
  flowControl: { enabled: true },
  rights: { evictionApi: true, takeover: true, people: true },
  service: { policy: 'mode: enforce\nguard: { cluster: off, zone: off, people: off }\n' },
};
const AGENT: Values = {
  mode: 'agent',
  flowControl: { enabled: true },
  rights: { evictionApi: true, takeover: true },
  agent: { region: 'eu-west-1', account: '111122223333', cluster: 'prod', id: 'edge-1' },
};
/** Of each kind that is installed or made by what is installed; kinds of our own go with their definitions. */
const KINDS = [
  ...[
    'customresourcedefinitions',
    'clusterroles',
    'clusterrolebindings',
    'flowschemas',
    'prioritylevelconfigurations',
  ],
  ...[
    'roles',
    'rolebindings',
    'serviceaccounts',
    'configmaps',
    'secrets',
    'services',
    'resourcequotas',
    'leases',
  ],
  ...['networkpolicies', 'poddisruptionbudgets', 'deployments'],
];
const OUR_KINDS = ['nodeevictions.taintward.dev', 'evictionrules.taintward.dev'];

let cluster: TestCluster;
let dir: string;
let found: ReadonlySet<string>;
before(async () => {
  cluster = await TestCluster.open('KUBECONFIG', runName());
  dir = mkdtempSync(join(tmpdir(), 'taintward-chart-'));
  // Other suites leave them, and Helm takes nothing over that it has not made.
  kubectl(['delete', 'customresourcedefinitions', '--ignore-not-found', ...OUR_KINDS]);
  found = inventory();
});
after(async () => {
  await cluster?.close();
  if (dir) rmSync(dir, { recursive: true, force: true });
});

/** What there is of {@link KINDS}, in our namespace or in none. */
const inventory = (): ReadonlySet<string> =>
  new Set(
    kubectl(['get', KINDS.join(), '--namespace', cluster.namespace, '--output', 'name'])
      .split('\n')
      .filter(Boolean),
  );
const left = (): readonly string[] => [...inventory()].filter((name) => !found.has(name));
const inNamespace = (...args: readonly string[]) => [...args, '--namespace', cluster.namespace];

for (const values of [SERVICE, AGENT]) {
  test(`mode ${values['mode']} is applied server-side, needs no change then, and is deleted without a rest`, async (t) => {
    const yaml = renderChart(values, cluster.namespace);
    const remove = () => kubectl(['delete', '--ignore-not-found', '--filename', '-'], yaml);
    t.after(remove);
    kubectl(['apply', '--server-side', '--filename', '-'], yaml);
    assert.equal(kubectl(['diff', '--server-side', '--filename', '-'], yaml), '');
    remove();
    await until('all of it is gone', SOON_MS, () => left().length === 0);
  });
}

test('helm installs, two replicas do their work with the rights of their account, and helm uninstalls', async (t) => {
  const { namespace, api } = cluster;
  const release = (command: string, values: Values) =>
    helm([command, 'taintward', ...chartArguments(namespace)], JSON.stringify(values));
  const uninstall = () => helm(inNamespace('uninstall', 'taintward', '--ignore-not-found'));
  t.after(uninstall);
  assert.match(release('install', SERVICE), /kubectl get nodeevictions/);

  const deployment = Deployment.parse(
    await api.read(`/apis/apps/v1/namespaces/${namespace}/deployments/taintward`),
  );
  const { metadata, spec } = deployment.spec.template;
  const label = (value: string) =>
    kubectl(['label', 'namespace', namespace, `pod-security.kubernetes.io/enforce${value}`]);
  label('=restricted');
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'strictly' }, spec };
  kubectl(inNamespace('create', '--dry-run=server', '--filename', '-'), JSON.stringify(pod));
  label('-');

  const token = kubectl(inNamespace('create', 'token', spec.serviceAccountName)).trim();
  const wiretap = await Wiretap.open(cluster.connection);
  t.after(() => wiretap.close());
  const kubeconfig = join(dir, 'kubeconfig');
  const access = await kubeconfigText([{ context: CONTEXT, connection: wiretap.connection, token }]);
  writeFileSync(kubeconfig, access, { mode: 0o600 });
  const begun = await ServerLoad.of(cluster.connection);

  // Each pod has an address of its own; others on this machine may serve the same port.
  const network = `${randomInt(1, 255)}.${randomInt(1, 255)}`;
  const start = async (last: number) => {
    const replica = await ContainerProcess.start({
      deployment,
      podIp: `127.${network}.${last}`,
      dataOf: async (name) =>
        z
          .object({ data: z.record(z.string(), z.string()) })
          .parse(await api.read(`/api/v1/namespaces/${namespace}/configmaps/${name}`)).data,
      args: ['--context', CONTEXT, '--kubeconfig', kubeconfig, '--namespace', namespace],
    });
    t.after(() => replica.close());
    return replica;
  };
  const isReady = (replica: ContainerProcess, state: string, withinMs: number) =>
    until(`a replica says ${state}`, withinMs, async () =>
      (await replica.ready())?.includes(`in-cluster ${state}`),
    );
  const [first, second] = [await start(1), await start(2)];
  assert.equal(deployment.spec.replicas, 2);
  const leader = await until('one leads', READY_WITHIN_MS, async () => {
    const states = await Promise.all([first, second].map((each) => each.ready()));
    return [first, second].find((_, index) => states[index]?.includes('in-cluster live'));
  });
  const standby = leader === first ? second : first;
  await isReady(standby, 'standby', READY_WITHIN_MS);

  const node = await cluster.addNode('tainted');
  const early = await cluster.addPod(node, 'early');
  await cluster.taint(node, { key: 'x' });
  await until('its pod is evicted', SOON_MS, () => early.evictedAt);

  const { code, seconds } = await leader.stop();
  assert.equal(code, 0);
  await isReady(standby, 'live', SOON_MS);
  const late = await cluster.addPod(node, 'late');
  await until('a pod is evicted by the other one', SOON_MS, () => late.evictedAt);
  t.diagnostic(`told to stop, the leader was gone after ${seconds.toFixed(1)} s`);
  await standby.stop();

  const refused = wiretap.requests.filter(
    ({ status, path }) => (status === 401 || status === 403) && path !== TAKEOVER,
  );
  assert.deepEqual(refused, []);
  const load = await ServerLoad.of(cluster.connection);
  for (const schema of ['taintward', 'taintward-leader-election']) {
    assert.ok(load.dispatched(schema) > begun.dispatched(schema), `no request was one of ${schema}`);
  }

  release('upgrade', { ...SERVICE, replicas: 3 });
  const upgraded = Deployment.parse(
    await api.read(`/apis/apps/v1/namespaces/${namespace}/deployments/taintward`),
  );
  assert.equal(upgraded.spec.replicas, 3);

  uninstall();
  const kept = ['configmap/taintward-gone-in-cluster', 'lease.coordination.k8s.io/taintward-in-cluster'];
  // What it made itself, the namespace takes along.
  await until('all that was installed is gone', SOON_MS, () => left().every((name) => kept.includes(name)));
});
