import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeDue } from '#shared/aws/due-message.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { evictedOnTime, momentComes } from '#test/cluster/rig/on-time.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { deployed } from './rig/deployed-stage.ts';
import { refOf } from './rig/stored-state.ts';

const OUTAGE_MS = 8_000;

test('dead-letters an unreadable delta immediately, with the reason', async () => {
  const { queues } = deployed();
  await queues.nodeDeltas.send('{"v":1,"kind":"node","cluster":"alpha"}', { group: 'poison', id: 'poison' });
  const letter = await until('the dead letter', () => queues.nodeDeltasDead.peek());
  // LocalStack parses the JSON of messages, and serializes it again as Python does.
  assert.deepEqual(JSON.parse(letter.Body ?? ''), { v: 1, kind: 'node', cluster: 'alpha' });
  assert.match(letter.MessageAttributes?.['reason']?.StringValue ?? '', /^delta message rejected: node: /);
  await queues.nodeDeltasDead.purge();
});

test('dead-letters a delta that cannot be applied while other nodes proceed, and applies it once redriven', async (t) => {
  const { alpha, state, queues } = deployed();
  const { cluster } = alpha;
  await deployed().withRelays(1);
  const [spoilt, sound] = await Promise.all([cluster.addNode('spoilt'), cluster.addNode('sound')]);
  const [held, goes] = await Promise.all([
    cluster.addPod(spoilt, 'held-up'),
    cluster.addPod(sound, 'goes-on'),
  ]);
  await state.spoilNode('alpha', spoilt);

  await queues.nodeDeltas.givingUpAfter(2, async () => {
    await cluster.taint(spoilt, { key: 'x' });
    const tainted = await cluster.taint(sound, { key: 'x' });
    await evictedOnTime(goes, 0, tainted);
    const letter = await until('the dead letter', () => queues.nodeDeltasDead.peek());
    assert.match(letter.Body ?? '', new RegExp(spoilt));
  });
  assertUntouched(held);

  await state.forgetNode('alpha', spoilt);
  t.diagnostic(`${await queues.nodeDeltasDead.moveTo(queues.nodeDeltas)} dead letters redriven`);
  await until('the pod goes', () => held.evictedAt);
});

test('evicts a pod when the dead letter of its failed eviction is redriven, and evicts nothing for an old dead letter', async () => {
  const { alpha, state, queues } = deployed();
  const { cluster } = alpha;
  await deployed().withRelays(1);
  const [node, other] = await Promise.all([cluster.addNode('given-up'), cluster.addNode('long-over')]);
  const tolerations = [tolerates('x', 8)];
  const [pod, spared] = await Promise.all([
    cluster.addPod(node, 'given-up', { tolerations }),
    cluster.addPod(other, 'long-over', { tolerations }),
  ]);
  await cluster.taint(other, { key: 'x' });
  const old = await state.scheduled('alpha', spared);
  await cluster.untaint(other);
  await until(
    'the other is canceled',
    async () => (await state.ended('alpha', spared))?.outcome === 'canceled',
  );
  await queues.evictionsDue.purge();
  const tainted = await cluster.taint(node, { key: 'x' });
  const record = await state.scheduled('alpha', pod);
  // Evictions fail after four days; here the timer is removed, and its message is put where it would have ended.
  await until('its timer is armed', async () => (await queues.evictionsDue.depth()).delayed > 0);
  await queues.evictionsDue.purge();
  await queues.evictionsDueDead.send(encodeDue({ ...refOf('alpha', node), at: record.dueAt }));
  await queues.evictionsDueDead.send(encodeDue({ ...refOf('alpha', other), at: old.dueAt }));
  await momentComes(record.dueAt + 2_000);
  assertUntouched(pod);

  assert.equal(await queues.evictionsDueDead.moveTo(queues.evictionsDue), 2);
  await evictedOnTime(pod, 8, tainted);
  await queues.evictionsDue.idle();
  assertUntouched(spared);
});

test('loses nothing while an API server is unreachable, serves the other cluster, and evicts due pods on its return', async (t) => {
  const { alpha, beta, state } = deployed();
  const { cluster, wiretap } = alpha;
  await deployed().withRelays(1);
  const names = ['due-in-outage', 'untainted-in-outage', 'tainted-in-outage'];
  const [due, untainted, tainted] = await Promise.all(names.map((name) => cluster.addNode(name)));
  const elsewhere = await beta.cluster.addNode('elsewhere');
  assert.ok(due && untainted && tainted);
  const tolerations = [tolerates('x', 6)];
  const [overdue, saved, late, unconcerned] = await Promise.all([
    cluster.addPod(due, 'overdue', { tolerations }),
    cluster.addPod(untainted, 'saved-in-outage', { tolerations }),
    cluster.addPod(tainted, 'late'),
    beta.cluster.addPod(elsewhere, 'unconcerned'),
  ]);
  await Promise.all([due, untainted].map((node) => cluster.taint(node, { key: 'x' })));
  for (const pod of [overdue, saved]) await state.scheduled('alpha', pod);

  await wiretap.cut();
  const cutAt = Date.now();
  await cluster.untaint(untainted);
  await cluster.taint(tainted, { key: 'x' });
  const there = await beta.cluster.taint(elsewhere, { key: 'x' });
  await evictedOnTime(unconcerned, 0, there);
  await momentComes(cutAt + OUTAGE_MS);
  assertUntouched(overdue, saved, late);
  await wiretap.mend();
  const backAt = Date.now();

  const returns = await Promise.all(
    [overdue, late].map(async (pod) => (await until(`${pod.name} goes`, () => pod.evictedAt)) - backAt),
  );
  t.diagnostic(`evicted ${returns.join(', ')} ms after the API server came back`);
  assertUntouched(saved);
});
