import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isAlive, isInForce, projectTakeover, renewalPatch } from '#shared/kubernetes/takeover.ts';
import { disproof } from '#shared/kubernetes/takeover-proof.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';

const NOW = Date.UTC(2026, 10, 24, 12) + 250;
const LAPSE_MS = 90_000;

/** A cluster with a takeover whose heartbeat has this time, if any. */
function cluster(heartbeat?: number) {
  const api = new FakeCluster(new DrivenClock(NOW));
  api.putTakeover(['a', 'b'], LAPSE_MS);
  if (api.takeover && heartbeat !== undefined) api.takeover = { ...api.takeover, heartbeat };
  const proven = async () => {
    const takeover = await api.getTakeover();
    assert.ok(takeover);
    return disproof(api, takeover, { tries: 1 });
  };
  return { api, proven, works: api.keepsOut };
}

describe('a takeover is verified', () => {
  for (const [what, heartbeat] of [
    ['while it is renewed', NOW],
    ['long after it lapsed', NOW - 86_400_000],
    ['before it was ever renewed', undefined],
  ] as const) {
    test(what, async () => {
      const { api, proven } = cluster(heartbeat);
      assert.equal(await proven(), undefined);
      assert.deepEqual([api.takeover?.heartbeat, api.liveNodes.size], [heartbeat, 0]);
    });
  }

  test('if the cluster adds taints to new nodes', async () => {
    const { api, proven } = cluster(NOW);
    const tryTaints = api.tryTaints.bind(api);
    api.tryTaints = async (taints) => [...(await tryTaints(taints)), { key: 'fresh', effect: 'NoSchedule' }];
    assert.equal(await proven(), undefined);
  });
});

describe('a takeover is not verified', () => {
  type Rule = (taint: LiveTaint) => boolean;
  const notCurrent = /lost a:NoExecute although the heartbeat isn't current$/;
  const rows: readonly (readonly [when: string, keepsOut: (works: Rule) => Rule, reason: RegExp])[] = [
    [
      'when it keeps nothing out',
      () => () => false,
      /kept a:NoExecute: the takeover's admission policy doesn't work in this cluster$/,
    ],
    [
      'when it keeps one of its keys in',
      (works) => (one) => one.key !== 'b' && works(one),
      /kept b:NoExecute/,
    ],
    [
      'when it keeps out a twin',
      (works) => (one) => one.effect === 'NoSchedule' || works(one),
      /lost a:NoSchedule, which the takeover must not remove$/,
    ],
    [
      'when it keeps out the taint of somebody else',
      (works) => (one) => one.value === 'bystander' || works(one),
      /lost taintward.dev\/takeover-proof=bystander:NoExecute/,
    ],
    [
      'when it goes on after the lapse',
      (works) => (one) => works(one) || (one.timeAdded ?? 0) > NOW,
      notCurrent,
    ],
    [
      'when it goes by a heartbeat of the future',
      (works) => (one) => works(one) || (one.timeAdded ?? NOW) < NOW - LAPSE_MS,
      notCurrent,
    ],
  ];
  for (const [when, keepsOut, reason] of rows) {
    test(when, async () => {
      const { api, proven, works } = cluster(NOW);
      api.keepsOut = keepsOut(works);
      assert.match((await proven()) ?? '', reason);
    });
  }
});

describe('a takeover is active', () => {
  const takeover = { resourceVersion: '1', keys: ['a'], lapseMs: LAPSE_MS, heartbeat: NOW };

  test('while its heartbeat is within the timeout, in the past or future', () => {
    assert.equal(isInForce(takeover, NOW + LAPSE_MS - 1), true);
    assert.equal(isInForce(takeover, NOW - LAPSE_MS + 1), true);
    assert.equal(isAlive(takeover, NOW + LAPSE_MS), false);
    assert.equal(isAlive(takeover, NOW - LAPSE_MS), false, 'one of the far future keeps nothing out');
  });

  test('unless its relay suspended the heartbeat', () => {
    assert.equal(isInForce({ ...takeover, withheld: 'x' }, NOW), false);
  });

  const renewed = (more: object) => renewalPatch({ ...takeover, ...more }, NOW);
  const at = new Date(NOW).toISOString();

  test('again after a renewal, whose merge patch removes the suspension', () => {
    assert.deepEqual(renewed({ withheld: 'x' }), {
      metadata: { resourceVersion: '1' },
      spec: { heartbeat: at, aliveSince: at, withheld: null },
    });
  });

  test('since the first renewal that was not late', () => {
    for (const [delayMs, aliveSince] of [
      [-1, new Date(NOW - 3_600_000).toISOString()],
      [0, at],
    ] as const) {
      const before = { heartbeat: NOW - LAPSE_MS - delayMs, aliveSince: NOW - 3_600_000 };
      assert.partialDeepStrictEqual(renewed(before), { spec: { aliveSince } });
    }
  });
});

for (const heartbeat of ['2000-01-01T00:00:00.000Z', '1969-07-20T20:17:40Z', '9999-12-31T23:59:59Z']) {
  test(`ignores a heartbeat of ${heartbeat}, which no relay wrote or which names no time`, () => {
    const spec = { keys: ['a'], lapseSeconds: 90, heartbeat, withheld: 'not yet' };
    assert.deepEqual(projectTakeover({ metadata: { resourceVersion: '1' }, spec }), {
      resourceVersion: '1',
      keys: ['a'],
      lapseMs: LAPSE_MS,
      withheld: 'not yet',
    });
  });
}
