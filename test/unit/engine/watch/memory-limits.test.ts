import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { getHeapStatistics } from 'node:v8';
import {
  MAX_BYTES,
  NodeList,
  NodeRoom,
  PassingPods,
  tooManyPassing,
} from '#shared/engine/watch/memory-limits.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import { livePod } from './live-objects.ts';

/** Texts of different lengths, so that each that is not counted shows. */
const text = (length: number) => 'x'.repeat(length);

describe('a pod takes 256 bytes and its texts:', () => {
  const bare = livePod('', { namespace: '', name: '', tolerations: [] });
  for (const [what, fields, bytes] of [
    ['none', {}, 0],
    ['namespace and name', { namespace: text(3), name: text(40) }, 43],
    ['the owner', { owner: { kind: text(3), name: text(40) } }, 43],
    [
      'tolerations, each with 16 bytes more',
      { tolerations: [{}, { key: text(1), operator: 'Exists', value: text(20), effect: text(300) }] },
      32 + 'Exists'.length + 321,
    ],
    ['finalizers', { leaving: { gracePeriodEndedAt: 0, finalizers: [text(3), text(40)] } }, 43],
    ['labels', { labels: { [text(3)]: text(40), b: '' } }, 44],
    ['annotations', { annotations: { [text(3)]: text(40) } }, 43],
  ] as const satisfies readonly (readonly [string, Partial<LivePod>, number])[])
    test(what, () => assert.equal(new PassingPods().take({ ...bare, ...fields }), 256 + bytes));

  test('and a sixth of the heap is for those in transit', () => {
    const mib = Math.floor(getHeapStatistics().heap_size_limit / 6 / 2 ** 20);
    const { message } = tooManyPassing();
    assert.ok(message.startsWith(`The pods of its tainted nodes exceed ${mib} MiB, a sixth of the heap.`));
  });

  test('the UID', () => assert.equal(new PassingPods().take({ ...bare, uid: livePod('u1').uid }), 258));
});

describe('the nodes of a cluster take 64 MiB at most, each 256 bytes and its texts:', () => {
  const bare: LiveNode = { name: nodeName(''), resourceVersion: '', taints: [] };
  const REST = MAX_BYTES - 256;
  for (const [what, ofLength] of [
    ['the name', (length) => ({ name: nodeName(text(length)) })],
    ['the version', (length) => ({ resourceVersion: text(length) })],
    ['the zone', (length) => ({ zone: text(length) })],
    ['the stamp of its taints', (length) => ({ taintsStamp: text(length) })],
    ['keys of taints', (length) => ({ taints: [{ key: text(length), effect: '' }] })],
    ['values of taints', (length) => ({ taints: [{ key: '', value: text(length), effect: '' }] })],
    ['effects of taints', (length) => ({ taints: [{ key: '', effect: text(length) }] })],
  ] as const satisfies readonly (readonly [string, (length: number) => Partial<LiveNode>])[])
    test(what, () => {
      const ofRest = { ...bare, ...ofLength(REST) };
      const larger = { ...bare, ...ofLength(REST + 1) };
      const [room, list] = [new NodeRoom(), new NodeList()];
      room.keep(ofRest);
      assert.throws(() => room.keep(larger), /take more than 64 MiB/);
      assert.throws(() => room.keep({ ...bare, name: nodeName('other') }), /take more than 64 MiB/);
      for (const _ of ['once', 'twice']) room.forget(ofRest.name);
      const other = { ...bare, name: nodeName('n1') };
      room.keep(other);
      assert.throws(() => room.keep(ofRest), /take more than 64 MiB/);
      room.replace([ofRest]);
      assert.throws(() => room.keep(other), /take more than 64 MiB/);
      list.push(ofRest);
      assert.throws(() => list.push(bare), /take more than 64 MiB/);
      assert.deepEqual(list.nodes, [ofRest]);
    });
});
