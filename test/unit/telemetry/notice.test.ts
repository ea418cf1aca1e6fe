import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as z from 'zod';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { LogLine } from '#shared/telemetry/log-events.ts';
import { noticeOf, noticeSchema } from '#shared/telemetry/notice.ts';

const NOW = Date.UTC(2026, 10, 22, 5, 41, 7, 123);
const pod = {
  cluster: clusterName('c1'),
  node: nodeName('n1'),
  namespace: 'shop',
  pod: 'web-0',
  uid: podUid('u1'),
};
const eviction = { ...pod, fireAt: NOW - 123, because: ['maintenance:NoExecute'] };
const reason = new Error('no');

const LINES: readonly LogLine[] = [
  { event: 'eviction.scheduled', fields: eviction },
  { event: 'eviction.rescheduled', fields: eviction },
  { event: 'eviction.blocked', fields: { ...eviction, reason: 'its budget needs it' } },
  { event: 'eviction.held', fields: { ...eviction, by: 'guard' } },
  { event: 'eviction.would-have', fields: pod },
  { event: 'eviction.cancelled', fields: { ...eviction, reason: 'taint-removed', announced: true } },
  { event: 'eviction.done', fields: { ...pod, lateMs: 12 } },
  { event: 'eviction.gone', fields: pod },
  { event: 'eviction.gave-up', fields: { ...eviction, reason } },
  { event: 'eviction.unregistered', fields: { ...eviction, reason } },
];

test('each thing that becomes of an eviction is told once, and nothing else is', () => {
  const notices = LINES.map((line) => noticeOf(line, NOW));
  assert.deepEqual(
    notices.map((notice) => notice?.event),
    noticeSchema.shape.event.options,
  );
  for (const notice of notices) assert.deepEqual(noticeSchema.parse(notice), notice);
  assert.equal(noticeOf({ event: 'node.changed', fields: { ...pod, taints: [] } }, NOW), undefined);
});

test('a notice names its pod, its moment, its taints and what holds it', () => {
  assert.deepEqual(noticeOf({ event: 'eviction.held', fields: { ...eviction, by: 'guard' } }, NOW), {
    version: 1,
    event: 'held',
    at: '2026-11-22T05:41:07.123Z',
    cluster: 'c1',
    node: 'n1',
    namespace: 'shop',
    pod: 'web-0',
    uid: 'u1',
    dueAt: '2026-11-22T05:41:07.000Z',
    because: ['maintenance:NoExecute'],
    heldBy: 'guard',
  });
});

test('what the documents say of it is so', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/events.md'), 'utf8');
  const [example, schema] = [...text.matchAll(/```json\n(.*?)```/gs)].map(([, json = '']) =>
    JSON.parse(json),
  );
  assert.deepEqual(schema, JSON.parse(JSON.stringify(z.toJSONSchema(noticeSchema, { io: 'input' }))));
  assert.deepEqual(noticeSchema.parse(example), example);
  for (const event of noticeSchema.shape.event.options) assert.ok(text.includes(`\`${event}\``), event);
});
