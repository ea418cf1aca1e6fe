import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Account, MIN_PERMISSIONS } from '#test/cluster/rig/account.ts';
import { deployed, ENFORCE } from './rig/deployed-stage.ts';

/** Nothing listens there, so this machine cannot read secrets and reaches no cluster. */
const NO_SECRETS = { AWS_ENDPOINT_URL_SECRETS_MANAGER: 'http://localhost:1' };

test('registers a cluster that the operator does not reach if evict reaches it', async () => {
  const { secretArn, name } = deployed().alpha;
  const add = ['clusters', 'add', 'seen-by-evict', '--kubeconfig-secret', secretArn, '--context', name];
  try {
    const { stdout } = await deployed().cliIn(NO_SECRETS, ...add);
    assert.match(stdout, /\nConnection and permissions of evict are verified\. /);
  } finally {
    await deployed().cli('clusters', 'remove', 'seen-by-evict');
  }
});

test('registers a cluster that evict does not reach only with --no-check', async () => {
  const { secretArn } = deployed().alpha;
  // The recorded session asks for the history of a cluster nowhere, which nobody ever added.
  const add = ['clusters', 'add', 'unreached', '--kubeconfig-secret', secretArn, '--context', 'nowhere'];
  await assert.rejects(deployed().cli(...add), /\bevict\b.*nowhere.* --no-check/s);
  await deployed().cli(...add, '--no-check');
  await deployed().cli('clusters', 'remove', 'unreached');
});

test('rejects a secret that IAM denies to evict, whose name the operator may use', async () => {
  const secretArn = await deployed().alpha.addSecret('mycorp/try', deployed().alpha.token);
  const add = ['clusters', 'add', 'denied', '--kubeconfig-secret', secretArn, '--context', 'alpha'];
  await assert.rejects(
    deployed().cli(...add),
    /:secret:mycorp\/try.*:secret:taintward\/\*.*kubeconfigSecrets/s,
  );
});

test('names what evict lacks where the relay has everything, before and after the registration', async (t) => {
  const { alpha } = deployed();
  const rules = MIN_PERMISSIONS.filter(({ resource }) => resource !== 'pods/status');
  const poor = await Account.create(alpha.cluster, 'poor-evict', rules);
  t.after(() => poor.revoke());
  const relay = await alpha.addSecret('taintward-relay/poor', alpha.token);
  const evict = await alpha.addSecret('taintward-evict/poor', poor.token);
  const secrets = ['--relay-kubeconfig-secret', relay, '--evict-kubeconfig-secret', evict];
  const add = ['clusters', 'add', 'poor', ...secrets, '--context', alpha.name];
  await assert.rejects(deployed().cli(...add), /evict lacks permissions .*: patch pods\/status\. /s);
  await deployed().cli(...add, '--no-check');
  t.after(() => deployed().cli('clusters', 'remove', 'poor', '--yes'));
  const apply = ['policy', 'apply', '--file', ENFORCE, 'poor'];
  await assert.rejects(deployed().cli(...apply), /--yes/);
  await assert.rejects(deployed().cli('doctor', 'poor'), /evict lacks permissions .*: patch pods\/status\./s);
  const { stdout } = await deployed().cli(...apply, '--yes');
  assert.match(stdout, /^Cluster poor: evict lacks permissions .*: patch pods\/status\. /);
});
