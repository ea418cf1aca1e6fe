import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Context } from 'aws-lambda';
import { createHandler } from '#functions/evict/handler.ts';
import { encodeCountdowns } from '#shared/aws/due-message.ts';
import { applyDeltas } from '#shared/engine/decide/apply-deltas.ts';
import { countingDown, EVENT_REASON, heldBack } from '#shared/engine/evict/events.ts';
import { countdownOf } from '#shared/engine/news.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import {
  after,
  at,
  nodeDelta,
  pod,
  recordIn,
  ref,
  rules,
  taint,
  tolerating,
} from '#test/unit/eviction/builders.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { benchAfter, EvictBench, ruled, STOP } from './evict-bench.ts';

const record = recordIn(after(nodeDelta(1)));
assert.ok(record);
const countdown = { ...countdownOf(record), moved: false };
const DUE = '2026-01-01T00:01:00Z';
const BECAUSE = 'because it tolerates a:NoExecute for 1m (tolerations[0])';

describe('an Event of Taintward', () => {
  test('has the deadline, the taint and the toleration of a pod', () => {
    const { reason, type, message } = countingDown(countdown, false);
    assert.deepEqual(
      [type, reason, message],
      ['Normal', 'TaintwardEvictionScheduled', `The pod will be evicted at ${DUE} ${BECAUSE}`],
    );
  });

  test('reports that a pod does not tolerate its taint', () => {
    const intolerant = recordIn(after(nodeDelta(1, { pods: [pod('u1', { tolerations: [] })] })));
    assert.ok(intolerant);
    const { message } = countingDown({ ...countdownOf(intolerant), moved: false }, false);
    assert.equal(
      message,
      'The pod will be evicted at 2026-01-01T00:00:01Z because it does not tolerate a:NoExecute',
    );
  });

  test('names each taint that sets the deadline', () => {
    const taints = [taint('a'), taint('b')];
    const both = recordIn(after(nodeDelta(1, { taints, pods: [pod('u1', { tolerations: [] })] })));
    assert.ok(both);
    const { message } = countingDown({ ...countdownOf(both), moved: false }, false);
    assert.match(message, / because it does not tolerate a:NoExecute and does not tolerate b:NoExecute$/);
  });

  test('reports a moved deadline, and an eviction that would happen in enforce mode', () => {
    assert.match(
      countingDown({ ...countdown, moved: true }, false).message,
      /^Eviction rescheduled\. The pod will be evicted at /,
    );
    assert.equal(countingDown({ ...countdown, moved: true }, false).reason, 'TaintwardEvictionRescheduled');
    assert.match(countingDown(countdown, true).message, /^In enforce mode, the pod would be evicted at /);
    assert.deepEqual(
      [heldBack(record, { kind: 'observe' }).reason, heldBack(record, { kind: 'observe' }).message],
      ['TaintwardWouldEvict', `In enforce mode, the pod would have been evicted at ${DUE} ${BECAUSE}`],
    );
  });

  test('names the gate of a pod', () => {
    const until = at(3600);
    const words: readonly (readonly [Exclude<EvictionGate, { kind: 'observe' }>, string])[] = [
      [{ kind: 'stopped', scope: 'fleet' }, 'the stop of all clusters'],
      [{ kind: 'stopped', scope: 'cluster', until }, 'the stop of the cluster until 2026-01-01T01:00:00Z'],
      [{ kind: 'hold', id: 'h1' }, 'hold h1'],
      [{ kind: 'excluded', revision: 1, guardRevision: 0 }, 'the policy (excluded)'],
      [{ kind: 'guard', scope: 'zone', trippedAt: at(0), revision: 1, guardRevision: 1 }, 'the guard'],
      [
        { kind: 'node-alive', renewedAt: at(50), until: at(90), revision: 1, guardRevision: 0 },
        'its node, which is alive: its Lease was renewed at 2026-01-01T00:00:50Z, and is read again when it expires',
      ],
    ];
    for (const [cause, text] of words) {
      const { reason, message } = heldBack(record, cause);
      assert.deepEqual(
        [reason, message],
        ['TaintwardEvictionHeld', `Eviction held by ${text}. The pod has been due since ${DUE} ${BECAUSE}`],
      );
    }
  });
});

test('posts the countdowns that a delta function announces', async () => {
  const bench = new EvictBench();
  const [body = ''] = encodeCountdowns({ ...ref, pods: [countdown] });
  await createHandler(bench)(sqsEvent(sqsRecord(body), sqsRecord(body)), {} as Context);
  assert.deepEqual(bench.causes, ['TaintwardEvictionScheduled']);
});

test('reports that a pod will be evicted in enforce mode, and would be evicted in observe mode', async () => {
  const [body = ''] = encodeCountdowns({ ...ref, pods: [countdown] });
  for (const [mode, words] of [
    ['enforce', 'The pod will'],
    ['observe', 'In enforce mode, the pod would'],
  ] as const) {
    const bench = new EvictBench();
    bench.ruling = ruled({ mode });
    await createHandler(bench)(sqsEvent(sqsRecord(body)), {} as Context);
    assert.ok(bench.cluster.events[0]?.message.startsWith(`${words} be evicted`));
  }
});

const eventsAfter = async (ruling: Rules, tolerations = [tolerating('a', 60)]) => {
  const bench = await benchAfter([nodeDelta(1)], [livePod('u1', { tolerations })]);
  bench.ruling = ruling;
  await bench.pass();
  await bench.redelivered();
  return bench.causes;
};

test('posts a single Event for a held, would-be or rescheduled eviction', async () => {
  assert.deepEqual(await eventsAfter({ ...rules, stops: [STOP] }), ['TaintwardEvictionHeld']);
  assert.deepEqual(await eventsAfter(ruled({ mode: 'observe' })), ['TaintwardWouldEvict']);
  assert.deepEqual(await eventsAfter(rules, [tolerating('a', 90)]), ['TaintwardEvictionRescheduled']);
  assert.deepEqual(await eventsAfter(rules), [EVENT_REASON]);
});

test('posts an Event for each hold of one pod, and one for a message that is delivered twice', async () => {
  const bench = await benchAfter([nodeDelta(1)], [livePod('u1')]);
  const hold = (id: string): Rules => ({
    ...rules,
    holds: [{ id, target: { kind: 'node', node: ref.node }, actor: 'anna', at: at(60), reason: 'a test' }],
  });
  const heldTwice = async (id: string) => {
    bench.ruling = hold(id);
    await bench.pass();
    await bench.redelivered();
  };
  await heldTwice('h1');
  bench.ruling = rules;
  await bench.clock.advanceTo(at(70));
  // The release frees the pod, and the second hold comes before its turn.
  await applyDeltas([nodeDelta(2)], {
    ...bench,
    announce: async () => undefined,
    leaseEpoch: async () => undefined,
  });
  await bench.clock.advanceTo(at(130));
  await heldTwice('h2');
  assert.deepEqual(
    bench.cluster.events.map(({ message }) => message.match(/hold h\d/)?.[0]),
    ['hold h1', 'hold h2'],
  );
});
