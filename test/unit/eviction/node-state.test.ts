import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Delta } from '#shared/eviction/facts.ts';
import { mergeNodeState, sameFacts, timeLiveTaints } from '#shared/eviction/node-state.ts';
import type { NodeState } from '#shared/eviction/records.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/node-condition-keys.ts';
import { at, nodeDelta, podDelta, podGone, taint } from './builders.ts';

const merged = (...deltas: readonly Delta[]): NodeState => {
  const state = deltas.reduce<NodeState | undefined>(mergeNodeState, undefined);
  assert.ok(state);
  return state;
};
const since = (state: NodeState) => state.taints.map((each) => each.since);

describe('a countdown', () => {
  test('starts when the relay first saw the taint', () => {
    assert.deepEqual(since(merged(nodeDelta(9, { taints: [taint('a', 7)] }))), [at(7)]);
  });

  test('goes on when the same relay saw the taint at the same moment, whatever its value', () => {
    const revalued = nodeDelta(2, { taints: [taint('a', 0, 'other')] });
    assert.deepEqual(since(merged(nodeDelta(1, { taints: [taint('a', 0, 'one')] }), revalued)), [at(0)]);
  });

  test('starts anew when the same relay saw the taint go and come back', () => {
    assert.deepEqual(since(merged(nodeDelta(1), nodeDelta(30, { taints: [taint('a', 30)] }))), [at(30)]);
  });

  test('goes on when another relay takes over, which cannot know better', () => {
    const successor = nodeDelta(30, { version: { epoch: 2, sequence: 1 }, taints: [taint('a', 30)] });
    const state = merged(nodeDelta(1), successor);
    assert.deepEqual(since(state), [at(0)]);
    assert.equal(state.taints[0]?.seenAt, at(30));
    const itsNext = nodeDelta(40, { version: { epoch: 2, sequence: 2 }, taints: [taint('a', 30)] });
    assert.deepEqual(since(merged(nodeDelta(1), successor, itsNext)), [at(0)]);
  });

  test('goes on through two take-overs, and restarts when the last relay sees it go', () => {
    const second = nodeDelta(30, { version: { epoch: 2, sequence: 1 }, taints: [taint('a', 30)] });
    const third = nodeDelta(50, { version: { epoch: 3, sequence: 1 }, taints: [taint('a', 50)] });
    const flap = nodeDelta(70, { version: { epoch: 3, sequence: 2 }, taints: [taint('a', 70)] });
    assert.deepEqual(since(merged(nodeDelta(1), second, third)), [at(0)]);
    assert.deepEqual(since(merged(nodeDelta(1), second, third, flap)), [at(70)]);
  });

  test('is one for not-ready and unreachable', () => {
    const swapped = nodeDelta(30, { taints: [taint(NODE_UNREACHABLE)] });
    const state = merged(nodeDelta(1, { taints: [taint(NODE_NOT_READY)] }), swapped);
    assert.deepEqual(since(state), [at(0)]);
    assert.equal(state.taints[0]?.key, NODE_UNREACHABLE);
  });

  test('is one for each other key', () => {
    const both = nodeDelta(30, { taints: [taint('a'), taint('b', 30)] });
    assert.deepEqual(since(merged(nodeDelta(1), both)), [at(0), at(30)]);
  });

  test('never starts later than the same relay saw the taint', () => {
    const successor = nodeDelta(1, { version: { epoch: 2, sequence: 1 }, taints: [taint('a', -5)] });
    assert.deepEqual(since(merged(nodeDelta(1), successor)), [at(-5)]);
  });
});

describe('what is known of a node', () => {
  test('does not change by older facts, but does hear that all pods were listed', () => {
    const state = merged(podDelta(20), nodeDelta(10, { taints: [] }));
    assert.deepEqual(state.taints, merged(podDelta(20)).taints);
    assert.deepEqual(state.version, { epoch: 1, sequence: 20 });
    assert.deepEqual(state.podsVersion, { epoch: 1, sequence: 10 });
  });

  test('keeps the newest moment at which all pods were listed', () => {
    assert.deepEqual(merged(nodeDelta(20), nodeDelta(10), podDelta(30)).podsVersion, {
      epoch: 1,
      sequence: 20,
    });
  });

  test('is as of the newest delta, also when the node went', () => {
    const gone = { deletedAt: at(20) };
    assert.equal(merged(nodeDelta(1), nodeDelta(20, gone), podGone(30, gone)).deletedAt, at(20));
    assert.equal(merged(nodeDelta(20, gone), nodeDelta(40)).deletedAt, undefined);
    assert.equal(merged(nodeDelta(40), nodeDelta(20, gone)).deletedAt, undefined);
  });
});

describe('two states say the same', () => {
  const state = merged(nodeDelta(1));
  test('whatever their versions', () => {
    assert.equal(sameFacts(state, merged(nodeDelta(2))), true);
  });

  test('with an empty value or with none', () => {
    assert.equal(sameFacts(state, merged(nodeDelta(1, { taints: [taint('a', 0, '')] }))), true);
  });

  const others: Readonly<Record<string, Delta>> = {
    'a taint more': nodeDelta(1, { taints: [taint('a'), taint('b')] }),
    'another key': nodeDelta(1, { taints: [taint('b')] }),
    'another value': nodeDelta(1, { taints: [taint('a', 0, 'v')] }),
    'another start': nodeDelta(1, { taints: [taint('a', 1)] }),
    'a deletion': nodeDelta(1, { deletedAt: at(1) }),
  };
  for (const [difference, delta] of Object.entries(others)) {
    test(`but not with ${difference}`, () => {
      assert.equal(sameFacts(state, merged(delta)), false);
    });
  }

  test('but not when there was none before', () => {
    assert.equal(sameFacts(undefined, state), false);
  });
});

describe('live taints', () => {
  test('are timed as stored, those not heard of yet from now, other effects not at all', () => {
    const live = [
      { key: 'a', value: 'new', effect: 'NoExecute' },
      { key: 'b', effect: 'NoExecute' },
      { key: 'c', effect: 'NoSchedule' },
    ];
    assert.deepEqual(
      timeLiveTaints(merged(nodeDelta(1)), live, at(50)).map(({ key, value, since }) => [key, value, since]),
      [
        ['a', 'new', at(0)],
        ['b', undefined, at(50)],
      ],
    );
    assert.equal(timeLiveTaints(undefined, live, at(50))[0]?.since, at(50));
  });
});
