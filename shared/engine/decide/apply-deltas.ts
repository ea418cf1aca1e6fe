import { defined } from '#shared/defined.ts';
import { type Countdown, countdownOf, type News } from '#shared/engine/news.ts';
import type { Timers } from '#shared/engine/timers.ts';
import { type Delta, deltaId, onlyPod } from '#shared/eviction/facts.ts';
import { type ClusterName, type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import { type Plan, type PlanTime, type PodDecision, plan } from '#shared/eviction/plan.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import {
  type EvictionRecord,
  type FinalRecord,
  isAnnounced,
  type Partition,
} from '#shared/eviction/records.ts';
import { ownMomentOf } from '#shared/eviction/retry.ts';
import type { RulesReader } from '#shared/state/rules-store.ts';
import { commitUnderLock, type Store } from '#shared/state/store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { evictionFields } from '#shared/telemetry/log-events.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface ApplyDeltasDeps {
  readonly store: Store;
  readonly timers: Timers;
  /** Has the Events of decisions posted by `evict`, which alone reaches the clusters. */
  readonly announce: (ref: NodeRef, news: News) => Promise<void>;
  /** Epoch of a cluster's lease; `undefined`: never acquired. Deltas of an earlier holder decide nothing. */
  readonly leaseEpoch: (cluster: ClusterName) => Promise<number | undefined>;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns a cluster's rules; at most a second old. */
  readonly rules: RulesReader;
}

/**
 * Applies deltas of one node to the store: reads the partition, plans one delta after the other, and commits once under
 * its lock. Then it arms timers, and announces countdowns and cancellations. The same deltas, applied again, repair a
 * crash at any point. Several deltas must satisfy `mayJoin`. Rejects with `StoreError`, `TimerError`, `QueueError` or
 * `ContendedPartitionError`; none of the deltas is done then, and each must be delivered again.
 */
export async function applyDeltas(
  deltas: readonly [Delta, ...Delta[]],
  deps: ApplyDeltasDeps,
): Promise<void> {
  const { store, timers, clock, log } = deps;
  const [{ ref }] = deltas;
  const [leaseEpoch, rules] = await Promise.all([deps.leaseEpoch(ref.cluster), deps.rules(ref.cluster)]);
  const only = deltas.map(onlyPod).filter((uid) => uid !== undefined);
  const decided = await commitUnderLock(
    store,
    ref,
    only.length < deltas.length || deltas.some(isOfStaticPod) ? undefined : only,
    clock,
    (partition) => {
      const result = decideInTurn(partition, deltas, rules, { now: clock.now(), leaseEpoch });
      const node = result.findLast(({ planned }) => planned.node)?.planned.node;
      const live = result.at(-1)?.planned.live ?? false;
      const schedule = result.flatMap(({ agenda }) => agenda.schedule);
      const end = result.flatMap(({ agenda }) => agenda.end);
      if (!node && schedule.length + end.length === 0) return { result };
      return { result, change: { ...defined({ node }), schedule, end, live } };
    },
  );
  // Log before anything else can fail: a redelivered delta finds nothing new.
  for (const { delta, planned } of decided) logChanges(delta, planned, rules, log);
  // The order matters: once the records are stored, a timer that fires twice or late reads the current state from them.
  await timers.arm(ref, [...new Set(decided.flatMap(({ agenda }) => [...agenda.arm]))]);
  const canceled = decided.flatMap(({ delta: { version }, agenda }) =>
    agenda.announce.length === 0 ? [] : [{ version, pods: agenda.announce }],
  );
  const countdowns = decided.flatMap(({ agenda }) => agenda.countdowns);
  if (canceled.length + countdowns.length > 0) await deps.announce(ref, { canceled, countdowns });
}

/** Reports whether a delta can be committed with those before it: each must cover another pod of the same node. */
export function mayJoin(before: readonly Delta[], next: Delta): boolean {
  const uid = onlyPod(next);
  return (
    uid !== undefined &&
    before.every((earlier) => {
      const other = onlyPod(earlier);
      return other !== undefined && other !== uid && nodeKey(earlier.ref) === nodeKey(next.ref);
    })
  );
}

/** The decision about a static pod depends on earlier pods of its name, whose UIDs are unknown. */
const isOfStaticPod = (delta: Delta): boolean => delta.kind === 'pod' && delta.pod.owner?.kind === 'Node';

interface Decided {
  readonly delta: Delta;
  readonly planned: Plan;
  readonly agenda: Agenda;
}

/** Each delta covers other pods than those before it, so it depends on their decisions only through the node. */
function decideInTurn(
  partition: Partition,
  deltas: readonly Delta[],
  rules: Rules,
  moment: PlanTime,
): readonly Decided[] {
  const decided: Decided[] = [];
  let { node } = partition;
  for (const delta of deltas) {
    const planned = plan({ ...partition, node }, delta, rules, moment);
    node = planned.node ?? node;
    decided.push({ delta, planned, agenda: agendaOf(planned.decisions, delta) });
  }
  return decided;
}

interface Agenda {
  readonly schedule: readonly EvictionRecord[];
  readonly end: readonly FinalRecord[];
  readonly arm: ReadonlySet<EpochMs>;
  readonly announce: readonly FinalRecord[];
  /** Countdowns that started or moved, and are long enough to be worth an Event. */
  readonly countdowns: readonly Countdown[];
}

/** A shorter countdown ends before anybody reads its Event. */
export const ANNOUNCED_COUNTDOWN_MS = 30_000;

function agendaOf(decisions: readonly PodDecision[], delta: Delta): Agenda {
  const schedule: EvictionRecord[] = [];
  const end: FinalRecord[] = [];
  const arm = new Set<EpochMs>();
  const announced: FinalRecord[] = [];
  const countdowns: Countdown[] = [];
  for (const decision of decisions) {
    switch (decision.kind) {
      case 'schedule':
      case 'reschedule':
        if (decision.record.dueAt - delta.observedAt > ANNOUNCED_COUNTDOWN_MS)
          countdowns.push({ ...countdownOf(decision.record), moved: decision.kind === 'reschedule' });
        schedule.push(decision.record);
        arm.add(ownMomentOf(decision.record));
        break;
      case 'confirm':
      case 'free':
        schedule.push(decision.record);
        arm.add(ownMomentOf(decision.record));
        break;
      case 'rearm':
        arm.add(ownMomentOf(decision.record));
        break;
      case 'cancel':
        end.push(decision.ending);
        if (isAnnounced(decision.ending, delta.observedAt)) announced.push(decision.ending);
        break;
      case 'evicted-elsewhere':
        end.push(decision.ending);
        break;
      case 'canceled-before':
        announced.push(decision.ending);
        break;
      default:
        decision satisfies never;
    }
  }
  return { schedule, end, arm, announce: announced, countdowns };
}

function logChanges(
  { ref, version, observedAt }: Delta,
  { node, nodeChanged, decisions }: Plan,
  rules: Rules,
  log: Log,
): void {
  const fieldsOf = (record: EvictionRecord) => evictionFields(ref, record, rules.policy);
  if (nodeChanged && node) {
    const { taints, deletedAt } = node;
    log.info('node.changed', {
      ...ref,
      delta: deltaId(version),
      taints: taints.map(({ key, value, effect }) => ({
        key,
        ...defined({ value }),
        effect,
      })),
      ...defined({ deletedAt }),
    });
  }
  for (const decision of decisions) {
    if (decision.kind === 'schedule') log.info('eviction.scheduled', fieldsOf(decision.record));
    if (decision.kind === 'reschedule') log.info('eviction.rescheduled', fieldsOf(decision.record));
    if (decision.kind === 'confirm') log.info('eviction.confirmed', evictionFields(ref, decision.record));
    if (decision.kind === 'free') log.info('eviction.released', evictionFields(ref, decision.record));
    if (decision.kind !== 'cancel' && decision.kind !== 'evicted-elsewhere') continue;
    const { deleted } = decision.ending;
    if (deleted?.by === 'taint-manager') {
      log.info('pod.evicted-externally', { ...evictionFields(ref, decision.ending), deletedAt: deleted.at });
      continue;
    }
    log.info('eviction.canceled', {
      ...evictionFields(ref, decision.ending),
      reason: decision.ending.cancelReason,
      eventPosted: isAnnounced(decision.ending, observedAt),
    });
  }
}
