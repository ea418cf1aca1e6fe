import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { textLog } from '#shared/telemetry/text-log.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

const cluster = clusterName('c1');
const node = nodeName('n1');
const delta = '7-1';

test('unknown events, unknown fields, and missing fields do not compile', () => {
  const log = recordingLog();
  // @ts-expect-error: no such event
  log.info('cluster.painted', { cluster });
  // @ts-expect-error: no such field
  log.info('cluster.removed', { cluster, colour: 'green' });
  // @ts-expect-error: its epoch is missing
  log.info('relay.lease-acquired', { cluster });
  // @ts-expect-error: it logs nothing
  log.info('relay.stopping', { cluster });
  assert.equal(log.lines.length, 4);
});

test('the text log reports nodes and pods, errors as complaints, and nothing else', () => {
  const printed: string[] = [];
  const log = textLog({ now: () => 0 }, (line) => printed.push(line));
  const pod = { cluster, node, namespace: 'shop', pod: 'web', uid: podUid('u1'), delta, dueAt: 30_000 };
  const eviction = { ...pod, taints: ['maintenance=now:NoExecute'] };
  log.info('relay.synced', { cluster, nodes: 1, tainted: 1, pods: 1 });
  log.info('node.changed', { cluster, node, delta, taints: [] });
  log.info('relay.lease-acquired', { cluster, epoch: 3 });
  log.info('eviction.scheduled', eviction);
  log.info('eviction.canceled', { ...eviction, reason: 'taint-removed', eventPosted: true });
  log.info('eviction.blocked', { ...eviction, by: 'budget', error: new Error('no disruption is allowed') });
  log.info('eviction.held', { ...eviction, by: 'guard' });
  log.info('eviction.held', { ...eviction, by: 'stopped' });
  log.warn('relay.watch-failed', { cluster, resource: 'nodes', error: new Error('no route') });
  const expected = [
    /c1 {2}watching \(nodes: 1, tainted: 1, pods on tainted nodes: 1\)$/,
    /c1 n1 {2}.*untainted/,
    /c1 n1 {2}shop\/web: eviction at .* \(in 30s\) for maintenance=now:NoExecute/,
    /c1 n1 {2}.*shop\/web: eviction canceled \(taint removed\)/,
    /c1 n1 {2}.*shop\/web: eviction blocked by a disruption budget/,
    /shop\/web: eviction held by the guard$/,
    /shop\/web: eviction held \(stopped\)$/,
    /c1 {2}.*relay\.watch-failed: no route \(resource nodes\)/,
  ];
  assert.equal(printed.length, expected.length);
  for (const [index, line] of expected.entries()) assert.match(printed[index] ?? '', line);
});

test('the text log does not say in observe mode that a pod is being evicted', () => {
  const printed: string[] = [];
  const log = textLog({ now: () => 0 }, (line) => printed.push(stripVTControlCharacters(line)));
  const pod = {
    cluster,
    node,
    namespace: 'shop',
    pod: 'web',
    uid: podUid('u1'),
    delta,
    taints: ['a:NoExecute'],
  };
  const observed = { ...pod, observed: true } as const;
  log.info('eviction.scheduled', { ...observed, dueAt: 0 });
  log.info('eviction.rescheduled', { ...observed, dueAt: 30_000 });
  log.info('eviction.held', { ...observed, dueAt: 0, by: 'guard' });
  log.info('eviction.loaded', { ...pod, dueAt: 0 });
  assert.deepEqual(
    printed.map((line) => line.replace(/^.*shop/, 'shop').replace(/at .* \(/, 'at T (')),
    [
      'shop/web: due for a:NoExecute',
      'shop/web: rescheduled, due at T (in 30s) for a:NoExecute',
      'shop/web: would be held in enforce mode by the guard',
      'shop/web, due for a:NoExecute',
    ],
  );
});

test('the text log prefixes lines with the time in UTC, and prints the date of times on other days', () => {
  const noon = Date.UTC(2026, 0, 31, 12);
  const printed: string[] = [];
  const log = textLog({ now: () => noon }, (line) => printed.push(stripVTControlCharacters(line)));
  const pod = {
    cluster,
    node,
    namespace: 'shop',
    pod: 'web',
    uid: podUid('u1'),
    delta,
    taints: ['a:NoExecute'],
  };
  log.info('eviction.scheduled', { ...pod, dueAt: noon + 60_000 });
  log.info('eviction.scheduled', { ...pod, dueAt: noon + 12 * 3_600_000 });
  log.warn('eviction.retrying', { cluster, node, attempts: 1, nextTryAt: noon + 5_000, error: 'no route' });
  assert.deepEqual(printed, [
    '2026-01-31T12:00:00Z c1 n1  shop/web: eviction at 12:01:00Z (in 1m) for a:NoExecute',
    '2026-01-31T12:00:00Z c1 n1  shop/web: eviction at 2026-02-01T00:00:00Z (in 12h) for a:NoExecute',
    '2026-01-31T12:00:00Z c1 n1  eviction.retrying: no route (attempts 1, next try at 2026-01-31T12:00:05Z)',
  ]);
});
