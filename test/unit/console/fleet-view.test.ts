import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { FleetView } from '#shared/console/fleet-view.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';

const PROD = clusterName('prod');

/** A view of a fleet that answers when the test permits, with the count of its reads. */
function viewed(t: TestContext) {
  const clock = new DrivenClock(NOW);
  const state = { reads: 0, answer: Promise.resolve() };
  const clusters = async () => {
    state.reads += 1;
    await state.answer;
    return [PROD];
  };
  const { fleet, rulesStore } = embeddedFleet(t, { clusters: ['prod'], clock }, { clusters });
  const view = new FleetView({
    fleet,
    queues: async () => ({ unknown: [] }),
    clock,
    maxAgeMs: 1_000,
    builtIn: () => ({ state: 'unknown', evidence: '' }),
  });
  return { view, clock, state, rulesStore, fleet };
}

test('lookAnew returns a read that began after the call', async (t) => {
  const { view, state, fleet } = viewed(t);
  const { promise, resolve } = Promise.withResolvers<void>();
  state.answer = promise;
  const before = view.read();
  const read = view.readAgain();
  resolve();
  await perform({ kind: 'stop', reason: 'an incident' }, await fleet.operator());
  await before;
  assert.equal((await read).fleetStop?.reason, 'an incident');
  assert.equal(state.reads, 2);
});

for (const [tookMs, goodForMs] of [
  [2_000, 20_000],
  [30_000, 50_000],
] as const)
  test(`caches a read of ${tookMs} ms for longer, to spare the store, and for 20 s at most`, async (t) => {
    const { view, clock, state } = viewed(t);
    const { promise, resolve } = Promise.withResolvers<void>();
    state.answer = promise;
    const first = view.read();
    await clock.advanceTo(NOW + tookMs);
    resolve();
    await first;
    await clock.advanceTo(NOW + goodForMs - 1);
    await view.read();
    assert.equal(state.reads, 1);
    await clock.advanceTo(NOW + goodForMs);
    await view.read();
    assert.equal(state.reads, 2);
  });
