import type { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import { countdownOf } from '#shared/engine/news.ts';
import type { Again } from '#shared/engine/timers.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import {
  type DonePass,
  endsOf,
  momentsOf,
  mustCommit,
  type Recorded,
  recordOf,
} from '#shared/eviction/outcome.ts';
import type { Policy } from '#shared/eviction/policy.ts';
import { type EvictionRecord, ending, isTainted, type Partition } from '#shared/eviction/records.ts';
import { changeTries, dueOf } from '#shared/eviction/retry.ts';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import { commitUnderLock } from '#shared/state/store.ts';
import { evictionFields, evictionRef } from '#shared/telemetry/log-events.ts';
import { EVICTION_RETRIES, GIVEN_UP } from '#shared/telemetry/metrics.ts';
import { blockedEviction, cancellingDeletion, countingDown, gaveUpDeletion, heldBack } from './events.ts';
import type { PassDeps } from './ports.ts';

/** Delay before a node that changes during the pass is processed again; SQS rounds it up to a second. */
const AGAIN_SECONDS = 0.25;

/**
 * Stores the results of a pass and arms the retries; only then may its message end. A crash before that redelivers the
 * message, which arms the timers of the records that it finds. Resolves with the remaining work.
 */
export async function recordPass(
  pass: DonePass,
  deps: PassDeps,
  announce: (event: PodEvent) => void,
): Promise<Again | undefined> {
  const { store, timers, clock } = deps;
  const { before, settled } = pass;
  const { ref } = before;
  const ends = endsOf(settled);
  if (ends.length > 0) await store.end(ref, ends, clock.now());
  // Arm the timers first: once the records are stored, the redelivered message finds nothing due.
  await timers.arm(ref, momentsOf(pass));
  const written = mustCommit(pass, clock.now()) ? await correct(pass, deps) : undefined;
  // Report the stored changes before anything else can fail: the redelivered message no longer finds them.
  const { canceled = [], changed = [], policy, gaveUp = [], askAgainAt } = written ?? {};
  for (const ending of canceled) {
    deps.log.info('eviction.canceled', {
      ...evictionFields(ref, ending),
      reason: ending.cancelReason,
      eventPosted: true,
    });
    announce(cancellingDeletion(ending, ending.version));
  }
  for (const each of changed) announce(report(ref, each, policy, deps));
  if (gaveUp.length > 0) deps.metrics.put(GIVEN_UP, gaveUp.length, ref.cluster);
  if (askAgainAt !== undefined) await timers.arm(ref, [askAgainAt]);
  for (const { attempts, nextTryAt, error } of written?.retries ?? []) {
    await timers.arm(ref, [nextTryAt]);
    deps.metrics.put(EVICTION_RETRIES, 1, ref.cluster);
    deps.log.warn('eviction.retrying', { ...ref, attempts, nextTryAt, error });
  }
  for (const { outcome } of settled) if (outcome.kind === 'fault') throw outcome.error;
  if (written?.unnoted)
    throw new Error(`Node ${ref.node} of cluster ${ref.cluster} is unknown so far: ${written.unnoted}`);
  const behind = settled.some(({ outcome }) => outcome.kind === 'behind');
  return written?.moved || behind ? { againInSeconds: AGAIN_SECONDS } : undefined;
}

async function correct(pass: DonePass, deps: PassDeps): Promise<Recorded> {
  const { store, clock } = deps;
  const { ref, node } = pass.before;
  const moment = { now: clock.now(), random: Math.random() };
  const rules = await deps.rules(ref.cluster, node?.guardRevision);
  const recorded = (found: Partition) => recordOf(pass, found, rules, moment);
  // Set failed evictions aside before they are recorded: a crash in between sets them aside twice, and loses none.
  await setAside(ref, recorded(pass.before).result.gaveUp, deps);
  return commitUnderLock(store, ref, undefined, clock, recorded);
}

function report(
  ref: NodeRef,
  { record, note }: Recorded['changed'][number],
  policy: Policy | undefined,
  { log }: PassDeps,
): PodEvent {
  const fields = evictionFields(ref, record, policy);
  switch (note.event) {
    case 'rescheduled':
      log.info('eviction.rescheduled', fields);
      return countingDown({ ...countdownOf(record), moved: true }, fields.observed === true);
    case 'held':
      log.info('eviction.held', { ...fields, by: note.by.kind });
      return heldBack(record, note.by);
    case 'would-evict':
      log.info('eviction.would-evict', evictionRef(ref, record));
      return heldBack(record, note.by, policy?.method);
    case 'blocked': {
      const { by: blocker = 'budget' } = record.blocked ?? {};
      log.info('eviction.blocked', { ...fields, by: blocker, error: note.error });
      return blockedEviction(record, blocker);
    }
    case 'failed':
      log.error('eviction.failed', { ...fields, error: note.error });
      return gaveUpDeletion(record);
    default:
      return note satisfies never;
  }
}

/** Ends a node's retry if its failed evictions ended otherwise: later failures count as first failures. */
export async function endRetry(ref: NodeRef, { store, clock }: PassDeps): Promise<void> {
  await commitUnderLock(store, ref, undefined, clock, (found) => {
    const now = clock.now();
    if (!found.node || dueOf(found, now).length > 0) return { result: undefined };
    // Records that are neither scheduled nor ended have expired, and are about to be restored.
    if (found.ended.size === 0) return { result: undefined };
    const node = changeTries(found.node, (next) => (next.nextTryAt > now ? next : undefined));
    return { result: undefined, change: { node, schedule: [], end: [], live: isTainted(node) } };
  });
}

/** Ends the evictions of an unregistered cluster. If it returns, its countdowns continue from their original start. */
export async function endUnregistered(
  { ref, scheduled }: Partition,
  reason: UnknownClusterError,
  deps: PassDeps,
): Promise<void> {
  await setAside(ref, [...scheduled.values()], deps, reason.message);
  const ended = await commitUnderLock(deps.store, ref, undefined, deps.clock, (found) => {
    const end = [...found.scheduled.values()].map((record) =>
      ending(record, { outcome: 'unregistered', error: reason.message }, record.version),
    );
    if (end.length === 0) return { result: end };
    return { result: end, change: { schedule: [], end, live: isTainted(found.node) } };
  });
  deps.metrics.put(GIVEN_UP, ended.length, ref.cluster);
  for (const pod of ended)
    deps.log.error('eviction.unregistered', { ...evictionFields(ref, pod), error: reason });
}

/** Copies failed evictions to the dead-letter queue: a redriven one is tried again. */
async function setAside(
  ref: NodeRef,
  records: readonly EvictionRecord[],
  deps: PassDeps,
  reason = records[0]?.failure?.error ?? '',
): Promise<void> {
  if (records.length === 0) return;
  const pods = records.map(({ uid }) => uid);
  await deps.setAside?.(ref, pods, reason || 'unknown');
}
