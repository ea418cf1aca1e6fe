import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deployed } from './rig/deployed-stage.ts';

/** Nothing listens there: who is told of it cannot read secrets, so this machine reaches no cluster. */
const NO_SECRETS = { AWS_ENDPOINT_URL_SECRETS_MANAGER: 'http://localhost:1' };

test('a cluster that the operator does not reach is registered on the word of evict', async () => {
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

test('a cluster that evict does not reach, either, is registered only by who says so', async () => {
  const { secretArn } = deployed().alpha;
  const add = ['clusters', 'add', 'nowhere', '--kubeconfig-secret', secretArn, '--context', 'nowhere'];
  await assert.rejects(deployed().cliIn(NO_SECRETS, ...add), /evict said: .*nowhere.* --no-check/s);
  await deployed().cliIn(NO_SECRETS, ...add, '--no-check');
  await deployed().cli('clusters', 'remove', 'nowhere');
});
