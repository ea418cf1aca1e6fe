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

/** Commands of the guide that the account does not support. */
const without = () => (deployed().account.isLocalStack ? UNKNOWN_COMMANDS : []);

/** Applies the other tests' policy to both clusters again, after a page has applied policies. */
async function enforceAgain(): Promise<void> {
  for (const cluster of ['alpha', 'beta']) {
    await deployed().cli('policy', 'apply', '--file', ENFORCE, cluster, '--yes');
  }
}

// This file is the last, by its name: the pages' operations stay in the history that sessions show.

test("a deployment is installed, upgraded, and recovered with the guides' commands", async (t) => {
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

test('policies, stops, and holds work with the commands of their pages', async (t) => {
  await deployed().withRelays(1);
  t.after(enforceAgain);
  // The page's held objects have to exist.
  const { cluster } = deployed().alpha;
  const node = await cluster.addNode('held', [], 'eu-west-1a');
  await cluster.addPod(node, 'db-0', { owner: node, labels: { app: 'checkout' } });
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
      ['namespace shop', `namespace ${cluster.namespace}`],
      ['-n shop', `-n ${cluster.namespace}`],
    ],
  });
});

test('a bus and a chat receive evictions with the commands of the page on events', async (t) => {
  t.after(() => deployed().deployment.deploy());
  await followPage(t, 'reference/notifications.md', { suite: 'deployed', env: deployed().guideEnvironment });
});

test('access to clusters is granted and revoked with the commands of its page', async (t) => {
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
      ['ROLE_ARN', await raw.role(deployment.functionName('evict'))],
      ['CLUSTER', 'guided'],
      ['prod', 'guided'],
      ['NAME', 'guided'],
    ],
  });
});

/** Options for files that do not exist here: what a filter makes of a table, and a release. The pages' own tests have them. */
const OF_FILES = ['--request-items', '--template-file', '--recursive'];

test("the AWS CLI accepts the pages' commands for it", async () => {
  const words = Object.keys(FOLLOWED_PAGES)
    .flatMap(callsOf)
    .filter(({ program, args }) => program === 'aws' && !args.some((word) => OF_FILES.includes(word)))
    .map(({ args }) => JSON.stringify(args.map((word) => word.replace(/^file:.*/, '{}'))));
  assert.ok(words.length > 0);
  const env = { ...deployed().guideEnvironment, AWS_MAX_ATTEMPTS: '1' };
  await pMap(
    new Set(words),
    async (text) => {
      // The CLI parses and checks all arguments before it finds that nothing listens.
      const args = [...JSON.parse(text), '--endpoint-url', 'http://127.0.0.1:1'];
      await assert.rejects(
        run('aws', args, { env, withinMs: AWS_WITHIN_MS }),
        /Could not connect to the endpoint/,
      );
    },
    { concurrency: 2 },
  );
});

// This test is the last: nothing of the service is left afterwards.
test("the guide's last step leaves nothing of the service in the account", async (t) => {
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
