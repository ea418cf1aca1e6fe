import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { NODE_MAX_AGE_MS } from '#shared/engine/evict/evict-pod.ts';
import type { Method } from '#shared/eviction/policy.ts';
import { dueOf } from '#shared/eviction/retry.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta, pod, ref, rules } from '#test/unit/eviction/builders.ts';
import {
  beforeCalls,
  benchAfter,
  due,
  type EvictBench,
  passes,
  podsNamed,
  ruled,
  STOP,
} from './evict-bench.ts';

const DEADLINE_MS = 60_000;
const evict: Method = { kind: 'evict', timeoutMs: DEADLINE_MS, onTimeout: 'delete' };
const ruledBy = (method: Method) => ruled({ method });

const labeled = (count: number) => podsNamed(count).map((each) => ({ ...each, labels: { app: 'web' } }));
const allow = ({ cluster }: EvictBench, allowed: number) =>
  cluster.budgets.set('web', { app: 'web', allowed });

/** Returns a bench with due pods whose budget allows `allowed` disruptions, and with this eviction method. */
async function budgeted(count: number, allowed: number, method: Method = evict): Promise<EvictBench> {
  const bench = Object.assign(await due(...labeled(count)), { ruling: ruledBy(method) });
  allow(bench, allowed);
  return bench;
}

describe('with the Eviction API as method', () => {
  test('a pod is not marked beforehand, and is recorded and reported as evicted', async () => {
    const bench = await budgeted(1, 1);
    const requests = bench.requests();
    await bench.pass();
    assert.deepEqual(requests, ['get', 'list', 'evict', 'create']);
    assert.deepEqual(await bench.states(), { u1: 'evicted' });
    assert.deepEqual(bench.messages, ['Marking for deletion Pod default/pod-u1']);
  });

  test('a budget allows its number of evictions, and the other pods wait without a failure', async () => {
    const bench = await budgeted(3, 1);
    await bench.pass();
    const { node, scheduled } = await bench.stored();
    assert.equal(bench.deleted.length, 1);
    assert.equal(node?.retry, undefined);
    assert.deepEqual(
      [...scheduled.values()].map(({ blocked, failure }) => [blocked?.nextTryAt, failure]),
      Array(2).fill([at(60), undefined]),
    );
    assert.equal(node?.blocked?.nextTryAt, at(65));
    assert.deepEqual(bench.armed, [at(65)]);
  });

  test('blocked pods are retried ever more rarely by one message that writes only the node, and are evicted when allowed', async () => {
    const bench = await budgeted(2, 0, { ...evict, timeoutMs: 15 * DEADLINE_MS });
    const requests = bench.requests();
    await bench.pass();
    const commit = mock.method(bench.store, 'commit');
    await bench.until(at(60 + 5 + 10 + 20 + 40 + 59));
    assert.deepEqual(bench.armed, []);
    assert.equal(bench.logged('eviction.blocked').length, 2, 'reported once');
    assert.deepEqual(bench.causes, Array(2).fill('TaintwardEvictionBlocked'));
    assert.equal(requests.filter((verb) => verb === 'evict').length, 5 * 2);
    const written = commit.mock.calls.map(({ arguments: [, , { schedule }] }) => schedule.length);
    assert.deepEqual(written, [0, 0, 0, 0]);
    bench.cluster.budgets.clear();
    assert.deepEqual(await bench.evicts(at(60 + 5 + 10 + 20 + 40 + 60)), ['u1', 'u2']);
    assert.equal(requests.includes('patch'), false);
  });

  test('a pod that is blocked until the timeout is marked and deleted', async () => {
    const bench = await budgeted(1, 0);
    await bench.pass();
    await bench.until(at(60) + DEADLINE_MS - 1);
    assert.deepEqual(bench.deleted, []);
    const requests = bench.requests();
    await bench.evicts(at(60) + DEADLINE_MS);
    assert.deepEqual(requests.slice(-3), ['patch', 'delete', 'create']);
    assert.deepEqual(await bench.states(), { u1: 'evicted' });
  });

  test('a blocked pod with onTimeout fail is retried ever more rarely, and fails as any other', async () => {
    const bench = await budgeted(1, 0, { ...evict, onTimeout: 'fail' });
    await bench.pass();
    await bench.until(at(60) + 2 * DEADLINE_MS);
    const { node } = await bench.stored();
    assert.ok((node?.retry?.attempts ?? 0) > 1);
    assert.match((await bench.record())?.failure?.error ?? '', /budget/);
    await bench.evicts(at(60) + rules.policy.giveUpAfterMs + 3 * DEADLINE_MS);
    assert.deepEqual([bench.givenUp, bench.deleted], [1, []]);
  });

  const pods = labeled(1);
  const ruling = ruledBy(evict);
  passes({
    'pods on a node that is down are deleted despite their budget': {
      pods,
      rules: ruling,
      deleted: ['u1'],
      given: (bench) => {
        allow(bench, 0);
        bench.cluster.putNode(liveNode('n1', 'a', NODE_UNREACHABLE));
      },
    },
    'a pod fails with an error that names the missing permission': {
      rules: ruling,
      failures: ['grant create on pods/eviction'],
      given: (bench) => bench.fails('evict', new ApiError('grant create on pods/eviction', 403, 'Forbidden')),
    },
    'a pod that changes meanwhile is evaluated again': {
      pods,
      rules: ruling,
      deleted: ['u1'],
      given: (bench) =>
        bench.before(
          'evict',
          (count) => count === 1 && bench.cluster.putPod(livePod('u1', { labels: { app: 'web' } })),
        ),
    },
    'a pod that was evicted before it was recorded counts as evicted': {
      rules: ruling,
      pods: [livePod('u1', { terminating: true, evicted: true })],
      states: { u1: 'evicted' },
    },
    'a pod that another actor evicts through the API is gone, where the method is delete': {
      pods: [livePod('u1', { terminating: true, evicted: true })],
      states: { u1: 'already-gone' },
    },
  });

  test('a pod whose node is deleted during the pass is deleted, although the rules change with it', async () => {
    const bench = await budgeted(1, 1);
    beforeCalls(bench.cluster, 'podsOnNode', () => bench.delay(NODE_MAX_AGE_MS));
    bench.before('get', (count) => {
      assert.ok(count < 9, 'the node is looked at without end');
      if (count !== 2) return;
      bench.cluster.removeNode(ref.node);
      bench.ruling = { ...bench.ruling };
    });
    assert.deepEqual(await bench.leaves(), { u1: 'evicted' });
  });

  test('a server with too many requests postpones the whole node', async () => {
    const bench = await budgeted(2, 2);
    bench.fails('evict', new ApiError('too many requests', 429, 'TooManyRequests', 7));
    await bench.pass();
    const partition = await bench.stored();
    assert.equal(partition.node?.retry?.everything, true);
    assert.deepEqual(dueOf(partition, at(66)), []);
  });

  test('an eviction that is late is not sent, and its node is looked at again', async () => {
    const bench = await budgeted(1, 1);
    const requests = bench.requests();
    beforeCalls(bench.cluster, 'evictPod', (count) => count === 1 && bench.delay(251));
    await bench.pass();
    assert.deepEqual(requests, ['get', 'list', 'evict', 'get', 'evict', 'create']);
  });

  test('a redelivered message arms the timer that could not be armed', async () => {
    const bench = await budgeted(1, 0);
    bench.timerOutages = 1;
    await assert.rejects(bench.pass());
    await bench.redelivered();
    assert.deepEqual(bench.armed, [at(65)]);
  });

  test('a stop holds a pod that waits for a budget', async () => {
    const bench = await budgeted(1, 0);
    await bench.pass();
    bench.ruling = { ...ruledBy(evict), stops: [STOP] };
    bench.cluster.budgets.clear();
    await bench.until(at(70));
    assert.deepEqual(bench.deleted, []);
    assert.equal((await bench.record())?.held?.by.kind, 'stopped');
  });
});

describe('with the Eviction API as method, in a namespace that is being deleted', () => {
  const never: Method = { kind: 'evict', timeoutMs: DEADLINE_MS, onTimeout: 'fail' };

  for (const [what, allowed] of [
    ['without a budget', undefined],
    ['with a budget that allows none', 0],
    ['with a budget that allows one', 1],
  ] as const) {
    test(`a pod ${what} is marked and deleted in the same pass`, async () => {
      const bench = await budgeted(1, allowed ?? 0, never);
      if (allowed === undefined) bench.cluster.budgets.clear();
      bench.cluster.terminatingNamespaces.add('default');
      const requests = bench.requests();
      assert.deepEqual(await bench.evicts(), ['u1']);
      assert.equal(bench.cluster.deletions[0]?.pod.disrupted, true);
      assert.deepEqual(
        requests.filter((verb) => verb !== 'get'),
        ['list', 'evict', 'patch', 'delete', 'create'],
      );
      assert.deepEqual(await bench.states(), { u1: 'evicted' });
      assert.deepEqual(bench.armed, []);
      const events = bench.log.lines.map(({ event }) => event);
      assert.ok(events.includes('pod.evicted'));
      assert.deepEqual(
        events.filter((event) => ['eviction.retrying', 'event.dropped', 'eviction.blocked'].includes(event)),
        [],
        'a refused Event is no failure',
      );
    });
  }

  test('a pod whose budget blocked it before is deleted at its next try', async () => {
    const bench = await budgeted(1, 0, never);
    assert.deepEqual(await bench.evicts(), []);
    bench.cluster.terminatingNamespaces.add('default');
    await bench.until(at(65));
    assert.deepEqual(bench.deleted, ['u1']);
  });

  test('a stop holds the pod between the refusal and the delete', async () => {
    const bench = await budgeted(1, 0, never);
    bench.cluster.terminatingNamespaces.add('default');
    bench.before('evict', () => Object.assign(bench, { ruling: { ...bench.ruling, stops: [STOP] } }));
    assert.deepEqual(await bench.evicts(), []);
    assert.equal((await bench.record())?.held?.by.kind, 'stopped');
  });

  test('pods of other namespaces on the node are still evicted through the Eviction API', async () => {
    const others = livePod('u2', { namespace: 'shop', labels: { app: 'web' } });
    const deltas = [nodeDelta(1, { pods: [pod('u1'), pod('u2', { namespace: 'shop' })] })];
    const bench = await benchAfter(deltas, [livePod('u1', { labels: { app: 'web' } }), others]);
    bench.ruling = ruledBy(never);
    bench.cluster.budgets.set('web', { app: 'web', allowed: 0 });
    bench.cluster.terminatingNamespaces.add('default');
    assert.deepEqual(await bench.evicts(), ['u1']);
    const waiting = (await bench.records()).map(({ uid, blocked }) => [uid, blocked !== undefined]);
    assert.deepEqual(waiting, [['u2', true]]);
  });

  test('the words alone do not cause a delete', async () => {
    const bench = await budgeted(1, 1, never);
    const words = 'unable to create new content in namespace default because it is being terminated';
    bench.fails('evict', new ApiError(words, 403, 'Forbidden'));
    assert.deepEqual(await bench.evicts(), []);
  });
});
