import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deployed } from './rig/deployed-stage.ts';

/** Nothing listens there, so this machine cannot read secrets and reaches no cluster. */
const NO_SECRETS = { AWS_ENDPOINT_URL_SECRETS_MANAGER: 'http://localhost:1' };

test('registers a cluster that the operator does not reach if evict reaches it', async () => {
  const { secretArn, name } = deployed().alpha;
  const add = ['clusters', 'add', 'seen-by-evict', '--kubeconfig-secret', secretArn, '--context', name];
  try {
    const { stdout } = await deployed().cliIn(NO_SECRETS, ...add);
    assert.match(
      stdout,
      /\nThis machine cannot verify the cluster \(.*GetSecretValue.*\), but evict reaches it \(Kubernetes v\d+\.\d+.*\) and has the required permissions/,
    );
  } finally {
    await deployed().cli('clusters', 'remove', 'seen-by-evict');
  }
});

test('registers a cluster that evict does not reach either only with --no-check', async () => {
  const { secretArn } = deployed().alpha;
  const add = ['clusters', 'add', 'nowhere', '--kubeconfig-secret', secretArn, '--context', 'nowhere'];
  await assert.rejects(
    deployed().cliIn(NO_SECRETS, ...add),
    /evict function reported: .*nowhere.* --no-check/s,
  );
  await deployed().cliIn(NO_SECRETS, ...add, '--no-check');
  await deployed().cli('clusters', 'remove', 'nowhere');
});
