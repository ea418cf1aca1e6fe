import fc from 'fast-check';
import { evaluate } from '#shared/eviction/evaluate.ts';
import type { Delta, PodFacts, PodTraits } from '#shared/eviction/facts.ts';
import { nodeName, type PodUid } from '#shared/eviction/identity.ts';
import type { HoldTarget, Policy, Rules, Selection } from '#shared/eviction/policy.ts';
import { type EvictionRecord, ending, type Partition } from '#shared/eviction/records.ts';
import { dueOf } from '#shared/eviction/retry.ts';
import { partitionOf } from '#shared/state/store.ts';
import { firstMatch } from '#shared/taints/match.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { at, committed, emptyPartition, planned, ref, rules } from './builders.ts';
import { longRelayHistory } from './relay-history.ts';

const until: fc.Arbitrary<{ readonly until?: EpochMs }> = fc.option(
  fc.integer({ min: 0, max: 120 }).map((second) => ({ until: at(second) })),
  { nil: {} },
);
const selection: fc.Arbitrary<Selection> = fc
  .tuple(
    fc.constantFrom<Selection>(
      { namespaces: ['default'] },
      { namespaces: ['other'] },
      { labels: { matchLabels: { odd: 'true' } } },
      { annotations: { odd: 'true' } },
      { ownerKinds: ['Odd'] },
      { priorityClassNames: ['odd'], taints: ['a'] },
      { taints: ['a'] },
      { taints: ['b'], labels: { matchExpressions: [{ key: 'odd', operator: 'DoesNotExist' }] } },
    ),
    until,
  )
  .map(([selected, ends]) => ({ ...selected, ...ends }));
const target = fc.constantFrom<HoldTarget>(
  { kind: 'node', node: ref.node },
  { kind: 'node', node: nodeName('another') },
  { kind: 'pod', namespace: 'default', name: 'pod-u1.0' },
  { kind: 'pod', namespace: 'other', name: 'pod-u0.0' },
);
export const act = { actor: 'anna', at: at(0), reason: 'because' };
const seldom = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.tuple(value) });

const anyPolicy: fc.Arbitrary<Partial<Policy>> = fc.record({
  mode: fc.constantFrom('enforce', 'enforce', 'enforce', 'enforce', 'enforce', 'observe'),
  exclude: seldom(selection),
  include: seldom(selection),
  releaseRate: fc.constantFrom(0.5, 50),
});
/** Returns an ID that no other hold has, as the service does. */
const holdId = (held: HoldTarget, ends: EpochMs | undefined): string =>
  `h-${Object.values(held).join('-')}-${ends ?? 'open'}`;
const anyRules: fc.Arbitrary<Rules> = fc
  .record({
    policy: anyPolicy,
    stops: seldom(until.map((ends) => ({ ...act, ...ends, scope: 'fleet' as const }))),
    holds: seldom(
      fc
        .tuple(target, until)
        .map(([held, ends]) => ({ ...act, ...ends, id: holdId(held, ends.until), target: held })),
    ),
    trips: seldom(
      fc
        .constantFrom('customTaints', 'cluster')
        .map((scope) => ({ scope, trippedAt: at(0), nodes: 3, outOf: 3 }) as const),
    ),
  })
  .map((fields) => ({ ...rules, ...fields, policy: { ...rules.policy, ...fields.policy } }));

/** The deltas of a relay, and the rules for each delta. Every delta has rules with other revisions. */
export const governed = longRelayHistory.chain(({ deltas, resync }) =>
  fc.record({
    deltas: fc.constant([...deltas, resync]),
    ruled: fc
      .array(anyRules, { minLength: deltas.length + 1, maxLength: deltas.length + 1 })
      .map((all) => all.map((each, index) => ({ ...each, policyRevision: index + 1, guardRevision: index }))),
  }),
);

export const isOdd = (uid: PodUid): boolean => Number(uid.slice(1, 2)) % 2 === 1;

/** Returns traits of the live pod. They select every second pod. */
export const traitsOf = (uid: PodUid): PodTraits =>
  isOdd(uid)
    ? {
        labels: { odd: 'true' },
        annotations: { odd: 'true' },
        priorityClassName: 'odd',
        owner: { kind: 'Odd', name: 'odd' },
      }
    : {};

/**
 * The partition of a node, and the pods evicted there. Evaluates due pods after each delta; the live node is as
 * in the delta.
 */
export class PlayedNode {
  partition: Partition = emptyPartition;
  readonly evicted: PodUid[] = [];
  readonly #pods = new Map<PodUid, PodFacts>();
  readonly #onEvict: (pod: PodFacts, dueBy: readonly string[], now: EpochMs) => void;

  constructor(onEvict: (pod: PodFacts, dueBy: readonly string[], now: EpochMs) => void = () => undefined) {
    this.#onEvict = onEvict;
  }

  receive(delta: Delta, given: Rules, now = delta.observedAt): this {
    if (delta.kind === 'node') this.#pods.clear();
    if (delta.kind === 'node') for (const pod of delta.pods) this.#pods.set(pod.uid, pod);
    if (delta.kind === 'pod') this.#pods.set(delta.pod.uid, delta.pod);
    if (delta.kind === 'pod-gone') this.#pods.delete(delta.uid);
    for (const uid of this.evicted) this.#pods.delete(uid);
    this.partition = committed(this.partition, planned(this.partition, delta, {}, given));
    return this.pass(delta, given, now);
  }

  pass({ taints, deletedAt }: Delta, given: Rules, now: EpochMs): this {
    const { node } = this.partition;
    const live = deletedAt === undefined ? taints : undefined;
    const verdictOn = evaluate(node, { node: ref.node, at: now, taints: live }, given);
    for (const record of dueOf(this.partition, now)) {
      const pod = this.#pods.get(record.uid);
      const seen = pod && { ...pod, ...traitsOf(pod.uid), terminating: false, disrupted: false };
      const verdict = verdictOn(record, seen);
      if (verdict.kind === 'hold' || verdict.kind === 'reschedule') this.#write(verdict.record);
      else if (verdict.kind === 'end') this.#end(record, verdict.outcome);
      else if (verdict.kind === 'cancel') this.#end(record, 'canceled');
      else if (verdict.kind === 'evict' && pod) {
        this.#onEvict(pod, this.#dueBy(pod, record, now), now);
        this.evicted.push(record.uid);
        this.#pods.delete(record.uid);
        this.#end(record, 'evicted');
      }
    }
    return this;
  }

  #dueBy({ tolerations }: PodFacts, { podSince }: EvictionRecord, now: EpochMs): readonly string[] {
    const due = (this.partition.node?.taints ?? []).filter((taint) => {
      const match = firstMatch(tolerations, taint, rules.matching);
      const seconds = match ? Number(match.tolerationSeconds ?? Infinity) : 0;
      return Math.max(taint.since, podSince) + seconds * 1000 <= now;
    });
    return due.map(({ key }) => key);
  }

  #write(record: EvictionRecord): void {
    const scheduled = new Map(this.partition.scheduled).set(record.uid, record);
    this.partition = { ...this.partition, scheduled };
  }

  #end(record: EvictionRecord, outcome: 'evicted' | 'already-gone' | 'would-evict' | 'canceled'): void {
    const left = [...this.partition.scheduled.values()].filter(({ uid }) => uid !== record.uid);
    const ended = [...this.partition.ended.values(), { ...ending(record, { outcome }), endedAt: at(0) }];
    this.partition = partitionOf(this.partition, left, ended);
  }
}

export const play = (
  deltas: readonly Delta[],
  ruledBy: (index: number) => Rules,
  played = new PlayedNode(),
): PlayedNode => {
  for (const [index, delta] of deltas.entries()) played.receive(delta, ruledBy(index));
  return played;
};
export const ofIndex = (ruled: readonly Rules[]) => (index: number) => ruled[index] ?? rules;
