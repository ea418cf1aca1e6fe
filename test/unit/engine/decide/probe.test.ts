import assert from 'node:assert/strict';
import { test } from 'node:test';
import { passProbeOn } from '#shared/engine/decide/probe.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { probeRef, probeTimerAt } from '#shared/eviction/probe.ts';
import { ProofsInMemory } from '#test/world/proofs-in-memory.ts';
import { scriptedWorld } from '../../deltas/scripted-world.ts';

const CLUSTER = clusterName('c1');
const SENT_AT = Date.UTC(2026, 0, 1);
const away = () => Promise.reject(new Error('away'));

function bench() {
  const trace = new ProofsInMemory();
  const world = { ...scriptedWorld(), trace };
  const pass = async (isTraced: boolean, deps = world) => {
    await passProbeOn(probeRef(CLUSTER), { sentAt: SENT_AT, sequence: 1, isTraced }, deps);
    return { armed: world.armed, tracedAt: await trace.tracedAt(CLUSTER) };
  };
  return { world, pass };
}

test('a probe is forwarded by a timer that fires immediately, and leaves a trace only if it is traced', async () => {
  const armed = [probeTimerAt(SENT_AT)];
  assert.deepEqual(await bench().pass(false), { armed, tracedAt: undefined });
  assert.deepEqual(await bench().pass(true), { armed, tracedAt: SENT_AT });
  const untraceable = scriptedWorld();
  await passProbeOn(probeRef(CLUSTER), { sentAt: SENT_AT, sequence: 1, isTraced: true }, untraceable);
  assert.deepEqual(untraceable.log.lines, []);
});

test('a probe is not forwarded where a delta would fail, and the log says why', async () => {
  const { world } = bench();
  const broken = [
    { leaseEpoch: away },
    { store: { ...world.store, load: away } as never },
    { timers: { arm: away } },
  ];
  for (const brokenFact of broken) {
    const { world, pass } = bench();
    assert.deepEqual(await pass(true, { ...world, ...brokenFact }), { armed: [], tracedAt: undefined });
    assert.deepEqual(world.log.lines, [
      {
        level: 'warn',
        event: 'takeover.probe-failed',
        fields: { cluster: CLUSTER, error: new Error('away') },
      },
    ]);
  }
});
