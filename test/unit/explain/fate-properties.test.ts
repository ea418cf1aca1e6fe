import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { NodeDelta, PodFacts } from '#shared/eviction/facts.ts';
import { nextExpiry } from '#shared/eviction/gate.ts';
import type { Rules, Selection } from '#shared/eviction/policy.ts';
import { nextMomentOf } from '#shared/eviction/retry.ts';
import { type Forecast, type ForecastPod, forecastPod } from '#shared/explain/forecast.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { rules as enforced, ref } from '#test/unit/eviction/builders.ts';
import { act, governed, ofIndex, type PlayedNode, play, traitsOf } from '#test/unit/eviction/played-node.ts';

const podOf = (pod: PodFacts, { ref }: NodeDelta): ForecastPod => ({
  ...pod,
  node: ref.node,
  ...traitsOf(pod.uid),
  terminating: false,
  disrupted: false,
});

interface Forbidden {
  readonly what: 'nothing' | 'stop' | 'hold' | 'exclude';
  readonly seconds: number;
}

/** A gate that is added to the last rules, and its duration in seconds. */
const forAWhile: fc.Arbitrary<Forbidden> = fc.record({
  what: fc.constantFrom<Forbidden['what']>('nothing', 'stop', 'hold', 'exclude'),
  seconds: fc.integer({ min: 1, max: 60 }),
});

function forbidding(rules: Rules, { what, seconds }: Forbidden, now: EpochMs): Rules {
  const until = now + seconds * 1000;
  const { policy, stops, holds } = rules;
  const selection: Selection = { labels: { matchLabels: { odd: 'true' } }, until };
  switch (what) {
    case 'stop':
      return { ...rules, stops: [...stops, { ...act, scope: 'cluster', until }] };
    case 'hold':
      return {
        ...rules,
        holds: [...holds, { ...act, id: 'late', target: { kind: 'node', node: ref.node }, until }],
      };
    case 'exclude':
      return { ...rules, policy: { ...policy, exclude: [...policy.exclude, selection] } };
    case 'nothing':
      return rules;
    default:
      return what satisfies never;
  }
}

/**
 * Replays resyncs of an unchanged node until no deadline or expiry is left. Returns the time at which each pod
 * was evicted.
 */
function playOn(played: PlayedNode, last: NodeDelta, rules: Rules): ReadonlyMap<string, EpochMs> {
  const went = new Map<string, EpochMs>();
  let now: EpochMs | undefined = last.observedAt;
  for (let sequence = last.version.sequence + 1; now !== undefined; sequence++) {
    const before = new Set(played.evicted);
    played.receive({ ...last, version: { epoch: 1, sequence }, observedAt: now, wake: true }, rules);
    for (const uid of played.evicted) if (!before.has(uid)) went.set(uid, now);
    const moments: readonly (EpochMs | undefined)[] = [
      nextMomentOf(played.partition, now),
      nextExpiry(rules, now),
    ];
    const later = moments.filter((moment) => moment !== undefined);
    now = later.length > 0 ? Math.min(...later) : undefined;
  }
  return went;
}

test('forecasts the evictions that follow while nothing changes', () => {
  const seen: Record<string, number> = {};
  fc.assert(
    fc.property(governed, forAWhile, ({ deltas, ruled }, late) => {
      const played = play(deltas, ofIndex(ruled));
      const last = deltas.at(-1);
      assert.ok(last?.kind === 'node');
      const rules = forbidding(ruled.at(-1) ?? enforced, late, last.observedAt);
      const { forecastOf } = forecastPod({
        now: last.observedAt,
        partition: played.partition,
        rules,
        live: { taints: last.deletedAt === undefined ? last.taints : undefined },
      });
      const gone = new Set(played.evicted);
      const there = last.pods.filter(({ uid }) => !gone.has(uid));
      const forecasts = there.map((pod): [string, Forecast] => [pod.uid, forecastOf(podOf(pod, last))]);
      const went = playOn(played, last, rules);
      for (const [uid, forecast] of forecasts) {
        const kind =
          forecast.kind === 'evict' && forecast.heldBy.length > 0 ? 'evict, held before' : forecast.kind;
        seen[kind] = (seen[kind] ?? 0) + 1;
        assert.equal(
          went.get(uid),
          forecast.kind === 'evict' ? forecast.at : undefined,
          `${uid}: ${JSON.stringify(forecast)}`,
        );
      }
    }),
    { numRuns: 1_000 },
  );
  for (const kind of ['evict', 'evict, held before', 'held', 'keep'])
    assert.ok((seen[kind] ?? 0) > 5, `hardly any pod ${kind}: ${seen[kind]}`);
});
