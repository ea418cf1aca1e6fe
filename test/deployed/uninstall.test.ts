import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accountContents } from './rig/account-contents.ts';
import { deployed } from './rig/deployed-stage.ts';

// Runs last: nothing of the service is left to be tested.
test('a stack that is destroyed leaves nothing of it in the account', async () => {
  const { account, deployment } = deployed();
  const ours = async () => (await accountContents(account.url)).filter((name) => name.includes('taintward'));
  await deployed().withRelays(0);
  assert.equal((await ours()).length > 0, true);
  await deployment.destroy();
  assert.deepEqual(await ours(), []);
});
