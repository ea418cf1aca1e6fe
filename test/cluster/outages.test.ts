import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertUntouched } from './rig/deadline.ts';
import { fileStage } from './rig/file-stage.ts';
import { evictedOnTime, momentComes } from './rig/on-time.ts';
import type { ServiceProcess } from './rig/service-process.ts';
import { tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';
import type { Wiretap } from './rig/wiretap.ts';

const stage = fileStage('served through a wiretap');

const OUTAGE_MS = 8_000;

test('loses nothing while the API server is unreachable, and evicts due pods within seconds of its return', async (t) => {
  const { cluster, service, wiretap } = stage();
  const names = ['due-in-outage', 'due-after', 'untainted-in-outage', 'tainted-in-outage'];
  const [due, after, untainted, tainted] = await Promise.all(names.map((name) => cluster.addNode(name)));
  assert.ok(due && after && untainted && tainted);
  const [overdue, onTime, saved, late] = await Promise.all([
    cluster.addPod(due, 'overdue', { tolerations: [tolerates('x', 3)] }),
    cluster.addPod(after, 'on-time', { tolerations: [tolerates('x', 18)] }),
    cluster.addPod(untainted, 'saved', { tolerations: [tolerates('x', 3)] }),
    cluster.addPod(tainted, 'late'),
  ]);
  const [span, lasting] = await Promise.all(
    [due, after, untainted].map((node) => cluster.taint(node, { key: 'x' })),
  );
  assert.ok(span && lasting);
  for (const pod of [overdue, onTime, saved]) await service.untilPrinted(pod.name, 'eviction at');

  await wiretap.cut();
  const cutAt = Date.now();
  await cluster.untaint(untainted);
  await cluster.taint(tainted, { key: 'x' });
  await momentComes(cutAt + OUTAGE_MS);
  assertUntouched(overdue, saved, late);
  await wiretap.mend();
  const backAt = Date.now();

  const returns = [overdue, late].map((pod) =>
    until(`${pod.name} is evicted`, () => pod.evictedAt).then((at) => at - backAt),
  );
  t.diagnostic(`evicted ${(await Promise.all(returns)).join(', ')} ms after the API server came back`);
  await evictedOnTime(onTime, 18, lasting);
  assertUntouched(saved);
});

test('loses nothing while its permissions are revoked, and evicts due pods when they are restored', async (t) => {
  const { cluster, account, service } = stage();
  const node = await cluster.addNode('forbidden');
  const pod = await cluster.addPod(node, 'forbidden', { tolerations: [tolerates('x', 2)] });
  await cluster.taint(node, { key: 'x' });
  await service.untilPrinted(node, pod.name, 'eviction at');
  await account.revoke();
  const complaint = await service.untilPrinted('eviction.retrying', node);
  assert.match(complaint.text, /403 Forbidden/);
  assertUntouched(pod);
  await account.grant();
  const grantedAt = Date.now();
  const evictedAt = await until('it is evicted', () => pod.evictedAt);
  t.diagnostic(`evicted ${evictedAt - grantedAt} ms after the rights were back`);
});

/** Returns the next try that the service announced last for a node. */
function nextTryOf(service: ServiceProcess, node: string): number {
  const logged = service.printed('eviction.retrying', node).at(-1)?.text ?? '';
  return Date.parse(/next try at (\S+Z)/.exec(logged)?.[1] ?? '');
}

for (const [how, begin] of [
  ['is unreachable', async (wiretap: Wiretap) => wiretap.cut().then(() => () => wiretap.mend())],
  [
    'is frozen, with its watches open',
    async (wiretap: Wiretap) => {
      const held = wiretap.hold(() => true);
      return async () => held.release();
    },
  ],
] as const)
  test(`evicts a due pod at the first answer of an API server that ${how}, and not after its delay`, async (t) => {
    const { cluster, service, wiretap } = stage();
    const node = await cluster.addNode(`outage-${how.split(/\W/)[1]}`);
    const pod = await cluster.addPod(node, `overdue-${how.split(/\W/)[1]}`, {
      tolerations: [tolerates('x', 3)],
    });
    await cluster.taint(node, { key: 'x' });
    await service.untilPrinted(pod.name, 'eviction at');
    const end = await begin(wiretap);
    // The delays have grown so far that a wake can be told from a try.
    await until('the next try is far', () => nextTryOf(service, node) - Date.now() > 12_000);
    const nextTryAt = nextTryOf(service, node);
    assertUntouched(pod);
    await end();
    const backAt = Date.now();
    const evictedAt = await until('it is evicted', () => pod.evictedAt);
    t.diagnostic(
      `evicted ${evictedAt - backAt} ms after the API server came back, ${nextTryAt - evictedAt} ms before its next try`,
    );
    assert.ok(evictedAt < nextTryAt);
  });
