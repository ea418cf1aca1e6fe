import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { at, nodeDelta, pod, ref, rules } from '#test/unit/eviction/builders.ts';
import { benchAfter, deletedFrom, podsNamed } from './evict-bench.ts';

const stopped: Rules = {
  ...rules,
  stops: [{ scope: 'fleet', who: 'anna', at: at(0), why: 'an incident' }],
};

/** Returns a bench whose first `times` marks wait too long; `meanwhile` runs during each wait. */
async function lateMarks(times: number, meanwhile: () => void = () => undefined) {
  const bench = await benchAfter([nodeDelta(1, { pods: [pod('u1')] })], podsNamed(1));
  const mark = bench.cluster.markDisrupted.bind(bench.cluster);
  let asked = 0;
  bench.cluster.markDisrupted = async (...[ref, uid, now, allowed]) => {
    asked += 1;
    if (asked > times) return mark(ref, uid, now, allowed);
    meanwhile();
    assert.equal(await allowed?.(), bench.clock.now() + 250);
    throw new LateCallError('it could not be sent in time');
  };
  return bench;
}

test('marks and deletes a pod in its slot although its mark was late repeatedly', async () => {
  const bench = await lateMarks(20);
  await evictNode(ref, bench);
  assert.deepEqual(deletedFrom(bench), ['u1']);
});

test('neither marks nor deletes a pod whose mark was late after a stop', async () => {
  const bench = await lateMarks(1, () => {
    bench.ruling = stopped;
  });
  await evictNode(ref, bench);
  assert.deepEqual(deletedFrom(bench), []);
  assert.ok([...bench.cluster.livePods.values()].every(({ disrupted }) => !disrupted));
  const { scheduled } = await bench.store.load(ref, bench.clock.now());
  assert.equal(scheduled.get(pod('u1').uid)?.held?.by.kind, 'stopped');
});

test('marks a pod with one request after a long wait while the rules, read again meanwhile, allow it', async () => {
  const bench = await benchAfter([nodeDelta(1, { pods: [pod('u1')] })], podsNamed(1));
  const mark = bench.cluster.markDisrupted.bind(bench.cluster);
  let asked = 0;
  bench.cluster.markDisrupted = async (...args) => {
    asked += 1;
    await bench.clock.advanceTo(at(70));
    bench.ruling = { ...rules };
    return mark(...args);
  };
  await evictNode(ref, bench);
  assert.deepEqual([asked, deletedFrom(bench)], [1, ['u1']]);
});

test('does not send a mark after a stop', async () => {
  const bench = await benchAfter([nodeDelta(1, { pods: [pod('u1')] })], podsNamed(1));
  const mark = bench.cluster.markDisrupted.bind(bench.cluster);
  bench.cluster.markDisrupted = async (...args) => {
    bench.ruling = stopped;
    return mark(...args);
  };
  await evictNode(ref, bench);
  assert.deepEqual(deletedFrom(bench), []);
  assert.ok([...bench.cluster.livePods.values()].every(({ disrupted }) => !disrupted));
});
