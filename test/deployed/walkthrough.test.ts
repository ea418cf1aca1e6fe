import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import pMap from 'p-map';
import { skippedOnLocalStack, UNKNOWN_COMMANDS } from '#test/aws/localstack.ts';
import { callsOf } from '#test/transcripts/dry-run.ts';
import { followPage } from '#test/transcripts/follow-page.ts';
import { FOLLOWED_PAGES } from '#test/transcripts/followed-pages.ts';
import { accountContents } from './rig/account-contents.ts';
import { run } from './rig/command.ts';
import { deployed, ENFORCE, GUIDE_NAMES } from './rig/deployed-stage.ts';

const AWS_WITHIN_MS = 30_000;
const policy = readFileSync(ENFORCE, 'utf8');

/** Commands of the guide that the account does not know. */
const without = () => (deployed().account.isLocalStack ? UNKNOWN_COMMANDS : []);

/** Has both clusters governed as the other tests want it, whatever a page applied or paused. */
async function enforceAgain(): Promise<void> {
  for (const cluster of ['alpha', 'beta']) {
    await deployed().cli('policy', 'apply', '--file', ENFORCE, cluster, '--yes');
  }
}

// The last file, by its name: what pages do stays in the history that sessions show.

test('who installs, upgrades, and recovers a deployment finds the guides true, command after command', async (t) => {
  await deployed().withRelays(1);
  t.after(enforceAgain);
  const env = deployed().guideEnvironment;
  for (const page of ['install-on-aws', 'review-history', 'upgrade', 'recover']) {
    await followPage(t, `how-to/${page}.md`, {
      suite: 'deployed',
      names: GUIDE_NAMES,
      policy,
      env,
      without: without(),
    });
  }
});

test('policies, stops and holds are as their pages say, command after command', async (t) => {
  await deployed().withRelays(1);
  t.after(enforceAgain);
  // What the page holds has to exist.
  const { cluster } = deployed().alpha;
  const node = await cluster.addNode('held');
  await cluster.addPod(node, 'db-0', { owner: node });
  const env = deployed().guideEnvironment;
  await followPage(t, 'reference/policy.md', { suite: 'deployed', names: GUIDE_NAMES, env });
  await followPage(t, 'how-to/stop-and-hold.md', {
    suite: 'deployed',
    env,
    names: [
      ...GUIDE_NAMES,
      ['shop/Deployment/checkout', `${cluster.namespace}/Node/${node}`],
      ['shop/db-0', `${cluster.namespace}/db-0`],
      ['node-17', node],
    ],
  });
});

test('a bus is told of evictions, and a chat is, as the page on events says', async (t) => {
  t.after(() => deployed().deployment.deploy());
  await followPage(t, 'reference/notifications.md', { suite: 'deployed', env: deployed().guideEnvironment });
});

test('access to clusters is given and taken as its page says', async (t) => {
  const { raw, deployment, account } = deployed();
  if (await skippedOnLocalStack(t, account.url, 'eks')) return;
  const env = deployed().guideEnvironment;
  const aws = (...args: readonly string[]) => run('aws', args, { env, withinMs: AWS_WITHIN_MS });
  const subnets = ['--resources-vpc-config', 'subnetIds=subnet-1,subnet-2'];
  await aws(
    'eks',
    'create-cluster',
    '--name',
    'guided',
    '--role-arn',
    'arn:aws:iam::000000000000:role/eks',
    ...subnets,
  );
  await followPage(t, 'how-to/grant-cluster-access.md', {
    suite: 'deployed',
    env,
    names: [
      ...GUIDE_NAMES.filter(([name]) => name !== 'prod'),
      ['YOUR_OWN_ROLE_ARN', 'arn:aws:iam::000000000000:role/mine'],
      ['RELAY_ROLE_ARN', 'arn:aws:iam::000000000000:role/relay'],
      ['EVICT_ROLE_ARN', 'arn:aws:iam::000000000000:role/evict'],
      ['ROLE_ARN', await raw.role(deployment.functionName('evict'))],
      ['EXTERNAL_ID', 'an-id'],
      ['CLUSTER', 'guided'],
      ['prod', 'guided'],
      ['NAME', 'guided'],
    ],
  });
});

test('what pages say to type to AWS is understood by its command line', async () => {
  const words = Object.keys(FOLLOWED_PAGES)
    .flatMap(callsOf)
    // What a filter makes of a table is not there to be read; the guide's own test has it made and written.
    .filter(({ program, args }) => program === 'aws' && !args.includes('--request-items'))
    .map(({ args }) => JSON.stringify(args.map((word) => word.replace(/^file:.*/, '{}'))));
  assert.ok(words.length > 0);
  const env = { ...deployed().guideEnvironment, AWS_MAX_ATTEMPTS: '1' };
  await pMap(
    new Set(words),
    async (text) => {
      // It reads and checks all of it before it finds that nobody is there.
      const args = [...JSON.parse(text), '--endpoint-url', 'http://127.0.0.1:1'];
      await assert.rejects(
        run('aws', args, { env, withinMs: AWS_WITHIN_MS }),
        /Could not connect to the endpoint/,
      );
    },
    { concurrency: 2 },
  );
});

// The last: nothing of the service is left to be tested.
test('who follows the guide to the end leaves nothing of the service in the account', async (t) => {
  const { account, state } = deployed();
  const ours = async () => (await accountContents(account.url)).filter((name) => name.includes('taintward'));
  await deployed().withRelays(0);
  assert.ok((await ours()).includes(state.tableName));
  await followPage(t, 'how-to/uninstall.md', {
    suite: 'deployed',
    sections: (heading) => heading === 'Uninstall',
    names: GUIDE_NAMES,
    env: deployed().guideEnvironment,
    without: without(),
  });
  assert.deepEqual(await ours(), []);
});
