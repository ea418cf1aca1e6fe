import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as z from 'zod';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { LogFields } from '#shared/telemetry/log.ts';
import type { LogLine } from '#shared/telemetry/log-events.ts';
import { noticeOf, noticeSchema } from '#shared/telemetry/notice.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, rules, tolerating } from '#test/unit/eviction/builders.ts';
import { World } from '#test/world/world.ts';

const DOCS = join(import.meta.dirname, '../../../docs');
/** The schema as external readers use it, without Taintward's code. */
const documented = z.fromJSONSchema(
  JSON.parse(readFileSync(join(DOCS, 'reference/notifications.schema.json'), 'utf8')),
);

const NOW = Date.UTC(2026, 10, 22, 5, 41, 7, 123);
const pod = {
  cluster: clusterName('c1'),
  node: nodeName('n1'),
  namespace: 'shop',
  pod: 'web-0',
  uid: podUid('u1'),
  delta: '7-1',
};
const eviction = { ...pod, dueAt: NOW - 123, taints: ['maintenance:NoExecute'] };
const error = new Error('no');

const LINES: readonly LogLine[] = [
  { event: 'eviction.scheduled', fields: eviction },
  { event: 'eviction.rescheduled', fields: eviction },
  { event: 'eviction.blocked', fields: { ...eviction, by: 'budget', error: 'its budget needs it' } },
  { event: 'eviction.held', fields: { ...eviction, by: 'guard' } },
  { event: 'eviction.would-evict', fields: pod },
  { event: 'eviction.canceled', fields: { ...eviction, reason: 'taint-removed', eventPosted: true } },
  { event: 'pod.evicted', fields: { ...pod, delayMs: 12 } },
  { event: 'pod.already-gone', fields: pod },
  { event: 'eviction.failed', fields: { ...eviction, error } },
  { event: 'eviction.unregistered', fields: { ...eviction, error } },
];

test('each change of an eviction produces one notice, and other events none', () => {
  const notices = LINES.map((line) => noticeOf(line, NOW));
  assert.deepEqual(
    notices.map((notice) => notice?.event),
    noticeSchema.shape.event.options,
  );
  for (const notice of notices) assert.deepEqual(noticeSchema.parse(notice), notice);
  assert.equal(noticeOf({ event: 'node.changed', fields: { ...pod, taints: [] } }, NOW), undefined);
});

test('a notice names pod, time, taints, and gate', () => {
  assert.deepEqual(noticeOf({ event: 'eviction.held', fields: { ...eviction, by: 'guard' } }, NOW), {
    version: 1,
    event: 'held',
    at: '2026-11-22T05:41:07.123Z',
    cluster: 'c1',
    node: 'n1',
    namespace: 'shop',
    pod: 'web-0',
    uid: 'u1',
    delta: '7-1',
    dueAt: '2026-11-22T05:41:07.000Z',
    taints: ['maintenance:NoExecute'],
    heldBy: 'guard',
  });
});

test("the documentation's example and events are valid", () => {
  const text = readFileSync(join(DOCS, 'reference/notifications.md'), 'utf8');
  const example = JSON.parse(/```json\n(.*?)```/s.exec(text)?.[1] ?? '');
  assert.deepEqual(documented.parse(example), example);
  for (const event of noticeSchema.shape.event.options) assert.ok(text.includes(`\`${event}\``), event);
});

test('notices of real evictions match the published schema', async () => {
  const notices = (await loggedEvictions()).flatMap((line) => noticeOf(line, NOW) ?? []);
  assert.deepEqual(
    new Set(notices.map(({ event }) => event)),
    new Set(['scheduled', 'rescheduled', 'canceled', 'evicted']),
  );
  for (const notice of notices) documented.parse(JSON.parse(JSON.stringify(notice)));
  const [{ uid: _, ...nameless } = {}] = notices;
  assert.throws(() => documented.parse(nameless));
});

test('the ID of the last delta of an eviction leads to its end', async () => {
  const logged = await loggedEvictions();
  const idsOf = (event: string) =>
    logged.filter((line) => line.event === event).map(({ fields }) => (fields as LogFields)['delta']);
  // Taint `a` schedules both pods. Taint `b` then reschedules both. The remaining pod then becomes tolerant.
  assert.deepEqual(idsOf('node.changed'), ['1-1', '1-2', '1-3']);
  assert.deepEqual(idsOf('eviction.scheduled'), ['1-1', '1-1']);
  assert.deepEqual(idsOf('eviction.rescheduled'), ['1-2', '1-2']);
  assert.deepEqual(idsOf('pod.evicted'), ['1-2']);
  assert.deepEqual(idsOf('eviction.canceled'), ['1-3']);
});

/** Returns the log of a service that evicts a pod, reschedules an eviction, and cancels one. */
async function loggedEvictions(): Promise<readonly LogLine[]> {
  const world = new World(at(0), rules.matching);
  const taint = async (...keys: readonly string[]) => {
    const node = world.cluster.putNode(liveNode('n1', ...keys));
    await world.deliver(world.view?.upsertNode(node, world.clock.now()) ?? []);
  };
  world.cluster.putNode(liveNode());
  world.cluster.putPod(livePod('u1', { tolerations: [tolerating('a', 10)], podSince: at(-9999) }));
  world.cluster.putPod(
    livePod('u2', { tolerations: [tolerating('a', 60), tolerating('b', 30)], podSince: at(-9999) }),
  );
  await world.deliver(await world.start());
  await taint('a');
  await taint('a', 'b');
  await world.clock.advanceTo(at(20));
  await taint();
  // The world stores fields without their event.
  return world.log as unknown as readonly LogLine[];
}
