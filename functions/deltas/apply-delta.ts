import type { LeaseReader } from '#shared/clusters/lease.ts';
import type { RulesReader } from '#shared/clusters/rulebook.ts';
import { type Delta, deltaId, onlyPod } from '#shared/eviction/facts.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import { type Plan, type PodDecision, plan } from '#shared/eviction/plan.ts';
import { type Ending, type EvictionRecord, isAnnounced } from '#shared/eviction/records.ts';
import { ownMomentOf } from '#shared/eviction/retry.ts';
import {
  type Countdown,
  countdownOf,
  encodeCancelled,
  encodeCountdowns,
} from '#shared/queues/due-message.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import { commitUnderLock, type Store } from '#shared/store/store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { evictionFields } from '#shared/telemetry/log-events.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { Timers } from '#shared/timers/timers.ts';

/** What applying a delta needs of the world. */
export interface ApplyDeltaDeps {
  readonly store: Store;
  readonly timers: Timers;
  /** `evictions-due`: `evict`, which alone reaches the clusters, posts the Events of countdowns and cancellations. */
  readonly dueQueue: QueueSender;
  /** Under which epoch a cluster's lease is held: what a relay says that held it before decides nothing. */
  readonly leaseEpoch: LeaseReader['epoch'];
  readonly clock: Clock;
  readonly log: Log;
  /** What governs a cluster; at most a second old. */
  readonly rules: RulesReader;
}

/**
 * Takes a delta into the store: read the partition, plan, commit under its lock, then arm timers and announce
 * countdowns and cancellations. A crash at any point is healed by the same delta again. Rejects with `StoreError`,
 * `TimerError`, `QueueError` or `ContendedPartitionError`; the delta is then not done and must come again.
 */
export async function applyDelta(delta: Delta, deps: ApplyDeltaDeps): Promise<void> {
  const { store, timers, clock, log } = deps;
  const { ref } = delta;
  const [leaseEpoch, rules] = await Promise.all([deps.leaseEpoch(ref.cluster), deps.rules(ref.cluster)]);
  const only = onlyPod(delta);
  const decided = await commitUnderLock(store, ref, only && [only], clock, (partition) => {
    const result = plan(partition, delta, rules, { now: clock.now(), leaseEpoch });
    const { schedule, end } = agendaOf(result.decisions, delta);
    if (!result.node && schedule.length + end.length === 0) return { result };
    const { node, live } = result;
    return { result, change: { ...(node ? { node } : {}), schedule, end, live } };
  });
  // Before anything else can fail: the delta that comes again finds nothing new.
  logChanges(delta, decided, log);
  const agenda = agendaOf(decided.decisions, delta);
  // The order matters: once the records stand, a timer that comes twice or late finds the truth in them.
  await timers.arm(ref, [...agenda.arm]);
  await announce(delta, agenda, deps);
}

/** What performing decisions takes. */
interface Agenda {
  /** Records to write. */
  readonly schedule: readonly EvictionRecord[];
  /** Records to end. */
  readonly end: readonly Ending[];
  /** Distinct moments for a timer. */
  readonly arm: ReadonlySet<EpochMs>;
  /** Cancellations that are worth an Event. */
  readonly announce: readonly Ending[];
  /** Countdowns that started or moved, and are long enough to be worth one. */
  readonly countdowns: readonly Countdown[];
}

/** A shorter countdown is over before anybody reads of it. */
const TOLD_COUNTDOWN_MS = 30_000;

function agendaOf(decisions: readonly PodDecision[], delta: Delta): Agenda {
  const schedule: EvictionRecord[] = [];
  const end: Ending[] = [];
  const arm = new Set<EpochMs>();
  const told: Ending[] = [];
  const countdowns: Countdown[] = [];
  for (const decision of decisions) {
    switch (decision.kind) {
      case 'schedule':
      case 'reschedule':
      case 'confirm':
        schedule.push(decision.record);
        arm.add(ownMomentOf(decision.record));
        if (decision.kind !== 'confirm' && decision.record.fireAt - delta.observedAt > TOLD_COUNTDOWN_MS)
          countdowns.push({ ...countdownOf(decision.record), moved: decision.kind === 'reschedule' });
        break;
      case 'rearm':
        arm.add(ownMomentOf(decision.record));
        break;
      case 'free':
        schedule.push(decision.record);
        arm.add(ownMomentOf(decision.record));
        break;
      case 'cancel':
        end.push(decision.ending);
        if (isAnnounced(decision.ending, delta.observedAt)) told.push(decision.ending);
        break;
      case 'evicted-elsewhere':
        end.push(decision.ending);
        break;
      case 'cancelled-before':
        told.push(decision.ending);
        break;
      default:
        decision satisfies never;
    }
  }
  return { schedule, end, arm, announce: told, countdowns };
}

async function announce(
  { ref, version }: Delta,
  { announce: cancelled, countdowns }: Agenda,
  deps: ApplyDeltaDeps,
): Promise<void> {
  const pods = cancelled.map(({ uid, namespace, name }) => ({ uid, namespace, name }));
  const bodies = [
    ...encodeCancelled({ ...ref, version, pods }),
    ...encodeCountdowns({ ...ref, pods: countdowns }),
  ];
  if (bodies.length === 0) return;
  const failures = await deps.dueQueue.send(bodies.map((body) => ({ body, groupId: ref.cluster })));
  // An Event is a courtesy: a queue that refuses the announcement must not hold the decision up.
  for (const { reason } of failures) deps.log.warn('announcement.refused', { ...ref, reason });
}

function logChanges(
  { ref, version, observedAt }: Delta,
  { node, nodeChanged, decisions }: Plan,
  log: Log,
): void {
  if (nodeChanged && node) {
    const { taints, deletedAt } = node;
    log.info('node.changed', {
      ...ref,
      delta: deltaId(version),
      taints: taints.map(({ key, value, effect }) => ({
        key,
        ...(value === undefined ? {} : { value }),
        effect,
      })),
      ...(deletedAt === undefined ? {} : { deletedAt }),
    });
  }
  for (const decision of decisions) {
    if (decision.kind === 'schedule') log.info('eviction.scheduled', evictionFields(ref, decision.record));
    if (decision.kind === 'reschedule')
      log.info('eviction.rescheduled', evictionFields(ref, decision.record));
    if (decision.kind === 'confirm') log.info('eviction.confirmed', evictionFields(ref, decision.record));
    if (decision.kind === 'free') log.info('eviction.freed', evictionFields(ref, decision.record));
    if (decision.kind !== 'cancel' && decision.kind !== 'evicted-elsewhere') continue;
    const { deleted } = decision.ending;
    if (deleted?.by === 'taint-manager') {
      log.info('eviction.elsewhere', { ...evictionFields(ref, decision.ending), deletedAt: deleted.at });
      continue;
    }
    log.info('eviction.cancelled', {
      ...evictionFields(ref, decision.ending),
      reason: decision.ending.cancelled,
      announced: isAnnounced(decision.ending, observedAt),
    });
  }
}
