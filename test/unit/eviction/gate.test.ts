import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { defined } from '#shared/defined.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import {
  type DuePod,
  findGate,
  isOfPod,
  isOfTaints,
  matchesLabels,
  mayStillHold,
  nextExpiry,
  storedGate,
} from '#shared/eviction/gate.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import type { Hold, HoldTarget, Policy, Rules, Stop, Trip } from '#shared/eviction/policy.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { LabelSelector } from '#shared/eviction/selectors.ts';
import { NODE_NOT_READY, NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import { aReason } from '#test/contracts/partition-builders.ts';
import { at, pod, rules } from './builders.ts';

const NOW = at(1000);

const saying = (policy: Partial<Policy>, more: Partial<Rules> = {}): Rules => ({
  ...rules,
  policy: { ...rules.policy, ...policy },
  ...more,
});

const due = (fields: Partial<DuePod> = {}): DuePod => ({
  node: nodeName('n1'),
  zone: 'a',
  dueBy: ['maintenance'],
  record: pod('u1', { owner: { kind: 'ReplicaSet', name: 'web-1' } }),
  traits: {
    owner: { kind: 'ReplicaSet', name: 'web-1' },
    labels: { app: 'web' },
    annotations: { 'example.com/keep': 'true' },
    priorityClassName: 'gold',
  },
  ...fields,
});

const kindOf = (given: Rules, subject: DuePod = due(), now = NOW) => findGate(given, subject, now)?.kind;

const act = { actor: 'anna', at: at(0), reason: 'because' };
const stop = (fields: Partial<Stop> = {}): Stop => ({ ...act, scope: 'cluster', ...fields });
const hold = (target: HoldTarget, fields: Partial<Hold> = {}): Hold => ({
  ...act,
  id: 'h1',
  target,
  ...fields,
});
const trip = (fields: Partial<Trip> = {}): Trip => ({
  scope: 'cluster',
  trippedAt: NOW,
  nodes: 3,
  outOf: 10,
  ...fields,
});

describe('a due pod', () => {
  test('is evicted in enforce mode without further rules, and held in observe mode', () => {
    assert.deepEqual([kindOf(rules), kindOf(saying({ mode: 'observe' }))], [undefined, 'observe']);
  });

  test('is held while its cluster or all clusters are stopped, also on a node out of service', () => {
    const gone = due({ dueBy: [NODE_OUT_OF_SERVICE] });
    for (const scope of ['cluster', 'fleet'] as const) {
      assert.equal(kindOf({ ...rules, stops: [stop({ scope })] }, gone), 'stopped');
    }
    const timed = { ...rules, stops: [stop({ until: NOW })] };
    assert.deepEqual([kindOf(timed, due(), NOW - 1), kindOf(timed)], ['stopped', undefined]);
  });

  test('is held in observe mode by the gate that would hold it in enforce mode, if there is one', () => {
    const node: HoldTarget = { kind: 'node', node: nodeName('n1') };
    const cases: readonly (readonly [EvictionGate['kind'], Parameters<typeof saying>])[] = [
      ['stopped', [{ mode: 'observe' }, { stops: [stop()] }]],
      ['hold', [{ mode: 'observe' }, { holds: [hold(node)] }]],
      ['guard', [{ mode: 'observe' }, { trips: [trip({ scope: 'customTaints' })] }]],
      ['excluded', [{ mode: 'observe', exclude: [{}] }]],
    ];
    for (const [kind, [policy, more]] of cases) {
      const observing = saying(policy, more);
      const gate = findGate(observing, due(), NOW);
      assert.ok(gate);
      assert.deepEqual([gate.kind, mayStillHold(gate, observing, NOW)], [kind, true]);
    }
  });

  const workloadOf = (kind: string, name: string, namespace = 'default'): HoldTarget => ({
    kind: 'workload',
    namespace,
    owner: { kind, name },
  });
  const named = (name: string, more: object = {}): HoldTarget => ({
    kind: 'pod',
    namespace: 'default',
    name,
    ...more,
  });
  const labeled = (labels: LabelSelector, namespace?: string): HoldTarget => ({
    kind: 'labels',
    labels,
    ...defined({ namespace }),
  });
  const targets: readonly (readonly [string, HoldTarget, boolean])[] = [
    ['its node', { kind: 'node', node: nodeName('n1') }, true],
    ['another node', { kind: 'node', node: nodeName('n2') }, false],
    ['its namespace', { kind: 'namespace', namespace: 'default' }, true],
    ['another namespace', { kind: 'namespace', namespace: 'x' }, false],
    ['a label of it', labeled({ matchLabels: { app: 'web' } }), true],
    ['a label of it in its namespace', labeled({ matchLabels: { app: 'web' } }, 'default'), true],
    ['a label of it elsewhere', labeled({ matchLabels: { app: 'web' } }, 'x'), false],
    [
      'another label',
      labeled({ matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] }),
      false,
    ],
    ['its zone', { kind: 'zone', zone: 'a' }, true],
    ['another zone', { kind: 'zone', zone: 'b' }, false],
    ['its workload', workloadOf('ReplicaSet', 'web-1'), true],
    ['one of its name elsewhere', workloadOf('ReplicaSet', 'web-1', 'x'), false],
    ['another kind of its name', workloadOf('Job', 'web-1'), false],
    ['its Deployment', workloadOf('Deployment', 'web'), true],
    ['the Deployment of another ReplicaSet', workloadOf('Deployment', 'we'), false],
    ['another workload of its kind', workloadOf('ReplicaSet', 'web-2'), false],
    ['a pod of its name elsewhere', named('pod-u1', { namespace: 'x' }), false],
    ['another pod of its namespace', named('pod-u2'), false],
    ['the pod', named('pod-u1'), true],
    ['the pod by its UID', named('pod-u1', { uid: pod('u1').uid }), true],
    ['a namesake by UID', named('pod-u1', { uid: pod('u2').uid }), false],
  ];
  for (const [what, target, holds] of targets) {
    test(`${holds ? 'stays' : 'goes'} while ${what} is held`, () => {
      assert.equal(kindOf({ ...rules, holds: [hold(target)] }), holds ? 'hold' : undefined);
      assert.equal(kindOf({ ...rules, holds: [hold(target, { until: NOW })] }), undefined);
    });
  }

  test('of a node without a known zone is held while any zone is held, as by the guard', () => {
    const held = { ...rules, holds: [hold({ kind: 'zone', zone: 'b' })] };
    assert.equal(kindOf(held, due({ zone: undefined })), 'hold');
  });

  test('that can’t be read is held by labels or a zone only if it was', () => {
    for (const target of [labeled({ matchLabels: { app: 'web' } }), { kind: 'zone', zone: 'a' } as const]) {
      const by = { kind: 'hold', id: 'h1' } as const;
      const record = { ...due().record, causes: [aReason('maintenance')] };
      const gateOf = (given: Partial<EvictionRecord>) =>
        storedGate({ ...rules, holds: [hold(target)] }, { node: due().node }, { ...record, ...given }, NOW);
      assert.deepEqual([gateOf({}), gateOf({ held: { by, since: NOW } })], [undefined, by]);
    }
  });

  test('belongs to no workload without an owner', () => {
    for (const kind of ['Deployment', 'ReplicaSet', 'Pod']) {
      const held = { ...rules, holds: [hold(workloadOf(kind, 'web'))] };
      assert.equal(kindOf(held, due({ record: pod('u1') })), undefined);
    }
  });

  test('is held until the end of the gate, and indefinitely without an end', () => {
    const revisions = { revision: 1, guardRevision: 0 };
    const node: HoldTarget = { kind: 'node', node: nodeName('n1') };
    const until = NOW + 1;
    const cases: readonly (readonly [Rules, EvictionGate])[] = [
      [saying({}, { stops: [stop({ until })] }), { kind: 'stopped', scope: 'cluster', until }],
      [saying({}, { stops: [stop()] }), { kind: 'stopped', scope: 'cluster' }],
      [saying({}, { holds: [hold(node, { until })] }), { kind: 'hold', id: 'h1', until }],
      [saying({}, { holds: [hold(node)] }), { kind: 'hold', id: 'h1' }],
      [saying({ exclude: [{ taints: ['maintenance'], until }] }), { kind: 'excluded', ...revisions, until }],
      [saying({ exclude: [{ taints: ['maintenance'] }] }), { kind: 'excluded', ...revisions }],
    ];
    for (const [given, gate] of cases) assert.deepEqual(findGate(given, due(), NOW), gate);
  });

  test('is held until the earliest end among the exclusions of its taints', () => {
    const both = due({ dueBy: ['maintenance', 'other'] });
    const exclude = [
      { taints: ['maintenance'], until: NOW + 2 },
      { taints: ['other'], until: NOW + 1 },
    ];
    const gate = findGate(saying({ exclude }), both, NOW);
    assert.equal(gate?.kind === 'excluded' && gate.until, NOW + 1);
  });

  test('belongs to the Deployment or CronJob whose name is the name of its owner without the last part', () => {
    const isHeld = (workload: string, owner: string) => {
      const [kind = '', name = ''] = workload.split('/');
      const [ownerKind = '', ownerName = ''] = owner.split('/');
      const record = pod('u1', { owner: { kind: ownerKind, name: ownerName } });
      return kindOf({ ...rules, holds: [hold(workloadOf(kind, name))] }, due({ record })) === 'hold';
    };
    assert.ok(isHeld('Deployment/web', 'ReplicaSet/web-5d4f8c7b9'));
    assert.ok(!isHeld('Deployment/web', 'ReplicaSet/web-admin-5d4f8c7b9'));
    assert.ok(!isHeld('Deployment/web', 'ReplicaSet/web'));
    assert.ok(!isHeld('Deployment/web', 'Job/web-1'));
    assert.ok(isHeld('CronJob/nightly', 'Job/nightly-29387520'));
    assert.ok(!isHeld('StatefulSet/web', 'ReplicaSet/web-5d4f8c7b9'));
  });

  test('is held by an exclusion only when every condition of the entry matches', () => {
    const entry = {
      namespaces: ['default'],
      labels: { matchLabels: { app: 'web' } },
      annotations: { 'example.com/keep': 'true' },
      ownerKinds: ['Job', 'ReplicaSet'],
      priorityClassNames: ['gold', 'system-node-critical'],
      taints: ['maintenance'],
    };
    assert.equal(kindOf(saying({ exclude: [entry] })), 'excluded');
    assert.equal(kindOf(saying({ exclude: [{ ...entry, namespaces: ['other', 'def*'] }] })), 'excluded');
    for (const other of [
      { ...entry, namespaces: ['kube-system', 'kube-*'] },
      { ...entry, labels: { matchLabels: { app: 'db' } } },
      { ...entry, annotations: { 'example.com/keep': 'false' } },
      { ...entry, annotations: { ...entry.annotations, constructor: 'true' } },
      { ...entry, ownerKinds: ['DaemonSet'] },
      { ...entry, priorityClassNames: ['system-node-critical'] },
      { ...entry, taints: ['other'] },
      { ...entry, until: NOW },
    ]) {
      assert.equal(kindOf(saying({ exclude: [other] })), undefined, JSON.stringify(other));
    }
  });

  test('without an owner, a priority class, and annotations is selected by none of them', () => {
    const bare = due({ traits: {} });
    for (const entry of [
      { ownerKinds: ['ReplicaSet'] },
      { priorityClassNames: ['gold'] },
      { annotations: { 'example.com/keep': 'true' } },
    ]) {
      assert.equal(kindOf(saying({ exclude: [entry] }), bare), undefined, JSON.stringify(entry));
      assert.equal(kindOf(saying({ include: [entry] }), bare), 'excluded', JSON.stringify(entry));
    }
  });

  test('that can’t be read is excluded by the owner that its record names, and by nothing that only the pod shows', () => {
    const record = { ...due().record, causes: [aReason('maintenance')] };
    const kindOfUnread = (policy: Partial<Policy>, traits?: DuePod['traits']) =>
      storedGate(saying(policy), { node: due().node, ...(traits ? { traits } : {}) }, record, NOW)?.kind;
    assert.equal(kindOfUnread({ exclude: [{ ownerKinds: ['ReplicaSet'] }] }), 'excluded');
    assert.equal(kindOfUnread({ include: [{ ownerKinds: ['Job'] }] }), 'excluded');
    for (const entry of [
      { labels: { matchLabels: { app: 'web' } } },
      { annotations: { 'example.com/keep': 'true' } },
      { priorityClassNames: ['gold'] },
    ]) {
      assert.equal(kindOfUnread({ exclude: [entry] }, due().traits), 'excluded', JSON.stringify(entry));
      assert.equal(kindOfUnread({ exclude: [entry] }), undefined, JSON.stringify(entry));
      assert.equal(
        kindOfUnread({ include: [{ ...entry, ownerKinds: ['Job'] }] }),
        undefined,
        JSON.stringify(entry),
      );
    }
  });

  test('is evicted when one of two causing taints is excluded, and held when both are', () => {
    const both = due({ dueBy: ['maintenance', 'other'] });
    assert.equal(kindOf(saying({ exclude: [{ taints: ['maintenance'] }] }), both), undefined);
    assert.equal(kindOf(saying({ exclude: [{ taints: ['maintenance', 'other'] }] }), both), 'excluded');
  });

  test('is evicted only if an include entry selects it, and an expired entry selects nothing', () => {
    assert.equal(kindOf(saying({ include: [{ namespaces: ['default'] }] })), undefined);
    assert.equal(kindOf(saying({ include: [{ namespaces: ['other'] }] })), 'excluded');
    assert.equal(
      kindOf(saying({ include: [{ namespaces: ['other'] }, { namespaces: ['default'] }] })),
      undefined,
    );
    assert.equal(kindOf(saying({ include: [{ namespaces: ['default'], until: NOW }] })), 'excluded');
  });
});

describe('the guard', () => {
  const down = due({ dueBy: [NODE_NOT_READY], downSince: NOW });
  const guarded = (...trips: readonly Trip[]): Rules => ({ ...rules, trips });

  test('holds pods that are evicted because nodes are down, and no others', () => {
    assert.equal(kindOf(guarded(trip()), down), 'guard');
    assert.equal(kindOf(guarded(trip())), undefined);
    assert.equal(kindOf(guarded(trip()), due({ dueBy: [NODE_NOT_READY, 'maintenance'] })), undefined);
  });

  test('holds pods that are evicted by custom taints when it tripped for custom taints', () => {
    assert.equal(kindOf(guarded(trip({ scope: 'customTaints' }))), 'guard');
    assert.equal(kindOf(guarded(trip({ scope: 'customTaints' })), down), undefined);
  });

  test('holds its zone, and pods of an unknown zone', () => {
    const zone = guarded(trip({ scope: 'zone', zone: 'a' }));
    assert.equal(kindOf(zone, down), 'guard');
    assert.equal(kindOf(zone, { ...down, zone: 'b' }), undefined);
    assert.equal(kindOf(zone, { ...down, zone: undefined }), 'guard');
  });

  test('releases nodes that were down for 15 minutes before it tripped', () => {
    const early = (ms: number) => ({ ...down, downSince: NOW - ms });
    assert.equal(kindOf(guarded(trip()), early(15 * 60_000)), undefined);
    assert.equal(kindOf(guarded(trip()), early(15 * 60_000 - 1)), 'guard');
  });

  test('releases nodes that are out of service', () => {
    assert.equal(
      kindOf(guarded(trip(), trip({ scope: 'customTaints' })), due({ dueBy: [NODE_OUT_OF_SERVICE] })),
      undefined,
    );
  });
});

describe('the gate of a pod', () => {
  const held = (given: Rules, subject = due()) => {
    const gate = findGate(given, subject, NOW);
    assert.ok(gate);
    return (now: Rules, moment = NOW) => mayStillHold(gate, now, moment);
  };

  test('may hold while its rule is in force', () => {
    const node: HoldTarget = { kind: 'node', node: nodeName('n1') };
    const cases: readonly Rules[] = [
      saying({ mode: 'observe' }),
      { ...rules, stops: [stop({ until: NOW + 1 })] },
      { ...rules, holds: [hold(node, { until: NOW + 1 })] },
      saying({ exclude: [{ until: NOW + 1 }] }, { policyRevision: 7 }),
      { ...rules, trips: [trip({ scope: 'customTaints' })] },
    ];
    for (const given of cases) {
      const still = held(given);
      assert.equal(still(given), true);
      assert.equal(still({ ...rules, policyRevision: 8 }), false);
      const isTimed = nextExpiry(given, NOW) !== undefined;
      assert.equal(still(given, NOW + 1), !isTimed);
    }
  });

  test('depends on a single hold', () => {
    const node: HoldTarget = { kind: 'node', node: nodeName('n1') };
    const still = held({ ...rules, holds: [hold(node)] });
    assert.equal(still({ ...rules, holds: [hold(node, { id: 'h2' })] }), false);
  });

  test('depends on the pod for a hold, and also on its taints for the guard and for exclusions', () => {
    const revisions = { revision: 1, guardRevision: 0 };
    const cases: readonly (readonly [EvictionGate, ofPod: boolean, ofTaints: boolean])[] = [
      [{ kind: 'observe' }, false, false],
      [{ kind: 'stopped', scope: 'fleet' }, false, false],
      [{ kind: 'hold', id: 'h1' }, true, false],
      [{ kind: 'excluded', ...revisions }, true, true],
      [{ kind: 'guard', scope: 'zone', trippedAt: NOW, ...revisions }, true, true],
    ];
    for (const [gate, ofPod, ofTaints] of cases)
      assert.deepEqual([isOfPod(gate), isOfTaints(gate)], [ofPod, ofTaints], gate.kind);
  });

  test('ends with the release of the guard, also when the guard has tripped again', () => {
    const still = held({ ...rules, trips: [trip({ scope: 'customTaints' })] });
    const again = {
      ...rules,
      guardRevision: 2,
      trips: [trip({ scope: 'customTaints', trippedAt: NOW + 1 })],
    };
    assert.equal(still(again), false);
  });

  test('ends with the release of its zone, when two zones tripped at the same time', () => {
    const zones = ['a', 'b'].map((zone) => trip({ scope: 'zone', zone }));
    const still = held({ ...rules, guardRevision: 1, trips: zones }, due({ dueBy: [NODE_NOT_READY] }));
    assert.equal(still({ ...rules, guardRevision: 2, trips: zones.slice(1) }), false);
  });

  describe('with the guard for one taint and an exclusion for the other', () => {
    const both = due({ dueBy: [NODE_NOT_READY, 'maintenance'] });
    const guarded = { guardRevision: 1, trips: [trip()] };
    const excluding = { exclude: [{ taints: ['maintenance'], until: NOW + 5 }] };

    test('ends when either is over', () => {
      for (const subject of [both, { ...both, dueBy: both.dueBy.toReversed() }]) {
        const still = held(saying(excluding, guarded), subject);
        assert.equal(still(saying(excluding, guarded)), true);
        assert.equal(still(saying({}, { ...guarded, policyRevision: 2 })), false);
        assert.equal(still(saying(excluding, { guardRevision: 2 })), false);
      }
    });

    test('ends when either expires', () => {
      assert.equal(held(saying(excluding, guarded), both)(saying(excluding, guarded), NOW + 5), false);
      const gate = findGate(saying(excluding, guarded), both, NOW);
      assert.equal(gate?.kind === 'guard' && gate.until, NOW + 5);
    });
  });
});

test('returns the next expiry among all rules that end by themselves', () => {
  const given = saying(
    { exclude: [{ until: at(1500) }], include: [{ until: at(900) }] },
    { stops: [stop({ until: at(1800) })] },
  );
  assert.equal(nextExpiry(given, NOW), at(1500));
  assert.equal(nextExpiry(given, at(1500)), at(1800));
  assert.equal(nextExpiry(rules, NOW), undefined);
});

test('matches labels as the API server does', () => {
  const labels = { app: 'web', tier: 'front' };
  const matches = (operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', key: string, ...values: string[]) =>
    matchesLabels({ matchExpressions: [{ key, operator, values }] }, labels);
  assert.ok(matchesLabels({}, labels));
  assert.ok(matchesLabels({ matchLabels: { app: 'web' } }, labels));
  assert.ok(!matchesLabels({ matchLabels: { app: 'web', tier: 'back' } }, labels));
  assert.ok(
    matches('In', 'app', 'web', 'db') && !matches('In', 'app', 'db') && !matches('In', 'none', 'web'),
  );
  assert.ok(
    matches('NotIn', 'app', 'db') && matches('NotIn', 'none', 'web') && !matches('NotIn', 'app', 'web'),
  );
  assert.ok(matches('Exists', 'app') && !matches('Exists', 'none'));
  assert.ok(matches('DoesNotExist', 'none') && !matches('DoesNotExist', 'app'));
});

test('matches a label named like a JavaScript property only where the pod has it', () => {
  const exists = { matchExpressions: [{ key: 'constructor', operator: 'Exists' as const }] };
  assert.ok(!matchesLabels(exists, { app: 'web' }));
  assert.ok(matchesLabels(exists, { constructor: 'acme' }));
});
