import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { PodTraits } from '#shared/eviction/facts.ts';
import { findGate, isTarget, isTripOf } from '#shared/eviction/gate.ts';
import { type GuardCounts, reviewGuard } from '#shared/eviction/guard.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { Policy, Rules, Trip } from '#shared/eviction/policy.ts';
import { type EvictionRecord, heldRecord } from '#shared/eviction/records.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import type { Act } from '#shared/operations/acts/act.ts';
import { actState, perform, performAct, previewAct } from '#shared/operations/acts/perform.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { rulesOf } from '#shared/state/rules-store.ts';
import { aNode, aReason, aRecord, aTaint, NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { shownCluster } from '#test/world/shown-cluster.ts';

const CLUSTERS = ['prod', 'stage'].map(clusterName);
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const KEYS = [
  UNREACHABLE,
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/out-of-service',
  'maintenance',
];
const MATCHING = { comparisonOperators: false };

const entry = fc.oneof(
  { weight: 24, arbitrary: fc.record({ namespaces: fc.constantFrom(['a'], ['b'], ['a', 'b'], ['kube-*']) }) },
  { weight: 12, arbitrary: fc.record({ taints: fc.constantFrom(['maintenance'], KEYS.slice(0, 2)) }) },
  { weight: 8, arbitrary: fc.record({ ownerKinds: fc.constantFrom(['DaemonSet'], ['DaemonSet', 'Job']) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { labels: { matchLabels: { app: 'web' } } },
      ...[{ annotations: { keep: 'true' } }, { priorityClassNames: ['gold'] }],
    ),
  },
);
const entries = fc.option(fc.array(entry, { minLength: 1, maxLength: 2 }), { nil: undefined, freq: 2 });
const guard = fc.constantFrom(
  ...['off', {}, { dryRun: true }, { cluster: 'off' }, { zone: 'off' }, { customTaints: 'off' }],
  { cluster: { percent: 90 } },
);
const document = fc
  .record({
    mode: fc.constantFrom('enforce', 'enforce', 'enforce', 'observe'),
    guard,
    exclude: entries,
    include: entries,
    evictionRate: fc.option(fc.constantFrom(1, 50), { nil: undefined }),
    releaseRate: fc.constantFrom(1, 50),
    requireExpiredLease: fc.boolean(),
  })
  .map((settings) => JSON.stringify(settings));

const pod = fc.record({
  name: fc.constantFrom('web', 'db'),
  namespace: fc.constantFrom('a', 'b', 'kube-system'),
  owner: fc.constantFrom({ kind: 'DaemonSet', name: 'agent' }, { kind: 'Job', name: 'batch' }),
  traits: fc.constantFrom<PodTraits>(
    ...[{}, { labels: { app: 'web' } }, { annotations: { keep: 'true' } }, { priorityClassName: 'gold' }],
  ),
  dueIn: fc.constantFrom(-1_000, 0, 60_000),
  isFailed: fc.integer({ min: 0, max: 9 }).map((tenth) => tenth === 0),
  keys: fc.subarray(KEYS, { minLength: 1, maxLength: 2 }),
});
const node = fc.record({
  zone: fc.constantFrom('z1', 'z2'),
  isAlive: fc.integer({ min: 0, max: 9 }).map((tenth) => tenth === 0),
  pods: fc.array(pod, { minLength: 1, maxLength: 4 }),
});
const CLUSTER = { scope: 'cluster' } as const;
const CUSTOM = { scope: 'customTaints' } as const;
const ZONE = { scope: 'zone', zone: 'z1' } as const;
const tripped = fc.constantFrom<Pick<Trip, 'scope' | 'zone'>[]>(
  ...[[], [], [CLUSTER], [CUSTOM], [CUSTOM], [CUSTOM, CLUSTER], [CLUSTER, CUSTOM, ZONE]],
  ...[
    [CUSTOM, ZONE],
    [CUSTOM, ZONE],
    [ZONE, CUSTOM],
  ],
);
const target = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.constantFrom(
      { kind: 'node', node: nodeName('n0') } as const,
      { kind: 'pod', namespace: 'a', name: 'web' } as const,
      { kind: 'namespace', namespace: 'b' } as const,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { kind: 'labels', labels: { matchLabels: { app: 'web' } } } as const,
      { kind: 'zone', zone: 'z1' } as const,
    ),
  },
);
const cluster = fc.record({
  policy: document,
  nodes: fc.array(node, { minLength: 1, maxLength: 3 }),
  trips: tripped,
  holds: fc.array(target, { maxLength: 2 }),
  isStopped: fc.integer({ min: 0, max: 4 }).map((fifth) => fifth === 0),
});
const act: fc.Arbitrary<Act> = fc.tuple(document, target).chain(([text, held]) => {
  const one = { cluster: CLUSTERS[0] ?? clusterName(''), reason: 'x' };
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant<Act>({ ...one, kind: 'apply-policy', text }) },
    {
      weight: 6,
      arbitrary: fc.constantFrom<Act>(
        { ...one, kind: 'stop' },
        { kind: 'stop', reason: 'x' },
        { ...one, kind: 'resume' },
        { kind: 'resume', reason: 'x' },
        { ...one, kind: 'hold', target: held },
        { ...one, kind: 'release', id: '' },
      ),
    },
    { weight: 3, arbitrary: fc.constant<Act>({ ...one, kind: 'release-guard' }) },
  );
});
const world = fc.record({
  clusters: fc.tuple(cluster, cluster),
  isAnswering: fc.boolean(),
  isFleetStopped: fc.integer({ min: 0, max: 4 }).map((fifth) => fifth === 0),
  act,
});

interface Case {
  readonly cluster: string;
  readonly uid: string;
  readonly isDue: boolean;
  /** The gate of a due pod that has a single taint. */
  readonly heldBy: EvictionGate | undefined;
  readonly isHeld: (rules: Rules) => boolean;
  readonly isTargeted: boolean;
}

test('previews what the engine then decides, for any rules, pods, and acts', async () => {
  const seen = { exact: 0, freed: 0 };
  await fc.assert(
    fc.asyncProperty(world, async ({ clusters, isAnswering, isFleetStopped, act: drawn }) => {
      const closing: (() => void)[] = [];
      const clock = new DrivenClock(NOW);
      const { fleet, store, rulesStore } = embeddedFleet(
        { after: (close) => closing.push(close as () => void) },
        { clusters: CLUSTERS, clock },
        {
          cluster: async (name) => {
            const { nodes = [] } = clusters[CLUSTERS.indexOf(name)] ?? {};
            return shownCluster({ '/api/v1/nodes': nodes.map(shownNode) }, NOW, () => !isAnswering);
          },
        },
      );
      const operator = await fleet.operator();
      let it = drawn;
      if (isFleetStopped) await perform({ kind: 'stop', reason: 'x' }, operator);
      const cases: Case[] = [];
      let isLive = false;
      for (const [index, { policy, nodes, trips, holds, isStopped }] of clusters.entries()) {
        const name = CLUSTERS[index] ?? clusterName('');
        await perform({ kind: 'apply-policy', cluster: name, text: policy }, operator);
        if (isStopped) await perform({ kind: 'stop', cluster: name, reason: 'x' }, operator);
        for (const held of holds) {
          const { hold: id = '' } = await perform(
            { kind: 'hold', cluster: name, target: held, reason: 'x' },
            operator,
          );
          if (it.kind === 'release' && index === 0) it = { ...it, id };
        }
        const tripped = trips.map((each, i): Trip => ({ ...each, trippedAt: NOW - i, nodes: 9, outOf: 10 }));
        const [first] = tripped;
        if (it.kind === 'release-guard' && index === 0 && first) it = { ...it, scope: scopeText(first) };
        const { policy: applied } = rulesOf(await rulesStore.read(name), MATCHING);
        await rulesStore.changeGuard(name, (await rulesStore.read(name)).guard, upheld(applied, tripped));
        const rules = rulesOf(await rulesStore.read(name), MATCHING);
        for (const [n, { zone, isAlive, pods }] of nodes.entries()) {
          const ref = { cluster: name, node: nodeName(`n${n}`) };
          const schedule = pods.map(({ keys, traits, dueIn, isFailed, ...rest }, p): EvictionRecord => {
            const dueAt = NOW + dueIn;
            const uid = podUid(`${name}-${n}-${p}`);
            const record = aRecord({ ...rest, uid, dueAt, causes: keys.map((key) => aReason(key)) });
            const life = isAlive
              ? ({ kind: 'alive', renewedAt: NOW, until: NOW + 120_000 } as const)
              : ({ kind: 'lapsed', because: 'expired' } as const);
            const due = { node: ref.node, zone, dueBy: keys, traits: { ...rest, ...traits }, life };
            const gateUnder = (given: Rules) => findGate(given, { ...due, record }, Math.max(NOW, dueAt));
            isLive ||= isAlive && keys.includes(UNREACHABLE);
            if (isFailed) return { ...record, gaveUpAt: NOW };
            const held = it.kind === 'hold' && isTarget(it.target, { ...due, record });
            const gateOf = gateUnder(rules);
            const isHeld = gateOf && dueAt <= NOW;
            cases.push({
              cluster: name,
              uid,
              heldBy: isHeld && keys.length === 1 ? gateOf : undefined,
              isDue: dueAt <= NOW,
              isTargeted: held,
              isHeld: (given) => gateUnder(given) !== undefined,
            });
            return isHeld ? heldRecord(record, { by: gateOf, since: NOW }) : record;
          });
          const taints = [...new Set(pods.flatMap(({ keys }) => keys))].map((key) => aTaint({ key }));
          await store.commit(ref, 0, { node: aNode({ taints }), schedule, end: [], live: true }, NOW);
        }
      }
      const rulesNow = async () =>
        new Map(
          await Promise.all(
            CLUSTERS.map(
              async (name) => [name as string, rulesOf(await rulesStore.read(name), MATCHING)] as const,
            ),
          ),
        );
      // The act reads the rules once more: they are equal, and other objects.
      const state = structuredClone(await actState(it, fleet, NOW));
      const before = await rulesNow();
      try {
        const shown = await previewAct(it, state, fleet);
        assert.deepEqual(await rulesNow(), before);
        await performAct(it, state, fleet);
        const after = new Map(
          [...(await rulesNow())].map(([name, rules]) => [
            name,
            { ...rules, trips: upheld(rules.policy, rules.trips) },
          ]),
        );
        const judged = cases
          .filter(({ cluster: name }) => (it.cluster ?? name) === name)
          .map((generated) => ({
            ...generated,
            was: generated.isHeld(ruleOf(before, generated.cluster)),
            is: generated.isHeld(ruleOf(after, generated.cluster)),
          }));
        const freed = judged.filter(({ was, is }) => was && !is);
        const goes = freed.filter(({ isDue }) => isDue);
        const listed = new Set<string>(shown.goes.map(({ record }) => record.uid));
        assert.deepEqual(
          goes.map(({ uid }) => uid).filter((uid) => !listed.has(uid)),
          [],
          'no pod is evicted that the preview does not list',
        );
        const kept = judged.filter(({ cluster: name, heldBy }) =>
          ruleOf(after, name).trips.some((each) => heldBy?.kind === 'guard' && isTripOf(heldBy, each)),
        );
        assert.deepEqual(
          kept.filter(({ uid }) => listed.has(uid)),
          [],
          'no pod is listed that a remaining trip held already',
        );
        seen.freed += goes.length;
        const isZoned = clusters.some(({ trips }) => trips.some(({ scope }) => scope === 'zone'));
        const readsTraits = clusters.some(({ policy }) =>
          /matchLabels|annotations|priorityClassNames/.test(policy),
        );
        const isHeldUnseen = clusters.some(({ holds }) =>
          holds.some(({ kind }) => kind === 'labels' || kind === 'zone'),
        );
        const isUnknown =
          readsTraits ||
          isHeldUnseen ||
          shown.effects.some((text) => /not known here|not counted/.test(text));
        if ((isZoned && !isAnswering) || isUnknown || isLive) return;
        seen.exact += 1;
        assert.equal(shown.goes.length, goes.length, 'evicted immediately');
        assert.equal(shown.pods.evictedWhenDue, freed.length - goes.length, 'evicted when due');
        const [caught, stay] = [
          judged.filter(({ was, is }) => !was && is),
          judged.filter(({ was, is }) => was && is),
        ];
        assert.equal(
          numberIn(shown.effects, /^(\d+) pending evictions? (?:is|are) held by it/),
          caught.length,
        );
        const isOfAll = ['stop', 'apply-policy'].includes(it.kind);
        const meant = it.kind === 'hold' ? stay.filter(({ isTargeted }) => isTargeted) : stay;
        if (!isOfAll && it.kind !== 'hold') return;
        assert.equal(numberIn(shown.effects, /^(\d+) pods? remains? held: /), meant.length);
        assert.equal(shown.pods.held, caught.length + meant.length);
      } catch (error) {
        if (!(error instanceof OperatorError)) throw error;
      } finally {
        for (const close of closing) close();
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(
    seen.exact > 20 && seen.freed > 15,
    `the worlds had hardly anything to preview: ${JSON.stringify(seen)}`,
  );
});

/** Returns the trips that a review by this policy leaves. As many nodes are affected as at the trips. */
function upheld({ guard: limits }: Policy, trips: readonly Trip[]): readonly Trip[] {
  const affected = (scope: Trip['scope']) =>
    trips.find((each) => each.scope === scope) ?? { nodes: 0, outOf: 10 };
  const counts: GuardCounts = {
    cluster: affected('cluster'),
    zones: new Map([['z1', affected('zone')]]),
    customTaints: affected('customTaints'),
  };
  return reviewGuard(limits, counts, { trips, released: [], episodes: [] }, NOW).trips;
}

const shownNode = ({ zone }: { readonly zone: string }, index: number) => ({
  metadata: { name: `n${index}`, labels: { 'topology.kubernetes.io/zone': zone } },
});

function ruleOf(all: ReadonlyMap<string, Rules>, name: string): Rules {
  const rules = all.get(name);
  assert.ok(rules);
  return rules;
}

const numberIn = (texts: readonly string[], pattern: RegExp): number =>
  Number(texts.map((text) => pattern.exec(text)?.[1]).find((found) => found !== undefined) ?? 0);
