import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { stalledNodes } from '#shared/engine/watch/stalled-nodes.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import type { DownNode } from '#shared/eviction/stalled.ts';
import { StoreError } from '#shared/state/store.ts';
import { after, at, nodeDelta, pod, ref, rules, taint, tolerating } from '#test/unit/eviction/builders.ts';

const STORED = after(nodeDelta(1));
const NOTHING = after();
const N1: DownNode = { node: ref.node, taints: [taint('a')], pods: [pod()] };

/**
 * Returns a check that starts with a lease of second `begun`. The test sets the nodes that are down, the store,
 * and both clocks.
 */
function bench({ down = [N1], stored = STORED, begun = 0 } = {}) {
  const given = { down, stored, second: begun, stopwatchSecond: begun, reads: 0, most: 0, fails: false };
  let under = 0;
  const whyStalled = stalledNodes(ref.cluster, {
    store: {
      load: async () => {
        given.reads += 1;
        under += 1;
        given.most = Math.max(given.most, under);
        await setImmediate();
        under -= 1;
        if (given.fails) throw new StoreError('node n1 cannot be read');
        return given.stored;
      },
    },
    view: { downNodes: () => given.down },
    rules: () => rules,
    epoch: 1,
    clock: { now: () => at(given.second), stopwatch: () => given.stopwatchSecond * 1000 },
  });
  const why = (second: number, stopwatchSecond = second) => {
    Object.assign(given, { second, stopwatchSecond });
    return whyStalled(['a']);
  };
  return { given, why };
}

test('gives a new relay a minute to store nodes that are down', async () => {
  const { why } = bench({ stored: NOTHING, begun: 300 });
  assert.equal(await why(360), undefined);
  assert.match((await why(361)) ?? '', /^node n1 is down, and its stored state is out of date/);
});

test('measures the minute by the stopwatch where the clock is set back', async () => {
  const { why } = bench({ stored: NOTHING });
  assert.equal(await why(20), undefined);
  assert.equal(await why(-3600, 80), undefined);
  assert.match((await why(-3599, 81)) ?? '', /^node n1 is down/);
});

test('gives each new pod its own minute to get a deadline', async () => {
  const long = pod('u1', { tolerations: [tolerating('a', 600)] });
  const { given, why } = bench({ stored: after(nodeDelta(1, { pods: [long] })) });
  const more = (...uids: readonly string[]) => {
    given.down = [{ ...N1, pods: [long, ...uids.map((uid) => pod(uid))] }];
  };
  more('u2');
  assert.equal(await why(62), undefined);
  more('u3');
  assert.equal(await why(100), undefined);
  assert.equal(await why(119), undefined);
  assert.equal(await why(160), undefined);
  assert.match((await why(161)) ?? '', /has no stored deadline$/);
});

test('reports a node with a new pod beside one that has waited for a minute', async () => {
  const long = pod('u1', { tolerations: [tolerating('a', 600)] });
  const { given, why } = bench({ stored: after(nodeDelta(1, { pods: [long] })) });
  given.down = [{ ...N1, pods: [long, pod('u2')] }];
  assert.equal(await why(62), undefined);
  given.down = [{ ...N1, pods: [long, pod('u2'), pod('u3')] }];
  assert.match((await why(123)) ?? '', /has no stored deadline$/);
});

test('gives each taint of each node its own minute, also where the clock is set back', async () => {
  const { given, why } = bench({ stored: NOTHING });
  const downWith = (name: string, ...taints: DownNode['taints']) =>
    Object.assign(given, { down: [{ ...N1, node: nodeName(name), taints }] });
  for (const [second, name, seen] of [
    [20, 'n1', taint('a')],
    [80, 'n1', taint('b')],
    [140, 'n1', { ...taint('b'), value: 'v' }],
    [200, 'n2', { ...taint('b'), value: 'v' }],
  ] as const) {
    downWith(name, seen);
    for (const passed of [0, 30, 59]) assert.equal(await why(-3600, second + passed), undefined, seen.key);
  }
  assert.match((await why(-3600, 261)) ?? '', /^node n2 is down/);
});

test('reads a thousand nodes eight at a time, and reports no stall when all are stored', async () => {
  const down = Array.from({ length: 1000 }, (_, index) => ({ ...N1, node: nodeName(`n${index}`) }));
  const { given, why } = bench({ down });
  assert.equal(await why(90), undefined);
  assert.deepEqual([given.reads, given.most], [1000, 8]);
});

test('reads nothing while no node is down', async () => {
  const { given, why } = bench({ down: [] });
  assert.equal(await why(90), undefined);
  assert.equal(given.reads, 0);
});

test('rejects when the store cannot be read', async () => {
  const { given, why } = bench();
  given.fails = true;
  await assert.rejects(why(1), StoreError);
});
