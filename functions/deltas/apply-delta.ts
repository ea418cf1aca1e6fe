import { isAnnounced } from '#shared/eviction/cancellation.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import type { PodUid } from '#shared/eviction/identity.ts';
import { changesNothing, type Plan, plan } from '#shared/eviction/plan.ts';
import type { Ending, EvictionRecord } from '#shared/eviction/records.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import { commitUnderLock } from '#shared/store/commit-under-lock.ts';
import type { Store } from '#shared/store/store.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { encodeCancelled } from '#shared/timers/due-message.ts';
import type { Timers } from '#shared/timers/timers.ts';

/** What applying a delta needs of the world. */
export interface ApplyDeltaDeps {
  readonly store: Store;
  readonly timers: Timers;
  /** `evictions-due`: `evict`, which alone reaches the clusters, posts the Events of cancellations. */
  readonly dueQueue: QueueSender;
  readonly clock: Clock;
  readonly log: Log;
  readonly matching: MatchOptions;
}

/**
 * Takes a delta into the store: read the partition, plan, commit under its lock, then arm timers and announce
 * cancellations. A crash at any point is healed by the same delta again. Rejects with `StoreError`,
 * `TimerError`, `QueueError` or `ContendedPartitionError`; the delta is then not done and must come again.
 */
export async function applyDelta(delta: Delta, deps: ApplyDeltaDeps): Promise<void> {
  const decided = await commitPlan(delta, deps);
  // The order matters: once the records stand, a timer that comes twice or late finds the truth in them.
  await deps.timers.arm(delta.ref, decided.arm);
  await announceCancelled(delta, decided, deps);
  logChanges(delta, decided, deps.log);
}

function commitPlan(delta: Delta, deps: ApplyDeltaDeps): Promise<Plan> {
  return commitUnderLock(deps.store, delta.ref, podsOf(delta), deps.clock, (partition) => {
    const result = plan(partition, delta, deps.matching, { now: deps.clock.now() });
    if (changesNothing(result)) return { result };
    const { node, schedule, reschedule, confirm, cancel: end, live } = result;
    const records = [...schedule, ...reschedule, ...confirm];
    return { result, change: { ...(node ? { node } : {}), schedule: records, end, live } };
  });
}

/** The pods it speaks of; `undefined`: all of the node. */
function podsOf(delta: Delta): readonly PodUid[] | undefined {
  switch (delta.kind) {
    case 'node':
      return undefined;
    case 'pod':
      return [delta.pod.uid];
    case 'pod-gone':
      return [delta.uid];
    default:
      return delta satisfies never;
  }
}

async function announceCancelled(delta: Delta, decided: Plan, deps: ApplyDeltaDeps): Promise<void> {
  const cancelled = decided.cancel.filter((each) => isAnnounced(each, delta.observedAt));
  const pods = [...cancelled, ...decided.cancelledBefore];
  if (pods.length === 0) return;
  const bodies = encodeCancelled({ ...delta.ref, version: delta.version, pods: pods.map(podOf) });
  const failures = await deps.dueQueue.send(bodies.map((body) => ({ body })));
  // An Event is a courtesy: a queue that refuses the announcement must not hold the decision up.
  for (const { reason } of failures) deps.log.warn('announcement.refused', { ...delta.ref, reason });
}

const podOf = ({ uid, namespace, name }: Ending) => ({ uid, namespace, name });

function logChanges(delta: Delta, decided: Plan, log: Log): void {
  if (decided.nodeChanged && decided.node) {
    const { taints, deletedAt } = decided.node;
    log.info('node.changed', {
      ...delta.ref,
      taints: taints.map(({ key, value, effect }) => ({ key, value, effect })),
      ...(deletedAt === undefined ? {} : { deletedAt }),
    });
  }
  for (const record of decided.schedule) log.info('eviction.scheduled', logFields(delta, record));
  for (const record of decided.reschedule) log.info('eviction.rescheduled', logFields(delta, record));
  for (const each of decided.cancel) {
    log.info('eviction.cancelled', {
      ...logFields(delta, each),
      reason: each.cancelled,
      announced: isAnnounced(each, delta.observedAt),
    });
  }
}

function logFields(delta: Delta, record: EvictionRecord | Ending) {
  const { uid, namespace, name: pod, fireAt, because } = record;
  return { ...delta.ref, namespace, pod, uid, fireAt, because };
}
