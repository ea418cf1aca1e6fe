import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followPage } from '#test/transcripts/follow-page.ts';
import { accountContents } from './rig/account-contents.ts';
import { deployed, GUIDE_NAMES } from './rig/deployed-stage.ts';

// Runs last: nothing of the service is left to be tested.
test('who follows the guide to the end leaves nothing of the service in the account', async (t) => {
  const { account, state } = deployed();
  const ours = async () => (await accountContents(account.url)).filter((name) => name.includes('taintward'));
  await deployed().withRelays(0);
  assert.ok((await ours()).includes(state.tableName));
  await followPage(t, 'operations.md', {
    suite: 'deployed',
    sections: (heading) => heading === 'Uninstall',
    names: GUIDE_NAMES,
    env: deployed().guideEnvironment,
  });
  assert.deepEqual(await ours(), []);
});
