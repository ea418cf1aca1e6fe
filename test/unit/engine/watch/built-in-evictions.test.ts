import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Registry } from 'prom-client';
import { builtInEvictions, REPORTED_FOR_MS } from '#shared/engine/watch/built-in-evictions.ts';
import { ClusterFaults } from '#shared/engine/watch/cluster-faults.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName, podUid } from '#shared/eviction/identity.ts';
import type { Rules, Selection } from '#shared/eviction/policy.ts';
import type { TimedTaint } from '#shared/eviction/records.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { NODE_NOT_READY } from '#shared/taints/taint.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { tolerating } from '#test/unit/eviction/builders.ts';
import { enforced } from '#test/world/enforced-rules.ts';
import { livePod } from './live-objects.ts';

const NOW = Date.UTC(2026, 0, 1);
const ENFORCED = enforced({ comparisonOperators: false });
const act = { actor: 'anna', at: NOW, reason: 'it is busy' };

/** Returns a pod that the built-in controller has just evicted. */
const evicted = (uid = 'u1', fields: Partial<LivePod> = {}): LivePod =>
  livePod(uid, {
    podSince: NOW - 60_000,
    terminating: true,
    disrupted: true,
    tolerations: [],
    deleted: { at: NOW, by: 'taint-manager' },
    ...fields,
  });

function bench(
  fields: Partial<Rules> = {},
  keys: readonly string[] = ['a'],
  virtual: readonly string[] = [],
) {
  const clock = { at: NOW, now: () => clock.at };
  const faults = new ClusterFaults(clock);
  const log = recordingLog();
  const registry = new Registry();
  const taints = keys.map(
    (key): TimedTaint => ({
      key,
      effect: 'NoExecute',
      known: 'added',
      since: NOW - 1_000,
      ...(virtual.includes(key) ? { virtual: true } : {}),
    }),
  );
  const see = builtInEvictions(clusterName('c1'), {
    view: { taintsOf: () => ({ taints, zone: 'a', downSince: undefined }) },
    rules: () => ({ ...ENFORCED, ...fields }),
    metrics: relayMetrics(registry),
    faults,
    clock,
    log,
  });
  const counted = async () =>
    Number(/built_in_evictions_total\{cluster="c1"\} (\d+)/.exec(await registry.metrics())?.[1] ?? 0);
  return { clock, faults, log, see, counted };
}

const policy = ENFORCED.policy;
const STOPPED: Partial<Rules> = { stops: [{ ...act, scope: 'fleet' }] };
const trip = { scope: 'cluster', trippedAt: NOW - 500, nodes: 5, outOf: 9 } as const;

const SELECTED = {
  labels: { app: 'db' },
  annotations: { a: 'b' },
  owner: { kind: 'DaemonSet', name: 'agent' },
  priorityClassName: 'gold',
};

describe('an eviction by the built-in controller', () => {
  const excluding = (selection: Selection): Partial<Rules> => ({
    policy: { ...policy, exclude: [selection] },
  });
  const target = { kind: 'pod', namespace: 'default', name: 'pod-u1' } as const;
  const kept: Readonly<Record<string, Partial<Rules>>> = {
    held: { holds: [{ ...act, id: 'h1', target }] },
    excluded: excluding({ namespaces: ['default'] }),
    'excluded by its labels': excluding({ labels: { matchLabels: { app: 'db' } } }),
    'excluded by its owner': excluding({ ownerKinds: ['DaemonSet'] }),
    'excluded by its priority': excluding({ priorityClassNames: ['gold'] }),
    'excluded by its annotation': excluding({ annotations: { a: 'b' } }),
    stopped: STOPPED,
    guarded: { trips: [trip] },
  };
  for (const [what, fields] of Object.entries(kept))
    test(`counts once for a pod that is ${what}`, async () => {
      const { see, faults, log, counted } = bench(fields, [what === 'guarded' ? NODE_NOT_READY : 'a']);
      for (let times = 0; times < 3; times++) see(evicted('u1', SELECTED));
      assert.deepEqual(
        faults.list.map(({ type, count, since }) => [type, count, since]),
        [['built-in-evicts', 1, NOW]],
      );
      const [gate] = what.split(' ');
      const by = { held: { by: 'hold', hold: 'h1' }, guarded: { by: 'guard' } }[`${gate}`] ?? { by: gate };
      const about = { cluster: 'c1', node: 'n1', namespace: 'default', pod: 'pod-u1', uid: 'u1' };
      assert.deepEqual(log.lines, [
        { level: 'warn', event: 'pod.evicted-despite-hold', fields: { ...about, ...by } },
      ]);
      assert.equal(await counted(), 1);
    });

  test('is reported with the last pod, and with what keeps it', () => {
    const { see, faults } = bench(STOPPED);
    for (const uid of ['u1', 'u2', 'u1']) see(evicted(uid));
    const error =
      'The built-in controller, or another taint manager, evicts pods that Taintward keeps, the last default/pod-u2 (the stop of all clusters): switch it off, or take the cluster over.';
    assert.deepEqual(
      faults.list.map((fault) => [fault.error, fault.count]),
      [[error, 2]],
    );
  });

  for (const [ageMs, lastsMs] of [
    [REPORTED_FOR_MS / 2, REPORTED_FOR_MS / 2],
    [-60_000, REPORTED_FOR_MS],
  ] as const)
    test(`is reported for ${lastsMs} ms if it was ${ageMs} ms ago`, () => {
      const { clock, see, faults } = bench(STOPPED);
      see(evicted('u1', { deleted: { at: NOW - ageMs, by: 'taint-manager' } }));
      clock.at += lastsMs - 1;
      assert.equal(faults.list.length, 1);
      clock.at += 1;
      assert.deepEqual(faults.list, []);
    });

  for (const [what, seconds, virtual, isReported] of [
    ['later than the other by more than clocks differ', 12, [], true],
    ['as late as clocks differ', 11, [], false],
    ['later, but the other is none for the built-in controller', 12, ['a'], false],
  ] as const)
    test(`is a fault where policy excludes pods for one taint: a second one is due ${what}: ${isReported}`, () => {
      const { see, faults } = bench(excluding({ taints: ['a'] }), ['a', 'b'], virtual);
      see(evicted('u1', { tolerations: [tolerating('b', seconds)] }));
      assert.equal(faults.list.length, isReported ? 1 : 0);
    });

  const old = { deleted: { at: NOW - REPORTED_FOR_MS, by: 'taint-manager' } } as const;
  for (const [what, fields, pod] of [
    ['that nothing keeps', {}, evicted()],
    ['of a cluster that is only observed', { policy: { ...policy, mode: 'observe' } }, evicted()],
    ['that the policy excludes for another taint alone', excluding({ taints: ['b'] }), evicted()],
    ['that somebody deleted otherwise', STOPPED, evicted('u1', { deleted: { at: NOW, by: 'other' } })],
    ['that this service evicted', STOPPED, livePod('u1', { terminating: true, disrupted: true })],
    ['that terminates since long ago', STOPPED, evicted('u1', old)],
  ] as const satisfies readonly (readonly [string, Partial<Rules>, LivePod])[])
    test(`is no fault for a pod ${what}`, async () => {
      const { see, faults, log, counted } = bench(fields, ['a', 'b']);
      see(pod);
      assert.deepEqual([faults.list, log.lines, await counted()], [[], [], 0]);
    });

  test('is reported until an hour after the last eviction, and logged for at most a hundred pods', async () => {
    const { clock, see, faults, log, counted } = bench({ stops: [{ ...act, scope: 'cluster' }] });
    for (let index = 0; index < 150; index++) {
      clock.at = NOW + index;
      see(evicted(`u${index}`, { uid: podUid(`u${index}`), deleted: { at: clock.at, by: 'taint-manager' } }));
    }
    assert.deepEqual([faults.list[0]?.count, log.lines.length, await counted()], [150, 100, 150]);
    clock.at += REPORTED_FOR_MS - 1;
    assert.equal(faults.list.length, 1);
    clock.at += 1;
    assert.deepEqual(faults.list, []);
  });
});
