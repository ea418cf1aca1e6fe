import { test } from 'node:test';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { evictedOnTime, momentComes } from '#test/cluster/rig/on-time.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { deployed } from './rig/deployed-stage.ts';

test('evicts a pod whose record the table removed by its time to live, but not one whose record was removed by hand', async (t) => {
  const { account, alpha, state, queues } = deployed();
  if (!account.isLocalStack) {
    t.skip("MiniStack's table has no time to live");
    return;
  }
  const { cluster } = alpha;
  await deployed().withRelays(1);
  const [lost, removed] = await Promise.all([cluster.addNode('ttl-lost'), cluster.addNode('ttl-by-hand')]);
  const tolerations = [tolerates('x', 8)];
  const [pod, spared] = await Promise.all([
    cluster.addPod(lost, 'ttl-lost', { tolerations }),
    cluster.addPod(removed, 'ttl-by-hand', { tolerations }),
  ]);
  await queues.evictionsDue.purge();
  const tainted = await cluster.taint(lost, { key: 'x' });
  await cluster.taint(removed, { key: 'x' });
  const { dueAt } = await state.scheduled('alpha', pod);
  await state.scheduled('alpha', spared);
  await until('both timers are armed', async () => (await queues.evictionsDue.depth()).delayed > 1);
  await queues.evictionsDue.purge();

  await momentComes(dueAt + 3_000);
  assertUntouched(pod, spared);
  await state.expire('alpha', spared);
  await state.outlive('alpha', pod);
  await fetch(`${account.url}/_aws/dynamodb/expired`, { method: 'DELETE' });
  const delayMs = await evictedOnTime(pod, 8, tainted);
  t.diagnostic(`evicted ${delayMs} ms after its deadline, once the record had expired`);
  await until('the record says so', async () => (await state.ended('alpha', pod))?.outcome === 'evicted');
  assertUntouched(spared);
});
