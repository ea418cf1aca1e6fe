import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { NodeDelta, PodFacts } from '#shared/eviction/facts.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import type { HoldTarget, Rules, Selection } from '#shared/eviction/policy.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { at, ref, rules } from './builders.ts';
import { act, governed, isOdd, ofIndex, PlayedNode, play } from './played-node.ts';
import { longRelayHistory } from './relay-history.ts';

/** Reports whether the rules block an eviction, by a direct formula. All taints here are custom taints. */
function isForbidden(given: Rules, { uid, name }: PodFacts, dueBy: readonly string[], now: EpochMs): boolean {
  const { policy, stops, holds, trips } = given;
  const stands = ({ until: end = Infinity }: { readonly until?: EpochMs }) => now < end;
  const selects = (selection: Selection, key: string) =>
    stands(selection) &&
    !selection.namespaces?.includes('other') &&
    (selection.taints ?? [key]).includes(key) &&
    (!(selection.annotations ?? selection.ownerKinds ?? selection.priorityClassNames) || isOdd(uid)) &&
    (!selection.labels || (selection.labels.matchLabels !== undefined) === isOdd(uid));
  const isHeld = ({ target: held }: { readonly target: HoldTarget }) =>
    (held.kind === 'node' && held.node === ref.node) ||
    (held.kind === 'pod' && held.name === name && held.namespace === 'default');
  if (policy.mode === 'observe') return true;
  if (stops.some(stands) || holds.some((each) => stands(each) && isHeld(each))) return true;
  if (trips.some(({ scope }) => scope === 'customTaints')) return true;
  return dueBy.every(
    (key) =>
      policy.exclude.some((each) => selects(each, key)) ||
      (policy.include.length > 0 && !policy.include.some((each) => selects(each, key))),
  );
}

test('evicts no pod that the rules block, for any deltas and any earlier rules', () => {
  let evictions = 0;
  fc.assert(
    fc.property(governed, ({ deltas, ruled }) => {
      let current = rules;
      const played = new PlayedNode((pod, dueBy, now) => {
        evictions += 1;
        assert.equal(
          isForbidden(current, pod, dueBy, now),
          false,
          `${pod.uid} is evicted for ${dueBy.join()}`,
        );
      });
      for (const [index, delta] of deltas.entries()) {
        current = ofIndex(ruled)(index);
        played.receive(delta, current);
      }
    }),
    { numRuns: 500 },
  );
  assert.ok(evictions > 200, `there was hardly anything to evict: ${evictions}`);
});

test('evicts no pod in a cluster in observe mode', () => {
  fc.assert(
    fc.property(governed, ({ deltas, ruled }) => {
      const observed = ruled.map((oneRules) => ({
        ...oneRules,
        policy: { ...oneRules.policy, mode: 'observe' as const },
      }));
      assert.deepEqual(play(deltas, ofIndex(observed)).evicted, []);
    }),
    { numRuns: 300 },
  );
});

test('behaves the same with rules that block nothing', () => {
  const idle: Rules = {
    ...rules,
    policy: {
      ...rules.policy,
      exclude: [{ namespaces: ['other'] }],
      releaseRate: 0.5,
    },
    stops: [{ ...act, scope: 'cluster', until: at(0) }],
    holds: [{ ...act, id: 'h', target: { kind: 'node', node: nodeName('another') } }],
    trips: [{ scope: 'zone', zone: 'z', trippedAt: at(0), nodes: 3, outOf: 3 }],
  };
  fc.assert(
    fc.property(longRelayHistory, ({ deltas }) => {
      const [one, other] = [play(deltas, () => rules), play(deltas, () => idle)];
      assert.deepEqual(one.evicted, other.evicted);
      assert.deepEqual(one.partition, other.partition);
    }),
    { numRuns: 300 },
  );
});

test('evicts held pods when no gate remains, at the deadlines that they have without any rules', () => {
  fc.assert(
    fc.property(governed, ({ deltas, ruled }) => {
      const played = play(deltas, ofIndex(ruled));
      const last = deltas.at(-1);
      assert.ok(last?.kind === 'node');
      const ranked = last.pods.map((pod, rank) => ({ ...pod, rank }));
      const version = { ...last.version, sequence: last.version.sequence + 1 };
      const wake: NodeDelta = { ...last, version, pods: ranked, wake: true };
      const free: Rules = { ...rules, policyRevision: 1000, guardRevision: 1000 };
      played.receive(wake, free).pass(wake, free, last.observedAt + 60_000);
      const due = [...played.partition.scheduled.values()].filter(({ dueAt }) => dueAt <= last.observedAt);
      assert.deepEqual(due, []);
      const plain = play([...deltas, wake], () => rules).partition.scheduled;
      for (const { uid, dueAt } of played.partition.scheduled.values()) {
        assert.equal(plain.get(uid)?.dueAt ?? dueAt, dueAt);
      }
    }),
    { numRuns: 500 },
  );
});
