import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  countdownIdentity,
  countdownsOf,
  deadline,
  deadlineFor,
  saturate,
  setAgainSince,
} from '#shared/taints/deadline.ts';
import { INT64_MAX } from '#shared/taints/int64.ts';
import type { LiveTaint, Toleration } from '#shared/taints/taint.ts';
import * as arbitrary from './arbitraries.ts';

const options = { comparisonOperators: false };
const START = Date.UTC(2026, 0, 1);

const taint = (key: string, since = START, effect = 'NoExecute') => ({ key, effect, since });
const exists = (key: string, tolerationSeconds?: bigint): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});
const after = (seconds: bigint): bigint => BigInt(START) + seconds * 1000n;

describe('the deadline of a pod', () => {
  test('does not exist without NoExecute taints', () => {
    const taints = [taint('a', START, 'NoSchedule'), taint('b', START, 'PreferNoSchedule')];
    assert.equal(deadline([], taints, START, options), undefined);
  });

  test('is immediate for an untolerated taint, once both the taint and the pod exist', () => {
    assert.equal(deadline([], [taint('a')], START + 5000, options)?.atMs, after(5n));
    assert.equal(deadline([], [taint('a', START + 7000)], START, options)?.atMs, after(7n));
  });

  test('counts from the later of the taint and the pod', () => {
    const tolerations = [exists('a', 60n)];
    assert.equal(deadline(tolerations, [taint('a')], START + 5000, options)?.atMs, after(65n));
    assert.equal(deadline(tolerations, [taint('a', START + 7000)], START, options)?.atMs, after(67n));
  });

  test('follows the first toleration that matches the taint', () => {
    assert.equal(deadline([exists('a', 60n), exists('a')], [taint('a')], START, options)?.atMs, after(60n));
    assert.equal(deadline([exists('a'), exists('a', 60n)], [taint('a')], START, options), undefined);
  });

  for (const seconds of [0n, -1n, -(2n ** 63n)]) {
    test(`treats ${seconds} tolerationSeconds as zero`, () => {
      const found = deadline([exists('a', seconds)], [taint('a')], START, options);
      assert.deepEqual(found, {
        atMs: BigInt(START),
        because: [{ taint: taint('a'), toleration: 0, seconds: 0n }],
      });
    });
  }

  test('does not exist for exactly the largest int64, and is exact for a second less', () => {
    assert.equal(deadline([exists('a', INT64_MAX)], [taint('a')], START, options), undefined);
    const longest = deadline([exists('a', INT64_MAX - 1n)], [taint('a')], START, options);
    assert.equal(longest?.atMs, BigInt(START) + (INT64_MAX - 1n) * 1000n);
  });

  test('does not overflow beyond 292 years, unlike in the built-in controller', () => {
    for (const seconds of [9_223_372_037n, 18_446_744_074n]) {
      assert.equal(deadline([exists('a', seconds)], [taint('a')], START, options)?.atMs, after(seconds));
    }
  });

  test('lists exactly the taints that set it as causes', () => {
    const tolerations = [exists('a', 60n), exists('b', 40n), exists('c', 300n)];
    const [a, b, c] = [taint('a'), taint('b', START + 20_000), taint('c')];
    const found = deadline(tolerations, [a, c, b], START, options);
    assert.deepEqual(found, {
      atMs: after(60n),
      because: [
        { taint: a, toleration: 0, seconds: 60n },
        { taint: b, toleration: 1, seconds: 40n },
      ],
    });
  });

  test('lists an untolerated taint without a toleration, and keeps the indexes of a cut list', () => {
    assert.deepEqual(deadline([], [taint('a')], START, options)?.because, [
      { taint: taint('a'), seconds: 0n },
    ]);
    const cut = [{ ...exists('a', 5n), index: 7 }];
    assert.equal(deadline(cut, [taint('a')], START, options)?.because[0]?.toleration, 7);
  });

  test('ends with the taint that set it', () => {
    const tolerations = [exists('a', 10n), exists('b', 100n)];
    assert.equal(deadline(tolerations, [taint('a'), taint('b')], START, options)?.atMs, after(10n));
    assert.equal(deadline(tolerations, [taint('b')], START, options)?.atMs, after(100n));
  });
});

describe('the deadline of any pod', () => {
  const { tolerations, standingTaints, moment } = arbitrary;

  test('is the earliest deadline of its taints alone', () => {
    fc.assert(
      fc.property(tolerations, standingTaints, moment, arbitrary.options, (list, taints, podSince, gates) => {
        const alone = taints.map((each) => ({ each, at: deadline(list, [each], podSince, gates)?.atMs }));
        const least = alone.reduce<bigint | undefined>(
          (min, { at }) => (at !== undefined && (min === undefined || at < min) ? at : min),
          undefined,
        );
        const found = deadline(list, taints, podSince, gates);
        assert.equal(found?.atMs, least);
        const reasons = alone.filter(({ at }) => at !== undefined && at === least).map(({ each }) => each);
        assert.deepEqual(found?.because.map((cause) => cause.taint) ?? [], reasons);
      }),
    );
  });

  test('does not depend on the order of the taints', () => {
    const shuffled = standingTaints.chain((taints) =>
      fc.tuple(fc.constant(taints), fc.shuffledSubarray(taints, { minLength: taints.length })),
    );
    fc.assert(
      fc.property(
        tolerations,
        shuffled,
        moment,
        arbitrary.options,
        (list, [taints, other], podSince, gates) => {
          const found = deadline(list, taints, podSince, gates);
          const again = deadline(list, other, podSince, gates);
          assert.equal(found?.atMs, again?.atMs);
          assert.deepEqual(
            new Set(found?.because.map((cause) => cause.taint)),
            new Set(again?.because.map((cause) => cause.taint)),
          );
        },
      ),
    );
  });

  test('never moves forward when a toleration is appended to the list', () => {
    fc.assert(
      fc.property(
        tolerations,
        arbitrary.toleration,
        standingTaints,
        moment,
        arbitrary.options,
        (list, added, taints, podSince, gates) => {
          const before = deadline(list, taints, podSince, gates);
          const then = deadline([...list, added], taints, podSince, gates);
          assert.ok(then === undefined || (before !== undefined && then.atMs >= before.atMs));
        },
      ),
    );
  });

  test('never moves back when a taint is added', () => {
    fc.assert(
      fc.property(
        tolerations,
        standingTaints,
        arbitrary.standingTaint,
        moment,
        arbitrary.options,
        (list, taints, added, podSince, gates) => {
          const before = deadline(list, taints, podSince, gates);
          const then = deadline(list, [...taints, added], podSince, gates);
          assert.ok(before === undefined || (then !== undefined && then.atMs <= before.atMs));
        },
      ),
    );
  });

  test('is never before the pod exists', () => {
    fc.assert(
      fc.property(tolerations, standingTaints, moment, arbitrary.options, (list, taints, podSince, gates) => {
        const found = deadline(list, taints, podSince, gates);
        assert.ok(found === undefined || found.atMs >= BigInt(podSince));
      }),
    );
  });

  test('is the same for all pods of a node together and for each pod alone', () => {
    const pods = fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), moment), { maxLength: 10 });
    const lists = fc.tuple(tolerations, tolerations, tolerations);
    fc.assert(
      fc.property(lists, standingTaints, pods, arbitrary.options, (shared, taints, given, gates) => {
        const deadlineOf = deadlineFor(taints, gates);
        for (const [index, podSince] of given) {
          const list = shared[index] ?? [];
          assert.deepEqual(deadlineOf(list, podSince), deadline([...list], taints, podSince, gates));
        }
      }),
    );
  });
});

test('matches a toleration list that pods share once', () => {
  let reads = 0;
  const counted: Toleration = {
    operator: 'Exists',
    tolerationSeconds: 60n,
    get key() {
      reads += 1;
      return 'a';
    },
  };
  const list = [counted];
  const deadlineOf = deadlineFor([taint('a')], options);
  deadlineOf(list, START);
  const readsOfOne = reads;
  for (let pod = 0; pod < 110; pod += 1) deadlineOf(list, START + pod);
  assert.ok(readsOfOne > 0);
  assert.equal(reads, readsOfOne);
});

describe('saturate', () => {
  test('keeps every time that a Date can hold', () => {
    fc.assert(
      fc.property(
        fc.date({ noInvalidDate: true }),
        (date) => saturate(BigInt(date.getTime())) === date.getTime(),
      ),
    );
  });

  test('clamps later and earlier times to the limits of a Date', () => {
    assert.equal(saturate(INT64_MAX * 1000n), 8.64e15);
    assert.equal(saturate(-INT64_MAX * 1000n), -8.64e15);
    assert.ok(!Number.isNaN(new Date(saturate(INT64_MAX)).getTime()));
  });
});

describe('tolerationSeconds that policy sets for a taint key', () => {
  const policy = { a: 30 };

  test('replace the seconds of a bounded toleration, and apply to a pod without a toleration', () => {
    assert.equal(deadline([exists('a', 300n)], [taint('a')], START, options, policy)?.atMs, after(30n));
    assert.equal(deadline([exists('a', 5n)], [taint('a')], START, options, policy)?.atMs, after(30n));
    const [cause] = deadline([], [taint('a')], START, options, policy)?.because ?? [];
    assert.deepEqual(cause, { taint: taint('a'), seconds: 30n, policy: 'tolerationSeconds' });
  });

  test('do not affect pods that tolerate the taint indefinitely, or other taints', () => {
    assert.equal(deadline([exists('a')], [taint('a')], START, options, policy), undefined);
    assert.equal(deadline([exists('a', INT64_MAX)], [taint('a')], START, options, policy), undefined);
    assert.equal(deadline([exists('b', 60n)], [taint('b')], START, options, policy)?.atMs, after(60n));
  });

  test('are no cause where the pod has the same seconds', () => {
    const [cause] = deadline([exists('a', 30n)], [taint('a')], START, options, policy)?.because ?? [];
    assert.equal(cause?.policy, undefined);
  });

  test('ignore inherited properties of objects', () => {
    const inherited = 'constructor';
    const found = deadline([exists(inherited, 60n)], [taint(inherited)], START, options, policy);
    assert.equal(found?.atMs, after(60n));
  });
});

describe('the identity of a countdown', () => {
  test('is written as key and effect', () => {
    assert.equal(countdownIdentity({ ...taint('a'), value: '1' }), 'a:NoExecute');
    assert.equal(countdownIdentity(taint('a', START, 'NoSchedule')), 'a:NoSchedule');
  });

  test('is key and effect, so that a new value keeps the countdown', () => {
    assert.equal(
      countdownIdentity({ ...taint('a'), value: '1' }),
      countdownIdentity({ ...taint('a'), value: '2' }),
    );
    assert.notEqual(countdownIdentity(taint('a')), countdownIdentity(taint('b')));
    assert.notEqual(countdownIdentity(taint('a')), countdownIdentity(taint('a', START, 'NoSchedule')));
  });

  test('is the identity of the NoExecute taint for a virtual taint', () => {
    const virtual = { ...taint('a', START, 'NoSchedule'), virtual: true as const };
    assert.equal(countdownIdentity(virtual), countdownIdentity(taint('a')));
    const [notReady, unreachable] = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
    assert.equal(countdownIdentity({ ...virtual, key: unreachable }), countdownIdentity(taint(notReady)));
  });

  test('is shared by not-ready and unreachable where they evict', () => {
    const [notReady, unreachable] = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
    assert.equal(countdownIdentity(taint(notReady)), countdownIdentity(taint(unreachable)));
    assert.notEqual(
      countdownIdentity(taint(notReady, START, 'NoSchedule')),
      countdownIdentity(taint(unreachable, START, 'NoSchedule')),
    );
    assert.notEqual(countdownIdentity(taint(notReady)), countdownIdentity(taint('not-ready')));
  });
});

describe('a countdown continues', () => {
  const [notReady, unreachable] = [
    taint('node.kubernetes.io/not-ready'),
    taint('node.kubernetes.io/unreachable'),
  ];
  const virtual = { ...taint(notReady.key, START, 'NoSchedule'), virtual: true as const };

  test('from the same taint if the node had it, whatever other taints the node had', () => {
    for (const before of [
      [notReady, unreachable, virtual],
      [virtual, unreachable, notReady],
    ]) {
      assert.equal(countdownsOf(before)({ ...notReady, value: '2' }), notReady);
      assert.equal(countdownsOf(before)(unreachable), unreachable);
      assert.equal(countdownsOf(before)(virtual), virtual);
    }
  });

  test('otherwise from the taint that it replaces or follows', () => {
    assert.equal(countdownsOf([taint('a'), unreachable])(notReady), unreachable);
    assert.equal(countdownsOf([taint('a'), virtual])(notReady), virtual);
    assert.equal(countdownsOf([unreachable, virtual])(notReady), unreachable);
    assert.equal(countdownsOf([virtual, unreachable])(notReady), virtual);
    assert.equal(countdownsOf([taint('a')])(notReady), undefined);
  });
});

describe('a taint was set again', () => {
  const taint = (key: string, timeAdded?: number, more: Partial<LiveTaint> = {}): LiveTaint => ({
    ...{ key, effect: 'NoExecute' },
    ...(timeAdded === undefined ? {} : { timeAdded }),
    ...more,
  });
  const [notReady, unreachable] = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

  test('when it has another time than before', () => {
    assert.equal(setAgainSince([taint('a', 1)], [taint('a', 2)])(taint('a', 2)), 2);
    assert.equal(setAgainSince([taint('a')], [taint('a', 2)])(taint('a', 2)), 2);
    assert.equal(setAgainSince([taint('a', 2)], [taint('a', 2)])(taint('a', 2)), undefined);
    assert.equal(setAgainSince([taint('a', 2)], [taint('a')])(taint('a')), undefined);
    assert.equal(setAgainSince([taint('a', 1), taint('a', 2)], [taint('a', 1)])(taint('a', 1)), undefined);
  });

  test('not when it is new, or when it replaces or follows another taint', () => {
    assert.equal(setAgainSince([], [taint('a', 2)])(taint('a', 2)), undefined);
    assert.equal(setAgainSince([taint(unreachable, 1)], [taint(notReady, 2)])(taint(notReady, 2)), undefined);
    const virtual = taint('a', 1, { effect: 'NoSchedule', virtual: true });
    assert.equal(setAgainSince([virtual], [taint('a', 1)])(taint('a', 1)), undefined);
    assert.equal(setAgainSince([virtual], [virtual])(virtual), undefined);
  });

  test('when it follows its NoSchedule twin with another time', () => {
    const virtual = taint('a', 1, { effect: 'NoSchedule', virtual: true });
    assert.equal(setAgainSince([virtual], [taint('a', 7)])(taint('a', 7)), 7);
    assert.equal(setAgainSince([virtual], [taint('a')])(taint('a')), undefined);
  });

  test('not while its not-ready or unreachable counterpart stays; a virtual twin does not count', () => {
    const before = [taint(notReady, 1), taint(unreachable, 1)];
    const after = [taint(unreachable, 1), taint(notReady, 2)];
    assert.equal(setAgainSince(before, after)(taint(notReady, 2)), undefined);
    assert.equal(setAgainSince(before, [taint(notReady, 2)])(taint(notReady, 2)), 2);
    const virtual = taint('a', 1, { effect: 'NoSchedule', virtual: true });
    const twins = setAgainSince([virtual, taint('a', 1)], [virtual, taint('a', 2)]);
    assert.equal(twins(taint('a', 2)), 2);
  });
});
