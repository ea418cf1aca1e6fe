import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { evictedOnTime, momentComes } from '#test/cluster/rig/on-time.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { Agent } from './rig/agent.ts';
import { deployed } from './rig/deployed-stage.ts';

test('an agent takes a cluster over from the service: it receives armed evictions, and keeps deadlines across kill -9', async (t) => {
  const { alpha, beta, state } = deployed();
  await deployed().withRelays(1);
  const agent = await Agent.open('edge-1', deployed(), beta);
  t.after(async () => {
    await agent.close();
    await deployed().served();
  });
  const before = await beta.cluster.addNode('agent-before');
  const armedBefore = await beta.cluster.addPod(before, 'agent-before', {
    tolerations: [tolerates('x', 30)],
  });
  const taintedBefore = await beta.cluster.taint(before, { key: 'x' });
  await state.scheduled('beta', armedBefore);

  await agent.takeOver();
  const takenAt = Date.now();
  await agent.start();
  const [relay] = deployed().relays;
  await until('the relay of the service leaves the cluster', async () => {
    const states = await relay?.states();
    return states?.has('alpha') && !states.has('beta');
  });

  const [mine, theirs] = [await beta.cluster.addNode('agent'), await alpha.cluster.addNode('agent')];
  const add = ({ cluster }: typeof alpha, node: string, name: string, seconds: number) =>
    cluster.addPod(node, name, { tolerations: seconds === 0 ? [] : [tolerates('x', seconds)] });
  const times = [0, 4];
  const ours = await Promise.all(times.map((seconds) => add(beta, mine, `agent-${seconds}`, seconds)));
  const others = await Promise.all(times.map((seconds) => add(alpha, theirs, `agent-${seconds}`, seconds)));
  const [inBeta, inAlpha] = [
    await beta.cluster.taint(mine, { key: 'x' }),
    await alpha.cluster.taint(theirs, { key: 'x' }),
  ];
  const late = await Promise.all([
    ...ours.map((pod, index) => evictedOnTime(pod, times[index] ?? 0, inBeta)),
    ...others.map((pod, index) => evictedOnTime(pod, times[index] ?? 0, inAlpha)),
  ]);
  t.diagnostic(`evicted ${late.join(', ')} ms after their deadlines`);
  for (const pod of ours) {
    assert.ok(pod.disruption?.beforeDeletion, 'the condition was there before the deletion');
    await until(`an Event on ${pod.name}`, () => beta.cluster.witness.taintManagerEvents(pod.name).at(0));
  }

  const node = await beta.cluster.addNode('agent-killed');
  const deadlines = [6, 18];
  const pods = await Promise.all(
    deadlines.map((seconds) => add(beta, node, `agent-killed-${seconds}`, seconds)),
  );
  const tainted = await beta.cluster.taint(node, { key: 'x' });
  for (const pod of pods) await state.scheduled('beta', pod);
  await agent.kill();
  await momentComes(tainted.seenAt + 8_000);
  assertUntouched(...pods);
  const startedAt = Date.now();
  await agent.start();
  const missedMs = await evictedOnTime(pods[0] ?? assert.fail(), 6, tainted);
  const laterMs = await evictedOnTime(pods[1] ?? assert.fail(), 18, tainted);
  t.diagnostic(
    `killed, and started ${startedAt - tainted.seenAt} ms after the taint: evicted ${missedMs} and ${laterMs} ms after the deadlines`,
  );
  const sentOnMs = await evictedOnTime(armedBefore, 30, taintedBefore);
  t.diagnostic(`what was armed before was evicted ${sentOnMs} ms after its deadline`);
  const byFunction = async () =>
    (await deployed().logged('evict', takenAt)).filter((line) => line.includes('"beta"'));
  await until('what was armed before came to evict, and was sent on', async () =>
    (await byFunction()).some((line) => line.includes('message.forwarded') && line.includes(before)),
  );
  assert.deepEqual(
    (await byFunction()).filter((line) => /"(eviction|pod)\./.test(line)),
    [],
    'evict does nothing there itself',
  );
  await until('the record says so', async () =>
    (await Promise.all(pods.map((pod) => state.ended('beta', pod)))).every(
      (end) => end?.outcome === 'evicted',
    ),
  );
});
