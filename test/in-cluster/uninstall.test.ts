import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { currentContext, readKubeconfig } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { endNamespace, objectsContaining } from '#test/cluster/rig/inventory.ts';
import { kubeconfigText } from '#test/cluster/rig/kubeconfig.ts';
import { CONTEXT, tokenOf } from '#test/cluster/rig/replicas.ts';
import { ServiceProcess } from '#test/cluster/rig/service-process.ts';
import { runName, TestCluster } from '#test/cluster/rig/test-cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import { taintward } from '#test/transcripts/transcript.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMESPACE = 'taintward';
const KINDS = ['nodeevictions.taintward.dev', 'evictionrules.taintward.dev'];
const MORE = [
  ...['admission-policy.yaml', 'admission-policy-nodes.yaml'],
  ...['eviction-api.yaml', 'flow-control.yaml', 'operators.yaml', 'replicas.yaml', 'takeover.yaml'],
].flatMap((file) => ['-f', `deploy/in-cluster/${file}`]);

const kubectl = (...args: readonly string[]): string =>
  execFileSync('kubectl', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Runs `taintward takeover` on the cluster of `KUBECONFIG`, as its user. */
async function takeover(verb: string, ...args: readonly string[]): Promise<void> {
  const context = currentContext(readKubeconfig(process.env['KUBECONFIG']));
  const { err, code } = await taintward('takeover', verb, '--context', context, ...args);
  assert.equal(code, 0, err);
}

test("the guide's uninstallation removes every installed and stored object", async (t) => {
  const cluster = await TestCluster.open('KUBECONFIG', runName());
  const ending: (() => Promise<unknown>)[] = [() => cluster.close()];
  t.after(async () => {
    for (const end of ending) await end().catch((error: unknown) => t.diagnostic(String(error)));
  });
  const { api } = cluster;
  const node = await cluster.addNode('removed');
  const evicted = await cluster.addPod(node, 'evicted');
  // Kinds that other tests of this server needed stay there; the guide removes them all.
  const ours = (objects: ReadonlySet<string>) => [...objects].filter((each) => !before.has(each));
  const before = await objectsContaining('taintward', api);
  assert.ok(
    !before.has(`namespaces /${NAMESPACE}`),
    `The cluster has a namespace ${NAMESPACE}: name another.`,
  );

  ending.unshift(() => remove(cluster));
  kubectl('apply', '-k', 'deploy/in-cluster');
  kubectl('wait', '--for=condition=Established', 'crd', ...KINDS);
  kubectl('apply', ...MORE);
  const dir = mkdtempSync(join(tmpdir(), 'taintward-removed-'));
  ending.push(async () => rmSync(dir, { recursive: true }));
  const replica = await startReplica(cluster, dir);
  ending.unshift(() => replica.kill());
  await cluster.taint(node, { key: 'x' });
  await until('the pod is evicted', () => evicted.evictedAt);
  await takeover('apply');
  const installed = ours(await objectsContaining('taintward', api));
  for (const kept of [
    `nodeevictions ${NAMESPACE}/${node}`,
    `leases ${NAMESPACE}/taintward-in-cluster`,
    'takeovers /live',
    'mutatingadmissionpolicies /taintward-takeover-nodes',
    'clusterrolebindings /taintward-in-cluster-takeover',
  ])
    assert.ok(installed.includes(kept), `${kept} is not among ${installed.join(', ')}`);

  await replica.stop();
  await remove(cluster);
  await until('nothing of it is left', async () => {
    const left = ours(await objectsContaining('taintward', api));
    if (left.length > 0) t.diagnostic(`left so far: ${left.join(', ')}`);
    return left.length === 0;
  });
  t.diagnostic(`${installed.length} objects were there`);
});

/** Runs the guide's commands. */
async function remove({ api }: TestCluster): Promise<void> {
  await takeover('release');
  const alike = ['--ignore-not-found', '--wait=false'];
  kubectl('delete', ...alike, ...MORE);
  kubectl('delete', ...alike, '-k', 'deploy/in-cluster');
  await endNamespace(NAMESPACE, api);
}

/** Starts a replica in the namespace of the installation, with its own account, and waits until it leads. */
async function startReplica({ connection, api }: TestCluster, dir: string): Promise<ServiceProcess> {
  const kubeconfig = join(dir, 'kubeconfig');
  const token = await tokenOf('taintward', { api, namespace: NAMESPACE });
  writeFileSync(kubeconfig, await kubeconfigText([{ context: CONTEXT, connection, token }]), { mode: 0o600 });
  const replica = await ServiceProcess.spawn({ kubeconfig, contexts: [CONTEXT], inCluster: NAMESPACE });
  await replica.untilPrinted('watching');
  return replica;
}
