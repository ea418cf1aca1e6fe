import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { DeleteTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { awsClientConfig } from '#test/aws/endpoint.ts';
import { skippedOnLocalStack } from '#test/aws/localstack.ts';
import { accountContents } from './rig/account-contents.ts';
import { deployed } from './rig/deployed-stage.ts';
import { Deployment } from './rig/deployment.ts';

const NAME = 'again';
const FAILING_APP = `node ${join(import.meta.dirname, 'rig/failing-app.ts')}`;

// The stack runs beside the service of the other tests, by another name, and with the table retained, which is the
// default.
test('deploys a stack again after a failed first deployment, and after its destruction, with its table kept', async (t) => {
  const { account, alpha } = deployed();
  if (await skippedOnLocalStack(t, account.url, 'rollback')) return;
  const deployment = new Deployment(account, { name: NAME, retainTable: 'true' });
  t.after(() => deployment.close());
  const ours = async () => (await accountContents(account.url)).filter((name) => name.startsWith(NAME));

  await assert.rejects(deployment.deploy({}, ['--app', FAILING_APP]), /ROLLBACK_COMPLETE/);
  assert.deepEqual(await ours(), []);
  await assert.rejects(deployment.deploy(), /TerminationProtection is enabled/);
  await deployment.endProtection();
  await deployment.deploy();

  const registration = ['--kubeconfig-secret', alpha.secretArn, '--context', alpha.name];
  await deployed().cliOf(NAME, 'clusters', 'add', alpha.name, ...registration);
  await deployment.destroy();
  assert.deepEqual(await ours(), [NAME]);

  await deployment.deploy({}, ['--import-existing-resources']);
  const { stdout } = await deployed().cliOf(NAME, 'clusters', 'list');
  assert.match(stdout, new RegExp(`^${alpha.name} `, 'm'));
  await deployment.destroy();
  assert.deepEqual(await ours(), [NAME]);
  await new DynamoDBClient(awsClientConfig(account.url)).send(new DeleteTableCommand({ TableName: NAME }));
});
