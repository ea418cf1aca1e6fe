import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf, type Scale } from '#test/chaos/plan.ts';

const SCALE: Scale = {
  seed: 7,
  nodes: 40,
  podsPerNode: 30,
  minutes: 10,
  killed: ['service'],
  stopped: ['service', 'API server'],
  clocked: ['service'],
};
const PLAN = planOf(SCALE);

test('derives the same plan from the same seed and another plan from another seed', () => {
  assert.deepEqual(planOf(SCALE), PLAN);
  assert.notDeepEqual(planOf({ ...SCALE, seed: 8 }), PLAN);
});

test('keeps all actions within the duration and in order', () => {
  for (const planned of [PLAN.deeds, PLAN.faults]) {
    const times = planned.map(({ at }) => at);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
    assert.ok(times.every((at) => at >= 0 && at < 600_000));
  }
});

test('contains every kind of fault and every kind of action', () => {
  const faults = PLAN.faults.map(({ act }) => (act.kind === 'weather' ? act.sky : act.kind));
  assert.deepEqual([...new Set(faults)].toSorted(), [
    ...['clock', 'cut', 'deaf', 'failing', 'kill', 'resetting', 'silent', 'slow', 'stop', 'throttled'],
  ]);
  const deeds = PLAN.deeds.map(({ act }) => act.kind);
  assert.deepEqual([...new Set(deeds)].toSorted(), ['delete', 'stamp', 'taint', 'tolerate', 'untaint']);
});

test('restores a removed taint only after 60 s, or with another value', () => {
  const removedAt = new Map<string, number>();
  for (const { at, act } of PLAN.deeds) {
    if (act.kind === 'tolerate' || act.kind === 'delete') continue;
    const taint = `${act.node} ${act.key}`;
    if (act.kind === 'untaint') removedAt.set(taint, at);
    else {
      assert.ok(act.kind === 'stamp' || at - (removedAt.get(taint) ?? -60_000) >= 60_000, taint);
      removedAt.delete(taint);
    }
  }
});
