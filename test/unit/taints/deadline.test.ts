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
const atMs = (
  tolerations: readonly Toleration[],
  onNode: ReturnType<typeof taint>,
  podSince = START,
  policy?: Readonly<Record<string, number>>,
) => deadline(tolerations, [onNode], podSince, options, policy)?.atMs;

describe('the deadline of a pod', () => {
  test('does not exist without NoExecute taints', () => {
    const taints = [taint('a', START, 'NoSchedule'), taint('b', START, 'PreferNoSchedule')];
    assert.equal(deadline([], taints, START, options), undefined);
  });

  test('counts from the later of the taint and the pod', () => {
    assert.equal(atMs([], taint('a'), START + 5000), after(5n));
    assert.equal(atMs([], taint('a', START + 7000)), after(7n));
    assert.equal(atMs([exists('a', 60n)], taint('a'), START + 5000), after(65n));
    assert.equal(atMs([exists('a', 60n)], taint('a', START + 7000)), after(67n));
  });

  test('follows the first toleration that matches the taint', () => {
    assert.equal(atMs([exists('a', 60n), exists('a')], taint('a')), after(60n));
    assert.equal(atMs([exists('a'), exists('a', 60n)], taint('a')), undefined);
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

  test('does not exist for exactly the largest int64, and is exact for less, unlike in the built-in controller', () => {
    assert.equal(atMs([exists('a', INT64_MAX)], taint('a')), undefined);
    for (const seconds of [INT64_MAX - 1n, 9_223_372_037n, 18_446_744_074n])
      assert.equal(atMs([exists('a', seconds)], taint('a')), after(seconds));
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
});

describe('the deadline of any pod', () => {
  const { tolerations, presentTaints, moment } = arbitrary;

  test('is the earliest deadline of its taints alone, and never before the pod exists', () => {
    fc.assert(
      fc.property(tolerations, presentTaints, moment, arbitrary.options, (list, taints, podSince, gates) => {
        const alone = taints.map((each) => ({ each, at: deadline(list, [each], podSince, gates)?.atMs }));
        const least = alone.reduce<bigint | undefined>(
          (min, { at }) => (at !== undefined && (min === undefined || at < min) ? at : min),
          undefined,
        );
        const found = deadline(list, taints, podSince, gates);
        assert.equal(found?.atMs, least);
        assert.ok(found === undefined || found.atMs >= BigInt(podSince));
        const causes = alone.filter(({ at }) => at !== undefined && at === least).map(({ each }) => each);
        assert.deepEqual(found?.because.map((cause) => cause.taint) ?? [], causes);
      }),
    );
  });

  test('never moves forward when a toleration is appended to the list', () => {
    fc.assert(
      fc.property(
        tolerations,
        arbitrary.toleration,
        presentTaints,
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

  test('is the same for all pods of a node together and for each pod alone', () => {
    const pods = fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), moment), { maxLength: 10 });
    const lists = fc.tuple(tolerations, tolerations, tolerations);
    fc.assert(
      fc.property(lists, presentTaints, pods, arbitrary.options, (shared, taints, given, gates) => {
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
    for (const tolerations of [[exists('a', 300n)], [exists('a', 5n)]])
      assert.equal(atMs(tolerations, taint('a'), START, policy), after(30n));
    const [cause] = deadline([], [taint('a')], START, options, policy)?.because ?? [];
    assert.deepEqual(cause, { taint: taint('a'), seconds: 30n, policy: 'tolerationSecondsOverrides' });
  });

  test('do not affect pods that tolerate the taint indefinitely, other taints, or inherited properties', () => {
    for (const toleration of [exists('a'), exists('a', INT64_MAX)])
      assert.equal(atMs([toleration], taint('a'), START, policy), undefined);
    for (const key of ['b', 'constructor'])
      assert.equal(atMs([exists(key, 60n)], taint(key), START, policy), after(60n));
  });

  test('are no cause where the pod has the same seconds', () => {
    const [cause] = deadline([exists('a', 30n)], [taint('a')], START, options, policy)?.because ?? [];
    assert.equal(cause?.policy, undefined);
  });
});

const [NOT_READY, UNREACHABLE] = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
const virtualOf = (key: string) => ({ ...taint(key, START, 'NoSchedule'), virtual: true as const });

describe('the identity of a countdown', () => {
  test('is key and effect, so that a new value keeps the countdown', () => {
    for (const value of ['1', '2']) assert.equal(countdownIdentity({ ...taint('a'), value }), 'a:NoExecute');
    assert.equal(countdownIdentity(taint('b')), 'b:NoExecute');
    assert.equal(countdownIdentity(taint('a', START, 'NoSchedule')), 'a:NoSchedule');
  });

  test('is the identity of the NoExecute taint for a virtual taint', () => {
    assert.equal(countdownIdentity(virtualOf('a')), countdownIdentity(taint('a')));
    assert.equal(countdownIdentity(virtualOf(UNREACHABLE)), countdownIdentity(taint(NOT_READY)));
  });

  test('is shared by not-ready and unreachable where they evict', () => {
    assert.equal(countdownIdentity(taint(NOT_READY)), countdownIdentity(taint(UNREACHABLE)));
    const [one, other] = [NOT_READY, UNREACHABLE].map((key) =>
      countdownIdentity(taint(key, START, 'NoSchedule')),
    );
    assert.notEqual(one, other);
    assert.notEqual(countdownIdentity(taint(NOT_READY)), countdownIdentity(taint('not-ready')));
  });
});

describe('a countdown continues', () => {
  const [notReady, unreachable, virtual] = [taint(NOT_READY), taint(UNREACHABLE), virtualOf(NOT_READY)];

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
    key,
    effect: 'NoExecute',
    ...(timeAdded === undefined ? {} : { timeAdded }),
    ...more,
  });
  const virtual = taint('a', 1, { effect: 'NoSchedule', virtual: true });
  /** Returns when the last of the taints of now was set again, after these taints. */
  const again = (before: readonly LiveTaint[], ...now: readonly [...LiveTaint[], LiveTaint]) =>
    setAgainSince(before, now)(now.at(-1) as LiveTaint);

  test('when it has another time than before', () => {
    assert.equal(again([taint('a', 1)], taint('a', 2)), 2);
    assert.equal(again([taint('a')], taint('a', 2)), 2);
    assert.equal(again([taint('a', 2)], taint('a', 2)), undefined);
    assert.equal(again([taint('a', 2)], taint('a')), undefined);
    assert.equal(again([taint('a', 1), taint('a', 2)], taint('a', 1)), undefined);
  });

  test('not when it is new, or when it replaces or follows another taint', () => {
    assert.equal(again([], taint('a', 2)), undefined);
    assert.equal(again([taint(UNREACHABLE, 1)], taint(NOT_READY, 2)), undefined);
    assert.equal(again([virtual], taint('a', 1)), undefined);
    assert.equal(again([virtual], virtual), undefined);
  });

  test('when it follows its NoSchedule twin with another time', () => {
    assert.equal(again([virtual], taint('a', 7)), 7);
    assert.equal(again([virtual], taint('a')), undefined);
  });

  test('not while its not-ready or unreachable counterpart stays; a virtual twin does not count', () => {
    const before = [taint(NOT_READY, 1), taint(UNREACHABLE, 1)];
    assert.equal(again(before, taint(UNREACHABLE, 1), taint(NOT_READY, 2)), undefined);
    assert.equal(again(before, taint(NOT_READY, 2)), 2);
    assert.equal(again([virtual, taint('a', 1)], virtual, taint('a', 2)), 2);
  });
});
