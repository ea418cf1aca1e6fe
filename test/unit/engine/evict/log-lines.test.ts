import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import { liveNode } from '#test/unit/engine/watch/live-objects.ts';
import { at, ref } from '#test/unit/eviction/builders.ts';
import { duePods, type EvictBench, ruled, serverError } from './evict-bench.ts';

const POD = { ...ref, namespace: 'default', pod: 'pod-u1', uid: 'u1', delta: '1-1' };
const SCHEDULED = { ...POD, dueAt: at(60), taints: ['a:NoExecute'] };
const UNKNOWN = new UnknownClusterError('cluster c1 is not registered');

const under =
  (...given: Parameters<typeof ruled>) =>
  (bench: EvictBench) => {
    bench.ruling = ruled(...given);
  };
const STOP = { scope: 'cluster', actor: 'anna', at: at(0), reason: 'an incident' } as const;

const CASES: readonly (readonly [string, (bench: EvictBench) => unknown, string, object])[] = [
  ['a pod', () => undefined, 'info pod.evicted', { ...POD, delayMs: 1_000 }],
  [
    'a pod that is gone',
    ({ cluster }) => cluster.removePod({ namespace: 'default', name: 'pod-u1' }),
    'info pod.already-gone',
    POD,
  ],
  [
    'a node without taints',
    ({ cluster }) => cluster.putNode(liveNode('n1')),
    'info eviction.canceled',
    { ...SCHEDULED, reason: 'taint-removed', eventPosted: true },
  ],
  [
    'an API server that rejects requests',
    (bench) => bench.fails('delete', serverError(500)),
    'warn eviction.retrying',
    { ...ref, attempts: 1, nextTryAt: at(61.5), error: 'the server answered 500' },
  ],
  ['a stopped cluster', under({}, { stops: [STOP] }), 'info eviction.held', { ...SCHEDULED, by: 'stopped' }],
  ['a cluster in observe mode', under({ mode: 'observe' }), 'info eviction.would-evict', POD],
  [
    'a cluster that is no longer registered',
    (bench) => Object.assign(bench, { clusters: { api: () => Promise.reject(UNKNOWN) } }),
    'error eviction.unregistered',
    { ...SCHEDULED, error: UNKNOWN },
  ],
];
for (const [name, happens, event, fields] of CASES)
  test(`the log has one line of ${name}, once`, async (context) => {
    context.mock.method(Math, 'random', () => 0);
    const bench = await duePods(1);
    happens(bench);
    await bench.clock.advanceTo(at(61));
    for (let passes = 0; passes < 2; passes++) await bench.pass();
    assert.deepEqual(
      bench.log.lines.map((line) => [`${line.level} ${line.event}`, line.fields]),
      [[event, fields]],
    );
  });
