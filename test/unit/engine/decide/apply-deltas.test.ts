import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import fc from 'fast-check';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import { applyDeltas, mayJoin } from '#shared/engine/decide/apply-deltas.ts';
import { TimerError } from '#shared/engine/timers.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { QueueError } from '#shared/state/sender.ts';
import { ContendedPartitionError, StoreError } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { outcomesOf } from '#test/contracts/partition-builders.ts';
import {
  at,
  nodeDelta,
  pod,
  podDelta,
  podGone,
  ref,
  rules,
  taint,
  tolerating,
} from '#test/unit/eviction/builders.ts';
import { inNoTime } from '#test/world/driven-timers.ts';
import { type ScriptedWorld, scriptedWorld } from '../../deltas/scripted-world.ts';

const recordsIn = async (world: ScriptedWorld): Promise<readonly EvictionRecord[]> => {
  const { scheduled } = await world.store.load(ref, at(0));
  return [...scheduled.values()];
};
const states = async (world: ScriptedWorld) =>
  Object.entries(outcomesOf(await world.store.load(ref, at(0)))).map((state) => state.join(' '));
const announced = (world: ScriptedWorld) =>
  world.dueQueue.sent
    .map(({ body }) => parseDueMessage(body))
    .flatMap((message) =>
      message.kind === 'canceled' ? message.pods.map(({ uid }) => `${uid} ${message.version.sequence}`) : [],
    );
const logged = (world: ScriptedWorld) => world.log.lines.map(({ event }) => event);

const BY_ANNA = { actor: 'anna', at: at(50), reason: 'because' };
const untaint = nodeDelta(20, { taints: [] });

async function worldAfter(...deltas: readonly Delta[]): Promise<ScriptedWorld> {
  const world = scriptedWorld();
  for (const delta of deltas) await applyDeltas([delta], world);
  return world;
}

/** Returns a world in which the hold h1 holds the pod u1. */
async function heldWorld(end: { readonly until?: EpochMs } = {}): Promise<ScriptedWorld> {
  const world = await worldAfter(nodeDelta(1));
  const held = { by: { kind: 'hold', id: 'h1', ...end }, since: at(60), ...end } as const;
  const schedule = (await recordsIn(world)).map((record) => ({ ...record, held }));
  await world.store.commit(ref, 1, { schedule, end: [], live: true }, at(60));
  return world;
}

test('writes records and arms timers for a delta', async () => {
  const world = await worldAfter(nodeDelta(1, { pods: [pod('u1'), pod('u2', { podSince: at(10) })] }));
  assert.deepEqual(await states(world), ['u1 scheduled', 'u2 scheduled']);
  assert.deepEqual(world.armed, [at(60), at(70)]);
  assert.deepEqual(logged(world), ['node.changed', 'eviction.scheduled', 'eviction.scheduled']);
});

test('distinguishes pods of two clusters with the same UID', async () => {
  const other = { ...ref, cluster: clusterName('c2') };
  const world = await worldAfter(nodeDelta(1), nodeDelta(1, { ref: other }));
  await applyDeltas([podGone(2, { ref: other })], world);
  await applyDeltas([nodeDelta(3, { ref: other, pods: [] })], world);
  await applyDeltas([nodeDelta(4, { ref: other, taints: [] })], world);
  assert.deepEqual(await states(world), ['u1 scheduled']);
});

test('writes nothing for a delta that changes nothing', async () => {
  const world = await worldAfter(nodeDelta(1), nodeDelta(1));
  assert.equal(world.store.commits, 1);
  assert.deepEqual(world.armed, [at(60), at(60)]);
});

test('rearms the end of a hold after a gap', async () => {
  const world = await heldWorld({ until: at(900) });
  const holds = [{ id: 'h1', target: { kind: 'node', node: ref.node }, until: at(900), ...BY_ANNA } as const];
  const holding = { ...world, rules: async () => ({ ...rules, holds }) };
  await applyDeltas([nodeDelta(100, { wake: true })], holding);
  assert.deepEqual(world.armed, [at(60), at(900)]);
});

test('arms the slot of a released pod', async () => {
  const world = await heldWorld();
  const policy = { ...rules.policy, releaseRate: 10 };
  const ranked = nodeDelta(120, { pods: [pod('u1', { rank: 100 })], wake: true });
  await applyDeltas([ranked], {
    ...world,
    rules: async () => ({ ...rules, policy }),
    clock: { now: () => at(120) },
  });
  assert.deepEqual(world.armed, [at(60), at(130)]);
});

test('writes nothing for a pod that tolerates everything on a tainted node', async () => {
  const world = await worldAfter(
    nodeDelta(1),
    podDelta(2, { pod: pod('u2', { tolerations: [{ operator: 'Exists' }] }) }),
  );
  assert.equal(world.store.commits, 1);
});

test('stores that the node is live until it has neither taints nor scheduled pods', async () => {
  const world = scriptedWorld();
  const commit = mock.method(world.store, 'commit');
  const others = [podDelta(2, { pod: pod('u2') }), podGone(3)] as const;
  for (const deltas of [[podDelta(1)], others, [untaint]] as const) await applyDeltas(deltas, world);
  assert.deepEqual(
    commit.mock.calls.map(({ arguments: [, , { live }] }) => live),
    [true, true, false],
  );
});

test('reads the records of the pods of all deltas, or of the whole node for a delta of the node', async () => {
  const world = scriptedWorld();
  const load = mock.method(world.store, 'load');
  await applyDeltas([podDelta(1), podGone(2, { uid: podUid('u2') })], world);
  await applyDeltas([nodeDelta(3)], world);
  assert.deepEqual(
    load.mock.calls.map(({ arguments: [, , only] }) => only),
    [['u1', 'u2'], undefined],
  );
});

test('asks for no announcement without an Event to post', async () => {
  const world = scriptedWorld();
  const announce = mock.method(world, 'announce');
  const brief = nodeDelta(1, { pods: [pod('u1', { tolerations: [] })] });
  for (const delta of [brief, podDelta(1, { pod: pod('u2') })]) await applyDeltas([delta], world);
  assert.deepEqual(
    announce.mock.calls.map(({ arguments: [, { canceled, countdowns }] }) => [canceled, countdowns.length]),
    [[[], 1]],
  );
});

test('announces a countdown once, for any number of changes of its pod', async () => {
  const world = await worldAfter(nodeDelta(1), podDelta(20), podDelta(21));
  const kinds = world.dueQueue.sent.map(({ body }) => parseDueMessage(body).kind);
  assert.deepEqual(kinds, ['countdowns']);
});

test('neither logs nor announces a resync', async () => {
  const world = await worldAfter(nodeDelta(1), nodeDelta(20));
  assert.deepEqual(logged(world), ['node.changed', 'eviction.scheduled']);
});

describe('the log', () => {
  const longer = pod('u1', { tolerations: [tolerating('a', 90)] });
  const deleted = { ...pod(), deleted: { at: at(5), by: 'taint-manager' } } as const;
  const fields = { ...ref, namespace: 'default', pod: 'pod-u1', uid: 'u1' };
  const scheduled = { ...fields, dueAt: at(60), taints: ['a:NoExecute'] };
  const changed = (delta: string, ...taints: readonly object[]) =>
    ['node.changed', { ...ref, delta, taints }] as const;
  const A = { key: 'a', effect: 'NoExecute' };
  const start = [
    changed('1-1', A),
    ['eviction.scheduled', { ...scheduled, delta: '1-1', observed: true }],
  ] as const;
  const canceled = { ...scheduled, delta: '1-20', eventPosted: true };

  const CASES: readonly (readonly [string, readonly Delta[], readonly (readonly [string, object])[]])[] = [
    ['a pod that is not scheduled', [nodeDelta(1, { pods: [] })], [changed('1-1', A)]],
    [
      'a deleted node, whose taint has a value',
      [
        nodeDelta(1, { taints: [taint('a', 0, 'v')], pods: [] }),
        nodeDelta(2, { taints: [], deletedAt: at(2), pods: [] }),
      ],
      [
        changed('1-1', { ...A, value: 'v' }),
        ['node.changed', { ...ref, delta: '1-2', taints: [], deletedAt: at(2) }],
      ],
    ],
    [
      'a later deadline',
      [nodeDelta(1), podDelta(2, { pod: longer })],
      [...start, ['eviction.rescheduled', { ...scheduled, delta: '1-2', dueAt: at(90), observed: true }]],
    ],
    [
      'a removed taint',
      [nodeDelta(1), untaint],
      [...start, changed('1-20'), ['eviction.canceled', { ...canceled, reason: 'taint-removed' }]],
    ],
    [
      'a removed pod',
      [nodeDelta(1), podGone(20)],
      [...start, ['eviction.canceled', { ...canceled, reason: 'pod-gone' }]],
    ],
    [
      'a pod that the built-in controller evicted',
      [nodeDelta(1), podGone(20, { deleted })],
      [...start, ['pod.evicted-externally', { ...scheduled, delta: '1-20', deletedAt: at(5) }]],
    ],
    [
      'a pod that the built-in controller evicted before it was scheduled',
      [nodeDelta(1, { pods: [] }), podGone(20, { deleted })],
      [changed('1-1', A), ['pod.evicted-externally', { ...scheduled, delta: '1-20', deletedAt: at(5) }]],
    ],
  ];
  for (const [name, deltas, lines] of CASES)
    test(`has these lines of ${name}`, async () => {
      const world = scriptedWorld();
      const observing = { ...world, rules: async () => ({ ...rules, policy: DEFAULT_POLICY }) };
      for (const delta of deltas) await applyDeltas([delta], observing);
      assert.deepEqual(
        world.log.lines.map((line) => [line.event, line.fields]),
        lines,
      );
    });

  test('has a line of a pod that is released or confirmed, as stored', async () => {
    const world = await heldWorld();
    await applyDeltas([nodeDelta(70, { wake: true })], { ...world, clock: { now: () => at(70) } });
    await applyDeltas([podDelta(80)], { ...world, clock: { now: () => at(80) } });
    assert.deepEqual(
      world.log.lines.slice(start.length).map((line) => [line.event, line.fields]),
      [
        ['eviction.released', { ...scheduled, delta: '1-1' }],
        ['eviction.confirmed', { ...scheduled, delta: '1-80' }],
      ],
    );
    const [{ held: heldBy, version } = {}] = await recordsIn(world);
    assert.deepEqual([heldBy, version], [undefined, { epoch: 1, sequence: 80 }]);
  });
});

describe('a countdown', () => {
  const counted = (world: ScriptedWorld) =>
    world.dueQueue.sent
      .map(({ body }) => parseDueMessage(body))
      .flatMap((message) => (message.kind === 'countdowns' ? message.pods : []))
      .map(({ uid, dueAt, moved }) => `${uid} ${moved ? 'moved to' : 'ends at'} ${(dueAt - at(0)) / 1000}`);

  test('is announced to evict, which posts the Event, when it starts or moves', async () => {
    const longer = [pod('u1', { tolerations: [tolerating('a', 90)] })];
    const world = await worldAfter(nodeDelta(1), nodeDelta(1), nodeDelta(2, { pods: longer }));
    assert.deepEqual(counted(world), ['u1 ends at 60', 'u1 moved to 90']);
  });

  test('is not announced when it is short', async () => {
    const pods = [29, 31, 32].map((seconds) =>
      pod(`u${seconds}`, { tolerations: [tolerating('a', seconds)] }),
    );
    assert.deepEqual(counted(await worldAfter(nodeDelta(1, { pods }))), ['u32 ends at 32']);
  });
});

describe('a cancellation', () => {
  test('is announced to evict, which posts the Event', async () => {
    const pods = [pod('u1'), pod('u2')];
    const world = await worldAfter(nodeDelta(1, { pods }), nodeDelta(20, { pods, taints: [] }));
    assert.deepEqual(announced(world), ['u1 20', 'u2 20']);
    assert.ok(logged(world).includes('eviction.canceled'));
  });

  test('is announced again when the delta is redelivered, because the first announcement may be lost', async () => {
    for (const end of [untaint, podGone(20)]) {
      const world = await worldAfter(nodeDelta(1), end, end, podDelta(1));
      assert.deepEqual(announced(world), ['u1 20', 'u1 20']);
    }
  });

  test('is not announced for a pod that disappeared after its deadline, as an evicted pod does', async () => {
    const world = await worldAfter(nodeDelta(1), podGone(61), podGone(61));
    assert.deepEqual(announced(world), []);
    assert.equal(world.log.lines.at(-1)?.fields['eventPosted'], false);
  });

  test('stays although the queue rejects its announcement', async () => {
    const world = await worldAfter(nodeDelta(1));
    world.dueQueue.refusal = { reason: 'no', permanent: true };
    await applyDeltas([untaint], world);
    assert.deepEqual(await states(world), ['u1 canceled']);
    assert.ok(logged(world).includes('event.enqueue-failed'));
  });

  test('is announced with the redelivered delta when the queue was unreachable', async () => {
    const world = await worldAfter(nodeDelta(1));
    world.dueQueue.unreachable = new QueueError('away');
    await assert.rejects(applyDeltas([untaint], world), QueueError);
    world.dueQueue.unreachable = undefined;
    await applyDeltas([untaint], world);
    assert.deepEqual(announced(world), ['u1 20']);
  });
});

describe('a delta rejects, and completes when it is redelivered, when', () => {
  test('the table is unreachable', async () => {
    const world = scriptedWorld();
    world.store.outages = 1;
    await assert.rejects(applyDeltas([nodeDelta(1)], world), StoreError);
    assert.deepEqual(world.armed, []);
    await applyDeltas([nodeDelta(1)], world);
    assert.deepEqual(world.armed, [at(60)]);
  });

  test('a timer cannot be armed after the commit', async () => {
    const world = scriptedWorld();
    world.timerOutages = 1;
    await assert.rejects(applyDeltas([nodeDelta(1)], world), TimerError);
    assert.deepEqual(await states(world), ['u1 scheduled']);
    await applyDeltas([nodeDelta(1)], world);
    assert.deepEqual(world.armed, [at(60)]);
    assert.deepEqual(logged(world), ['node.changed', 'eviction.scheduled']);
  });

  test('a timer cannot be armed, and a newer delta arrives before the redelivery', async () => {
    const world = scriptedWorld();
    world.timerOutages = 1;
    const overdue = podDelta(90);
    await assert.rejects(applyDeltas([overdue], world), TimerError);
    await applyDeltas([nodeDelta(100)], world);
    assert.deepEqual(world.armed, []);
    await applyDeltas([overdue], world);
    assert.deepEqual(world.armed, [at(90)]);
  });
});

describe('deltas of several pods of a node', () => {
  /** The final state, without its revision. */
  const left = async (world: ScriptedWorld) => {
    const { node, scheduled, ended } = await world.store.load(ref, at(0));
    return {
      node,
      scheduled: [...scheduled.values()].sort(byUid),
      ended: [...ended.values()].sort(byUid),
      armed: [...new Set(world.armed)].sort((a, b) => a - b),
      announced: announced(world),
      logged: world.log.lines,
    };
  };
  const byUid = (a: { readonly uid: string }, b: { readonly uid: string }) => (a.uid < b.uid ? -1 : 1);

  const someDeltas = fc
    .uniqueArray(
      fc.record({
        uid: fc.constantFrom('u1', 'u2', 'u3', 'u4', 'u5'),
        gone: fc.boolean(),
        seconds: fc.constantFrom(0, 45, 60, undefined),
        // Sequences newer and older than the stored state of the node.
        sequence: fc.integer({ min: 5, max: 15 }),
        epoch: fc.constantFrom(1, 1, 1, 0),
        taints: fc.constantFrom([taint('a')], [taint('a'), taint('b', 9)], [taint('a', 8)], []),
      }),
      { selector: ({ uid }) => uid, minLength: 1 },
    )
    .map((facts) =>
      facts.map(({ uid, gone, seconds, sequence, epoch, taints }): Delta => {
        const fields = { version: { epoch, sequence }, taints };
        if (gone) return podGone(sequence, { ...fields, uid: podUid(uid) });
        const tolerations = seconds === undefined ? [] : [tolerating('a', seconds)];
        return podDelta(sequence, { ...fields, pod: pod(uid, { tolerations }) });
      }),
    );

  test('have the same result as one by one, with a single commit', async () => {
    const known = nodeDelta(10, { pods: [pod('u1'), pod('u2'), pod('u3')] });
    await fc.assert(
      fc.asyncProperty(someDeltas, async ([first, ...behind]) => {
        assert.ok(first);
        const [together, apart] = [await worldAfter(known), await worldAfter(known, first, ...behind)];
        const { commits } = together.store;
        await applyDeltas([first, ...behind], together);
        assert.deepEqual(await left(together), await left(apart));
        assert.ok(together.store.commits - commits <= 1);
      }),
      { numRuns: 300 },
    );
  });

  test('are committed together unless a delta is of the same pod, of the whole node, or of another node', () => {
    const [first, second] = [podDelta(1), podDelta(2, { pod: pod('u2') })];
    const elsewhere = { ...ref, node: nodeName('n2') };
    assert.ok(mayJoin([first], second));
    assert.ok(mayJoin([first, second], podGone(3, { uid: podUid('u3') })));
    assert.ok(!mayJoin([first, second], podGone(3)));
    assert.ok(!mayJoin([first], nodeDelta(3)));
    assert.ok(!mayJoin([nodeDelta(1)], second));
    assert.ok(!mayJoin([first], podDelta(2, { ref: elsewhere, pod: pod('u2') })));
    const namesake = { ...ref, cluster: clusterName('c2') };
    assert.ok(!mayJoin([first], podDelta(2, { ref: namesake, pod: pod('u2') })));
  });
});

describe('a lost race', () => {
  test('is decided again on the state of the winner', async () => {
    const world = await worldAfter(podDelta(1));
    const { store } = world;
    const load = store.load.bind(store);
    let raced = false;
    store.load = async (...args) => {
      const partition = await load(...args);
      if (!raced) {
        raced = true;
        await applyDeltas([podDelta(30, { pod: pod('u1', { tolerations: [] }) })], world);
      }
      return partition;
    };
    await applyDeltas([nodeDelta(20, { taints: [taint('a'), taint('b', 20)] })], world);
    assert.equal((await recordsIn(world))[0]?.dueAt, at(30));
  });

  test('is retried a few times', async (t) => {
    const world = scriptedWorld();
    world.store.conflicts = 7;
    await inNoTime(t, () => applyDeltas([nodeDelta(1)], world));
    assert.equal(world.store.commits, 8);
  });

  test('rejects in the end, so that the queue redelivers the delta', async (t) => {
    const world = scriptedWorld();
    world.store.conflicts = Number.POSITIVE_INFINITY;
    await assert.rejects(
      inNoTime(t, () => applyDeltas([podDelta(1), podDelta(2, { pod: pod('u2') })], world)),
      ContendedPartitionError,
    );
    assert.deepEqual([world.store.commits, world.armed, await states(world)], [8, [], []]);
  });
});
