import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { evictedOnTime } from '#test/cluster/rig/on-time.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { accountContents } from '#test/deployed/rig/account-contents.ts';
import { deployed } from '#test/deployed/rig/deployed-stage.ts';

/*
 * `npm run test:deployed` in short, on the LocalStack in AWS_ENDPOINT_URL: the stack is deployed before the first test,
 * with two clusters, and destroyed by the last one.
 */

test('the stack is deployed to LocalStack', () => {
  assert.equal(deployed().account.isLocalStack, true, 'AWS_ENDPOINT_URL names no LocalStack');
});

test('a taint evicts pods only in the tainted one of two clusters with the same nodes and pods, immediately and at their deadlines', async (t) => {
  const { alpha, beta } = deployed();
  await deployed().withRelays(1);
  const [node, same] = await Promise.all([alpha, beta].map(({ cluster }) => cluster.addNode('short')));
  assert.equal(node, same);
  assert.ok(node);
  const add = ({ cluster }: typeof alpha, name: string, seconds: number) =>
    cluster.addPod(node, name, { tolerations: seconds === 0 ? [] : [tolerates('x', seconds)] });
  const times = [0, 4];
  const inAlpha = await Promise.all(times.map((seconds) => add(alpha, `short-${seconds}`, seconds)));
  const inBeta = await Promise.all(times.map((seconds) => add(beta, `short-${seconds}`, seconds)));

  const late: number[] = [];
  for (const [{ cluster }, pods, others] of [
    [alpha, inAlpha, inBeta] as const,
    [beta, inBeta, []] as const,
  ]) {
    const tainted = await cluster.taint(node, { key: 'x' });
    for (const [index, pod] of pods.entries())
      late.push(await evictedOnTime(pod, times[index] ?? 0, tainted));
    assertUntouched(...others);
  }
  t.diagnostic(`evicted ${late.join(', ')} ms after their deadlines`);
});

test('an unreadable delta is dead-lettered with the reason, and other deltas of its cluster are applied', async () => {
  const { alpha, queues } = deployed();
  await deployed().withRelays(1);
  await queues.nodeDeltas.send('{"v":1,"kind":"node","cluster":"alpha"}', { group: 'poison', id: 'poison' });
  const letter = await until('the dead letter', () => queues.nodeDeltasDead.peek());
  assert.match(letter.MessageAttributes?.['reason']?.StringValue ?? '', /^delta message rejected: node: /);
  const node = await alpha.cluster.addNode('short-poisoned');
  const pod = await alpha.cluster.addPod(node, 'short-poisoned');
  await evictedOnTime(pod, 0, await alpha.cluster.taint(node, { key: 'x' }));
});

// At AWS the table stays; LocalStack does not support RetainExceptOnCreate.
test('the destroyed stack leaves nothing', async () => {
  const { account, deployment } = deployed();
  await deployed().withRelays(0);
  await deployment.destroy();
  const ours = (await accountContents(account.url)).filter((name) => name.includes('taintward'));
  assert.deepEqual(ours, []);
});
