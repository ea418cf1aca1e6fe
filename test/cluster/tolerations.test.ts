import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taintward } from '#test/transcripts/transcript.ts';
import { Account } from './rig/account.ts';
import { fileStage } from './rig/file-stage.ts';
import { kubeconfigText } from './rig/kubeconfig.ts';
import { CONTEXT } from './rig/stage.ts';

const stage = fileStage('bare');

interface Tolerant {
  readonly tolerations?: readonly Readonly<Record<string, unknown>>[];
}

test('taintward tolerations changes a template and a running pod of a real API server, and nothing without --apply', async () => {
  const { cluster } = stage();
  const service = await stage().start();
  const { token } = await Account.create(cluster, 'owner', [
    { resource: 'nodes', verbs: ['get', 'list'] },
    { resource: 'pods', verbs: ['get', 'list', 'patch'] },
    { resource: 'deployments', group: 'apps', verbs: ['get', 'list', 'patch'] },
    { resource: 'replicasets', group: 'apps', verbs: ['get', 'list'] },
  ]);
  const kubeconfig = stage().write(
    'operator.kubeconfig',
    await kubeconfigText([{ context: CONTEXT, connection: cluster.connection, token }]),
  );
  const change = async (target: string, ...args: readonly string[]) => {
    const { code, out, err } = await taintward(
      ...['tolerations', `${cluster.namespace}/${target}`, '--state-dir', service.stateDir],
      ...['--context', CONTEXT, '--kubeconfig', kubeconfig, ...args],
    );
    return { code, text: `${out}${err}` };
  };
  const deployments = `/apis/apps/v1/namespaces/${cluster.namespace}/deployments`;
  const labels = { app: 'web' };
  const containers = [{ name: 'c', image: 'registry.k8s.io/pause:3.10' }];
  await cluster.api.create(deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  });
  const template = async () => {
    const found = await cluster.api.read(`${deployments}/web`);
    return (found as { readonly spec: { readonly template: { readonly spec: Tolerant } } }).spec.template
      .spec;
  };
  const gpu = ['--set', 'key=gpu,operator=Exists,effect=NoExecute,seconds=300'];
  const wanted = { key: 'gpu', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 };

  const previewed = await change('Deployment/web', ...gpu);
  assert.equal(previewed.code, 0, previewed.text);
  assert.equal((await template()).tolerations, undefined);
  const changed = await change('Deployment/web', ...gpu, '--apply', '--yes');
  assert.equal(changed.code, 0, changed.text);
  assert.deepEqual((await template()).tolerations, [wanted]);
  const wrong = await change('Deployment/web', '--set', 'operator=Exists,value=x', '--apply', '--yes');
  assert.notEqual(wrong.code, 0);
  assert.deepEqual((await template()).tolerations, [wanted]);

  const pod = await cluster.addPod(await cluster.addNode('tolerant'), 'tolerant');
  const added = await change(pod.name, '--pods', ...gpu, '--apply', '--yes');
  assert.equal(added.code, 0, added.text);
  const { spec } = (await cluster.api.read(cluster.podPath(pod.name))) as { readonly spec: Tolerant };
  assert.deepEqual(spec.tolerations?.[0], wanted);
});
