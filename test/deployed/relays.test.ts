import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { skippedOnLocalStack } from '#test/aws/localstack.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { evictedOnTime } from '#test/cluster/rig/on-time.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { billFile } from '../../cdk/bundle-image.ts';
import { deployed } from './rig/deployed-stage.ts';
import { printedLaunch } from './rig/relay-process.ts';

/** Starts a relay that holds both clusters, and a standby. */
async function holderAndStandby() {
  const [holder] = await deployed().withRelays(1);
  assert.ok(holder);
  const standby = await deployed().startRelay();
  return { holder, standby };
}

test('a relay of the stack passes its health check, cannot write files, and has a bill of materials', async (t) => {
  if (await skippedOnLocalStack(t, deployed().account.url, 'ecs')) return;
  const [relay] = await deployed().withRelays(1);
  assert.ok(relay);
  assert.equal(await relay.isHealthy(), true);
  assert.equal(await relay.canWrite(), false);
  const bill = JSON.parse(readFileSync(join(relay.folder, billFile('relay')), 'utf8'));
  assert.equal(bill.bomFormat, 'CycloneDX');
});

test('a relay of your own runs with the command that the stack prints, in a stack without relays', async (t) => {
  const { deployment } = deployed();
  t.after(() => deployment.deploy());
  await deployed().withRelays(0);
  await deployment.deploy({ relay: 'external' });
  await deployed().startRelay(printedLaunch(deployment.output('RelayCommand')));
  await deployed().served();
  await deployed().withRelays(0);
});

test('a standby takes over the clusters of a killed relay, and evictions proceed', async (t) => {
  const { alpha, beta } = deployed();
  const { holder, standby } = await holderAndStandby();
  const node = await alpha.cluster.addNode('killed');
  const [timed, later] = await Promise.all([
    alpha.cluster.addPod(node, 'killed-timed', { tolerations: [tolerates('x', 8)] }),
    beta.cluster.addNode('killed').then((other) => beta.cluster.addPod(other, 'killed-later')),
  ]);
  const tainted = await alpha.cluster.taint(node, { key: 'x' });
  await deployed().state.scheduled('alpha', timed);

  await deployed().killRelay(holder);
  const killedAt = Date.now();
  const seen = await beta.cluster.taint(later.node, { key: 'x' });
  const delayMs = await evictedOnTime(timed, 8, tainted);
  const takenOver = await Promise.all(
    ['alpha', 'beta'].map((name) =>
      until(`${name} is taken over`, () => standby.logged('relay.lease-acquired', name, killedAt)),
    ),
  );
  const afterMs = takenOver.map(({ at }) => at - killedAt);
  t.diagnostic(`taken over ${afterMs.join(', ')} ms after the kill; evicted meanwhile ${delayMs} ms late`);
  await evictedOnTime(later, 0, seen);
});

test('a relay that is suspended, loses its leases, and resumes is fenced off: its late deltas change nothing', async (context) => {
  const { alpha, state, queues } = deployed();
  const { cluster } = alpha;
  const { holder, standby } = await holderAndStandby();
  context.after(() => holder.resume());
  const node = await cluster.addNode('fenced');
  const [spared, fence] = await Promise.all([
    cluster.addPod(node, 'fenced-spared', { tolerations: [tolerates('x', 3600)] }),
    cluster.addNode('fence').then((other) => cluster.addPod(other, 'fence')),
  ]);
  await cluster.taint(node, { key: 'x' });
  await state.scheduled('alpha', spared);

  // The old relay has sent the delta for the pod, but the delta is still in transit when the relay is suspended.
  const late = holder.tap.hold(
    ({ operation, body }) => operation === 'SendMessageBatch' && body.includes(node),
  );
  await cluster.taint(node, { key: 'now' });
  const logged = await late.first();
  holder.pause();
  await cluster.untaint(node, 'now');
  await until('the other relay follows the cluster', () => standby.logged('relay.synced', 'alpha'));
  const before = await until('the node is the new relay’s', async () => {
    const partition = await state.partition('alpha', node);
    const { epoch } = await state.lease('alpha');
    return partition.node?.version.epoch === epoch && partition;
  });

  const releasedAt = Date.now();
  late.release();
  await until('the late delta is in the queue', () => logged.status === 200);
  await queues.nodeDeltas.idle();
  assert.notDeepEqual(
    await deployed().invocations('node-delta', releasedAt),
    [],
    'the late delta was handled',
  );
  assert.deepEqual(await state.partition('alpha', node), before);

  holder.resume();
  await until('it knows that it lost the cluster', () => holder.logged('relay.lease-lost', 'alpha'));
  await Promise.all([queues.nodeDeltas.idle(), queues.podDeltas.idle()]);
  assert.deepEqual(await state.partition('alpha', node), before);
  assertUntouched(spared);
  await until('it stands by', async () => (await holder.states()).get('alpha') === 'standby');

  const tainted = await cluster.taint(fence.node, { key: 'x' });
  await evictedOnTime(fence, 0, tainted);
});

test('a removed cluster is left alone, and managed again once it is added', async (t) => {
  const { beta } = deployed();
  const { cluster } = beta;
  const [relay] = await deployed().withRelays(1);
  assert.ok(relay);
  const node = await cluster.addNode('removed');
  const pod = await cluster.addPod(node, 'removed');

  await deployed().unregister(beta);
  const removedAt = Date.now();
  await until('the relay lets go', async () => !(await relay.states()).has('beta'));
  const letGoMs = Date.now() - removedAt;
  const tainted = await cluster.taint(node, { key: 'x' });

  assertUntouched(pod);
  await deployed().register(beta);
  const addedAt = Date.now();
  await until('the pod goes', () => pod.evictedAt);
  t.diagnostic(`let go after ${letGoMs} ms, managed again after ${Date.now() - addedAt} ms`);
  assert.ok(tainted.requestedAt < addedAt);
});
