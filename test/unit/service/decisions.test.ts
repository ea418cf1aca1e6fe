import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { Decisions } from '#functions/service/decisions.ts';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { systemClock } from '#shared/time/clock.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';

const C1 = clusterName('c1');
const N1 = nodeName('n1');
const U1 = podUid('u1');

/** A cluster with a tainted node and its pod. Decisions are recorded, and fail while there are errors. */
function deciding() {
  const view = new ClusterView(C1, 1);
  view.replaceNodes([liveNode('n1', 'a')], Date.now());
  view.replacePods(N1, [livePod('u1')], Date.now());
  const errors: Error[] = [];
  const decided: string[] = [];
  const log = recordingLog();
  const sending = { may: true };
  const registry = new Registry();
  const metrics = relayMetrics(registry);
  const decisions = new Decisions({
    decide: async (deltas: readonly Delta[]) => {
      const error = errors.shift();
      decided.push(
        deltas.map((delta) => `${delta.kind}${delta.kind === 'node' && delta.wake ? '!' : ''}`).join(),
      );
      if (error) throw error;
    },
    clock: systemClock,
    log,
    metrics,
  });
  decisions.open(C1, view, () => sending.may);
  return { view, decisions, decided, errors, log, sending, registry, metrics };
}

test('decides a node once with all its pods, however often they were marked', async () => {
  const { decisions, decided } = deciding();
  decisions.mark(C1, [{ node: N1, uid: U1 }, { node: N1 }, { node: N1, uid: U1 }]);
  decisions.mark(C1, [{ node: N1 }], true);
  await decisions.drained();
  assert.deepEqual(decided, ['node!']);
  decisions.mark(C1, [{ node: N1, uid: U1 }]);
  await decisions.drained();
  assert.deepEqual(decided, ['node!', 'pod']);
});

test('retries failed decisions with the current state and still wakes the node', async (t) => {
  // The timer of a retry does not keep the process alive.
  const awake = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(awake));
  const { view, decisions, decided, errors, log } = deciding();
  errors.push(new Error('the store is away'), new Error('the store is away'));
  decisions.mark(C1, [{ node: N1 }], true);
  await decisions.drained();
  assert.deepEqual(decided, ['node!', 'node!', 'node!']);
  assert.deepEqual(
    log.lines.map(({ event, fields }) => [event, fields['node'], fields['receiveCount']]),
    [
      ['message.retrying', N1, 1],
      ['message.retrying', N1, 2],
    ],
  );
  errors.push(new Error('the store is away'));
  decisions.mark(C1, [{ node: N1, uid: U1, gone: true }]);
  view.replacePods(N1, [], Date.now());
  await decisions.drained();
  assert.deepEqual(decided.slice(3), ['pod-gone', 'pod-gone']);
});

test("decides nothing while the relay can't send for the cluster", async () => {
  const { decisions, decided, sending } = deciding();
  sending.may = false;
  decisions.mark(C1, [{ node: N1 }]);
  await decisions.drained();
  for (let turns = 0; turns < 10; turns++) await nextTurn();
  assert.deepEqual(decided, []);
  sending.may = true;
  decisions.send();
  await decisions.drained();
  assert.deepEqual(decided, ['node']);
});

test('counts decided, failed, and waiting deltas', async (t) => {
  const awake = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(awake));
  const { decisions, errors, metrics, registry } = deciding();
  const counts = async () => {
    const unsent = await registry.getSingleMetric('taintward_relay_delta_send_failures_total')?.get();
    const found = [await metrics.pending.get(), await metrics.sent.get(), unsent];
    return found.map(
      (metric) => metric?.values.find(({ labels }) => labels['queue'] === 'node-deltas')?.value,
    );
  };
  errors.push(new Error('the store is away'));
  decisions.mark(C1, [{ node: N1 }]);
  await decisions.drained();
  assert.deepEqual(await counts(), [0, 1, 1]);
});

test('drops the waiting nodes of a dropped cluster', async () => {
  const { decisions, sending } = deciding();
  sending.may = false;
  decisions.mark(C1, [{ node: N1 }]);
  for (let turns = 0; turns < 10; turns++) await nextTurn();
  assert.equal(decisions.size, 1);
  decisions.dropCluster(C1);
  for (let turns = 0; turns < 10; turns++) await nextTurn();
  assert.equal(decisions.size, 0);
});

test('decides nothing for a dropped cluster or after a stop', async () => {
  const { view, decisions, decided } = deciding();
  decisions.mark(C1, [{ node: N1 }]);
  decisions.dropCluster(C1);
  await decisions.drained();
  decisions.open(C1, view, () => true);
  decisions.mark(C1, [{ node: N1 }]);
  decisions.stop();
  await decisions.ended();
  for (let turns = 0; turns < 10; turns++) await nextTurn();
  assert.deepEqual([decided, decisions.size], [[], 0]);
});
