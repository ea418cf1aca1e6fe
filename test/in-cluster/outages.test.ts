import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { assertReportedOnce, assertUntouched } from '#test/cluster/rig/deadline.ts';
import { evictedOnTime, momentComes } from '#test/cluster/rig/on-time.ts';
import { Replicas } from '#test/cluster/rig/replicas.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { Wiretap } from '#test/cluster/rig/wiretap.ts';

/** Three times as long as a lease lasts. */
const OUTAGE_MS = 30_000;

let replicas: Replicas;
before(async () => {
  replicas = await Replicas.open();
});
afterEach(() => replicas.killAll());
after(() => replicas?.close());

/** Creates pods on a node of their own that are due `times` seconds after its taint `x`. */
async function podsOn(name: string, times: readonly number[]) {
  const { cluster } = replicas;
  const node = await cluster.addNode(name);
  const pods = await Promise.all(
    times.map((seconds) =>
      cluster.addPod(node, `${name}-${seconds}`, {
        tolerations: [tolerates('x', seconds)],
        comesBack: true,
      }),
    ),
  );
  return { node, pods };
}

test('the standby leads within 15 s after the leader is killed, and keeps every deadline', async (t) => {
  const times = [24, 27, 30];
  const { node, pods } = await podsOn('killed', times);
  const leader = await replicas.startLeader();
  const standby = await replicas.start();
  const tainted = await replicas.cluster.taint(node, { key: 'x' });
  for (const pod of pods) await leader.untilPrinted(node, pod.name, 'eviction at');
  await leader.kill();
  const killedAt = Date.now();
  await standby.ready();
  const at = Date.now();
  const late = await Promise.all(pods.map((pod, index) => evictedOnTime(pod, times[index] ?? 0, tainted)));
  assertReportedOnce(replicas.cluster.witness, ...pods);
  t.diagnostic(`led after ${at - killedAt} ms; evicted ${late.join(', ')} ms after the deadlines`);
});

test('a suspended leader that resumes after another one has led evicts nothing and ends', async (t) => {
  const { cluster } = replicas;
  const wiretap = await Wiretap.open(cluster.connection);
  t.after(() => wiretap.close());
  const { node, pods } = await podsOn('frozen', [20, 32]);
  const [first, second] = pods;
  assert.ok(first && second);
  const leader = await replicas.startLeader({ connection: wiretap.connection });
  const standby = await replicas.start();
  const tainted = await cluster.taint(node, { key: 'x' });
  for (const pod of pods) await leader.untilPrinted(node, pod.name, 'eviction at');
  const events = () => wiretap.requests.filter(({ path }) => path.endsWith('/events'));
  await until('its Events are posted', () => events().length >= pods.length);
  leader.pause();
  await standby.ready();
  await evictedOnTime(first, 20, tainted);
  // Now no replica evicts, and the suspended leader has due pods.
  await standby.kill();
  const dueAt = tainted.seenAt + 32_000;
  await momentComes(dueAt);
  const requests = wiretap.requests.length;
  leader.resume();
  const { code } = await leader.exit;
  assert.equal(code, 1);
  // While it ends, it may check its permissions, and record in history the removal of evicted pods: neither changes
  // pods.
  const harmless = /\/selfsubject\w+reviews|taintward-gone-/;
  const changes = wiretap.requests
    .slice(requests)
    .filter(({ method, path, body }) => method !== 'GET' && !harmless.test(path + body));
  assert.deepEqual(
    changes.map(({ method, path }) => `${method} ${path}`),
    [],
  );
  assertUntouched(second);
  await replicas.start();
  await until('the next leader evicts it', () => second.evictedAt);
});

test('evicts nothing early or twice, and loses nothing, after all replicas were down for half a minute', async (t) => {
  const { cluster } = replicas;
  const times = [10, 25, 50];
  const { node, pods } = await podsOn('gone', times);
  const leader = await replicas.startLeader();
  const tainted = await cluster.taint(node, { key: 'x' });
  for (const pod of pods) await leader.untilPrinted(node, pod.name, 'eviction at');
  await leader.kill();
  await momentComes(tainted.seenAt + OUTAGE_MS);
  const [overdue, missed, onTime] = pods;
  assert.ok(overdue && missed && onTime);
  assertUntouched(overdue, missed, onTime);
  const startedAt = Date.now();
  await replicas.startLeader();
  for (const pod of [overdue, missed]) {
    const at = await until(`${pod.name} is evicted`, () => pod.evictedAt);
    t.diagnostic(`${pod.name} went ${at - startedAt} ms after a replica was started`);
  }
  await evictedOnTime(onTime, 50, tainted);
  assertReportedOnce(replicas.cluster.witness, ...pods);
});

test('evicts nothing early or twice, and loses nothing, after the API server was unreachable for half a minute', async (t) => {
  const { cluster } = replicas;
  const wiretap = await Wiretap.open(cluster.connection);
  t.after(() => wiretap.close());
  const { node, pods } = await podsOn('away', [20, 60]);
  const leader = await replicas.startLeader({ connection: wiretap.connection });
  const standby = await replicas.start({ connection: wiretap.connection });
  const tainted = await cluster.taint(node, { key: 'x' });
  const [due, onTime] = pods;
  assert.ok(due && onTime);
  for (const pod of pods) await leader.untilPrinted(node, pod.name, 'eviction at');
  await wiretap.cut();
  const cutAt = Date.now();
  await momentComes(cutAt + OUTAGE_MS);
  assertUntouched(due, onTime);
  await wiretap.mend();
  const backAt = Date.now();
  const at = await until('what fell due is evicted', () => due.evictedAt);
  t.diagnostic(`evicted ${at - backAt} ms after the API server came back`);
  await evictedOnTime(onTime, 60, tainted);
  // The first replica to acquire the lease again leads, and another former leader restarts.
  assert.ok([leader, standby].some((each) => each.ended === undefined));
  assertReportedOnce(replicas.cluster.witness, due, onTime);
});
