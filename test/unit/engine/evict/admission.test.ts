import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Method } from '#shared/eviction/policy.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at } from '#test/unit/eviction/builders.ts';
import { asReported, type EvictBench, ruled } from './evict-bench.ts';

const DEADLINE_MS = 60_000;
const evict: Method = { kind: 'evict', timeoutMs: DEADLINE_MS, onTimeout: 'delete' };

/** The answer of KubeVirt's webhook for a VM whose migration begins. */
const MOVES = new ApiError(
  'Cannot create pods/eviction default/vm at api: 429; admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: Eviction triggered evacuation of VMI "default/vm".',
  429,
);

/** A node with due pods of a web server, and with VMs that KubeVirt migrates. */
async function beside(webs: number, vms: number, method: Method = evict): Promise<EvictBench> {
  const podsOf = (app: string, count: number) =>
    Array.from({ length: count }, (_, index) => livePod(`${app}${index + 1}`, { labels: { app } }));
  const bench = await asReported(...podsOf('vm', vms), ...podsOf('web', webs));
  bench.ruling = ruled({ method });
  bench.cluster.admission.set('vm', MOVES);
  return bench;
}

describe('beside VMs whose eviction a webhook denies', () => {
  test('80 pods of a node are evicted in one pass without a pause', async () => {
    const bench = await beside(80, 3);
    assert.equal((await bench.evicts()).length, 80);
    assert.equal(bench.clock.now(), at(60));
    const { node } = await bench.stored();
    assert.equal(node?.retry, undefined);
    assert.deepEqual(
      (await bench.records()).map(({ blocked, failure }) => [blocked, failure]),
      Array(3).fill([
        { since: at(60), nextTryAt: at(60), by: 'admission', reason: MOVES.message },
        undefined,
      ]),
    );
    assert.deepEqual(bench.armed, [at(65)]);
  });

  test('the log and an Event report once that a VM is blocked, and by which webhook', async () => {
    const bench = await beside(0, 1);
    await bench.pass();
    await bench.evicts(at(65));
    assert.deepEqual(
      bench.log.lines.flatMap(({ event, fields }) =>
        event === 'eviction.blocked' ? [[fields['by'], fields['error']]] : [],
      ),
      [['admission', MOVES.message]],
    );
    assert.deepEqual(
      bench.cluster.events.map(({ reason, message }) => [reason, message.replace(/ and will .*/, '')]),
      [['TaintwardEvictionBlocked', 'Eviction rejected by an admission webhook or policy']],
    );
  });

  test('a VM with the annotation of a migration is blocked because it is migrating', async () => {
    const bench = await beside(0, 1);
    bench.cluster.putPod(livePod('vm1', { labels: { app: 'vm' }, moving: true }));
    await bench.pass();
    const [record] = await bench.records();
    assert.equal(
      record?.blocked?.reason,
      `It is being moved off its node (annotation descheduler.alpha.kubernetes.io/eviction-in-progress). ${MOVES.message}`,
    );
  });

  test('a VM is evicted when the webhook and its budget allow it', async () => {
    const bench = await beside(0, 1);
    bench.cluster.budgets.set('vm', { app: 'vm', allowed: 0 });
    await bench.pass();
    bench.cluster.admission.clear();
    await bench.evicts(at(65));
    const [record] = await bench.records();
    assert.deepEqual([record?.blocked?.since, record?.blocked?.by], [at(60), undefined]);
    bench.cluster.budgets.clear();
    assert.deepEqual(await bench.leaves(at(75)), { vm1: 'evicted' });
  });

  test('a VM is deleted at the timeout of the policy', async () => {
    const bench = await beside(0, 1);
    await bench.pass();
    assert.deepEqual(await bench.evicts(at(60) + DEADLINE_MS - 1), []);
    assert.deepEqual(await bench.evicts(at(65) + DEADLINE_MS), ['vm1']);
  });

  test('a VM fails at evict.timeout where onTimeout is fail, without an effect on other pods', async () => {
    const bench = await beside(1, 1, { ...evict, onTimeout: 'fail' });
    bench.cluster.budgets.set('web', { app: 'web', allowed: 0 });
    await bench.pass();
    await bench.evicts(at(65) + DEADLINE_MS);
    bench.cluster.budgets.clear();
    const { node } = await bench.stored();
    assert.equal(node?.retry?.everything, false);
    assert.match((await bench.records()).find(({ uid }) => uid === 'vm1')?.failure?.error ?? '', /denied/);
  });
});

test('a webhook that denies the mark or the deletion of a pod fails only that pod, with any status', async () => {
  for (const status of [404, 409, 429, 503]) {
    const bench = await beside(3, 0, { kind: 'delete' });
    const denied = new ApiError('429; admission webhook "x.example.com" denied the request: no', status);
    const { deletePod } = bench.cluster;
    bench.cluster.deletePod = async (ref, ...options) => {
      if (ref.name === 'pod-web2') throw denied;
      return deletePod.call(bench.cluster, ref, ...options);
    };
    assert.deepEqual(await bench.evicts(), ['web1', 'web3'], String(status));
    const [record] = await bench.records();
    assert.equal(record?.failure?.error, denied.message, String(status));
  }
});
