import type { UnknownClusterError } from '#shared/clusters/registered-clusters.ts';
import type { RulesReader } from '#shared/clusters/rulebook.ts';
import { mayStillHold } from '#shared/eviction/brake.ts';
import { afterBlocks } from '#shared/eviction/budget.ts';
import { compareVersions, type Version } from '#shared/eviction/facts.ts';
import type { EpochMs, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import {
  type Ending,
  type EvictionRecord,
  ending,
  isTainted,
  type NodeRetry,
  type NodeState,
  type Partition,
} from '#shared/eviction/records.ts';
import { afterFailures, dueOf, type Failures, ownMomentOf } from '#shared/eviction/retry.ts';
import type { Again } from '#shared/queues/consumer.ts';
import { countdownOf, dueGroupId, encodeRetry } from '#shared/queues/due-message.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import { commitUnderLock, type Store } from '#shared/store/store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { evictionFields, evictionRef } from '#shared/telemetry/log-events.ts';
import type { EvictionMetrics } from '#shared/telemetry/metrics.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { Timers } from '#shared/timers/timers.ts';
import { blockedEviction, countingDown, heldBack } from './countdown-events.ts';
import { cancellingDeletion, gaveUpDeletion } from './events.ts';
import type { Pass } from './pass.ts';

/** What recording a pass needs of the world. */
export interface RecordDeps {
  readonly store: Store;
  readonly timers: Timers;
  /** Where evictions go that are given up, to be redriven by an operator. */
  readonly deadLetters: QueueSender;
  readonly rules: RulesReader;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: EvictionMetrics;
}

/** How soon a node is looked at again that changed, or is about to, while it was looked at. SQS makes it a second. */
const AGAIN_SECONDS = 0.25;

/**
 * Stores what a pass came to and arms what is to be tried again; only then its message may end. A crash before that
 * brings the message back, and it arms what it finds. Returns what is left to do.
 */
export async function recordPass(
  before: Partition,
  pass: Pass,
  deps: RecordDeps,
): Promise<Again | undefined> {
  const { store, timers, clock } = deps;
  const { ref } = before;
  if (pass.ends.length > 0) await store.end(ref, pass.ends, clock.now());
  // First the timers: the message that brought us here finds nothing due any more once the records stand.
  const armed = new Set([...before.scheduled.values()].map(({ held }) => held?.until));
  const moments = [
    ...pass.rescheduled.map(({ fireAt }) => fireAt),
    // Pods that one rule keeps are looked at together when it ends.
    ...pass.held.flatMap(({ held }) => (armed.has(held?.until) ? [] : (held?.until ?? []))),
    ...pass.queued.map(ownMomentOf),
  ];
  await timers.arm(ref, [...new Set(moments)]);
  const written = needsCommit(before, pass, clock.now()) ? await correct(before, pass, deps) : NOTHING;
  // What was written is told before anything else can fail: the message that comes again no longer finds it.
  tell(ref, written, pass, deps);
  const { retry, askAgainAt } = written;
  if (askAgainAt !== undefined) await timers.arm(ref, [askAgainAt]);
  if (retry) {
    await timers.arm(ref, [retry.nextTryAt]);
    deps.metrics.retried(ref.cluster);
    const { attempts, nextTryAt, error } = retry;
    deps.log.warn('eviction.retried', { ...ref, attempts, nextTryAt, reason: error });
  }
  if (pass.fault) throw pass.fault;
  if (written.unnoted)
    throw new Error(`nothing is known of node ${ref.node} of ${ref.cluster} yet: ${written.unnoted}`);
  return written.moved || pass.behind ? { againInSeconds: AGAIN_SECONDS } : undefined;
}

/** What a commit came to. */
interface Written {
  readonly cancelled: readonly Ending[];
  readonly rescheduled: readonly EvictionRecord[];
  readonly held: readonly EvictionRecord[];
  /** Those that the Eviction API refuses from now on. */
  readonly blocked: readonly EvictionRecord[];
  /** When the Eviction API is asked again, if this pass set it. */
  readonly askAgainAt: EpochMs | undefined;
  readonly gaveUp: readonly EvictionRecord[];
  /**
   * The next try, if this pass set it. One that another pass set meanwhile is armed by that one: of messages that fail
   * at the same time one goes on, or they would stay as many as they are for as long as it fails.
   */
  readonly retry: NodeRetry | undefined;
  /** The cluster is only observed. */
  readonly observed: boolean;
  /** Something newer was told of a pod meanwhile, so that its verdict no longer holds. */
  readonly moved: boolean;
  /** What failed although nothing is known of the node, so that there is nowhere to note when it is tried again. */
  readonly unnoted?: string | undefined;
}

const NOTHING: Written = {
  cancelled: [],
  rescheduled: [],
  held: [],
  blocked: [],
  askAgainAt: undefined,
  gaveUp: [],
  retry: undefined,
  observed: false,
  moved: false,
};

/** Most passes only end records, and that needs no lock. */
function needsCommit({ node }: Partition, pass: Pass, now: EpochMs): boolean {
  const told = pass.cancelled.length + pass.rescheduled.length + pass.held.length + pass.queued.length;
  return (
    told + pass.blocked.size + pass.failed.size > 0 ||
    pass.refusal !== undefined ||
    (node?.retry?.nextTryAt ?? Infinity) <= now
  );
}

async function correct(before: Partition, pass: Pass, deps: RecordDeps): Promise<Written> {
  const { store, clock } = deps;
  const { ref } = before;
  const now = clock.now();
  const random = Math.random();
  const rules = await deps.rules(ref.cluster, before.node?.guardRevision);
  const { giveUpAfterMs, method } = rules.policy;
  const trial = { now, random, giveUpAfterMs };
  /** Takes those out of what is `left` that are blocked; the others of them have failed. */
  const sortOut = (left: Map<PodUid, EvictionRecord>, node: NodeState | undefined) => {
    const progressed = pass.ends.length > 0;
    const waiting = afterBlocks({ node, scheduled: left }, pass.blocked, method, { now, progressed });
    for (const uid of pass.blocked.keys()) if (!waiting.failed.has(uid)) left.delete(uid);
    const failures: Failures = {
      ...(pass.refusal ? { everything: pass.refusal.message, outOfReach: pass.outOfReach } : {}),
      pods: new Map([...pass.failed, ...waiting.failed]),
      retryAfterSeconds: pass.retryAfterSeconds,
    };
    return { waiting, failures };
  };
  // Set aside before they are given up: a crash in between sets them aside twice, and loses none.
  if (before.node) {
    const left = new Map(before.scheduled);
    for (const { uid } of pass.settled()) left.delete(uid);
    const { gaveUp } = afterFailures(before.node, left, sortOut(left, before.node).failures, trial);
    await setAside(ref, gaveUp, deps);
  }
  return commitUnderLock(store, ref, undefined, clock, (found) => {
    const stands = (record: EvictionRecord) => isUntouched(before, found, record);
    const cancelled = pass.cancelled
      .filter(({ record }) => stands(record))
      .map(({ record, because }) =>
        ending(record, { outcome: 'cancelled', cancelled: because }, record.version),
      );
    const rescheduled = pass.rescheduled.filter(stands);
    // Who wakes what is held has done so already if nothing holds it by now.
    const held = pass.held.filter((each) => stands(each) && isStillHeld(each, rules, now));
    const left = withTurns(found, pass, now);
    for (const { uid } of [...cancelled, ...rescheduled, ...held]) left.delete(uid);
    const queued = pass.queued.flatMap(({ uid }) => left.get(uid) ?? []);
    for (const { uid } of queued) left.delete(uid);
    const { node } = found;
    const { waiting, failures } = sortOut(left, node);
    const after = node && afterFailures(node, left, failures, trial);
    const next = after?.node.retry;
    const [failure = failures.everything] = failures.pods.values();
    const result: Written = {
      cancelled,
      rescheduled,
      held: held.filter(({ uid, held: now }) => found.scheduled.get(uid)?.held?.by.kind !== now?.by.kind),
      blocked: waiting.changed.filter(({ uid }) => found.scheduled.get(uid)?.blocked === undefined),
      askAgainAt: waiting.node?.nextTryAt,
      gaveUp: after?.gaveUp ?? [],
      retry: next?.nextTryAt === node?.retry?.nextTryAt ? undefined : next,
      observed: rules.policy.mode === 'observe',
      moved:
        cancelled.length + rescheduled.length + held.length <
        pass.cancelled.length + pass.rescheduled.length + pass.held.length,
      unnoted: node || left.size === 0 ? undefined : failure,
    };
    const schedule = [...rescheduled, ...held, ...queued, ...waiting.changed, ...(after?.changed ?? [])];
    const change = {
      ...(after && (waiting.node || after.node.retry !== node?.retry)
        ? { node: { ...after.node, ...(waiting.node ? { blocked: waiting.node } : {}) } }
        : {}),
      schedule,
      end: cancelled,
      live: isTainted(node),
    };
    const writes = schedule.length + cancelled.length > 0 || change.node !== undefined;
    return writes ? { result, change } : { result };
  });
}

/** What is scheduled, with the turns that were taken for those that are due, so that none takes two. */
function withTurns({ scheduled }: Partition, { turns }: Pass, now: EpochMs): Map<PodUid, EvictionRecord> {
  const records = new Map(scheduled);
  for (const [uid, turn] of turns) {
    const record = records.get(uid);
    if (record && record.fireAt <= now) records.set(uid, { ...record, ...turn });
  }
  return records;
}

const isStillHeld = ({ held }: EvictionRecord, rules: Rules, now: EpochMs): boolean =>
  held !== undefined && mayStillHold(held.by, rules, now);

/** Whether nobody told anything newer of a pod, or moved its deadline elsewhere, since its partition was read. */
function isUntouched(before: Partition, found: Partition, record: EvictionRecord): boolean {
  const stored = found.scheduled.get(record.uid);
  return (
    stored !== undefined &&
    same(stored.version, record.version) &&
    [before.scheduled.get(record.uid)?.fireAt, record.fireAt].includes(stored.fireAt) &&
    same(found.node?.version, before.node?.version) &&
    same(found.node?.podsVersion, before.node?.podsVersion)
  );
}

const same = (a: Version | undefined, b: Version | undefined): boolean =>
  a && b ? compareVersions(a, b) === 0 : a === b;

function tell(ref: NodeRef, written: Written, pass: Pass, { log, metrics }: RecordDeps): void {
  for (const record of written.blocked) {
    const { by = 'budget', reason } = record.blocked ?? {};
    pass.events.push(blockedEviction(record, by));
    log.info('eviction.blocked', { ...evictionFields(ref, record), by, reason });
  }
  for (const each of written.cancelled) {
    pass.events.push(cancellingDeletion(each, each.version));
    log.info('eviction.cancelled', { ...evictionFields(ref, each), reason: each.cancelled, announced: true });
  }
  for (const record of written.rescheduled) {
    pass.events.push(countingDown({ ...countdownOf(record), moved: true }, written.observed));
    log.info('eviction.rescheduled', evictionFields(ref, record));
  }
  for (const record of written.held) {
    if (record.held) pass.events.push(heldBack(record, record.held.by));
    if (record.held?.by.kind === 'observe') log.info('eviction.would-have', evictionRef(ref, record));
    else log.info('eviction.held', { ...evictionFields(ref, record), by: record.held?.by.kind });
  }
  if (written.gaveUp.length === 0) return;
  metrics.gaveUp(ref.cluster, written.gaveUp.length);
  for (const record of written.gaveUp) {
    pass.events.push(gaveUpDeletion(record));
    log.error('eviction.gave-up', { ...evictionFields(ref, record), reason: record.failure?.error });
  }
}

/** When what failed on a node went otherwise before its next try, what fails from now on fails for the first time. */
export async function endRetry(ref: NodeRef, { store, clock }: RecordDeps): Promise<void> {
  await commitUnderLock(store, ref, undefined, clock, (found) => {
    const now = clock.now();
    if (!found.node?.retry || found.node.retry.nextTryAt > now || dueOf(found, now).length > 0) {
      return { result: undefined };
    }
    // What neither stands nor has ended has expired, and is about to be put back.
    if (found.ended.size === 0) return { result: undefined };
    const { retry: _retry, ...node } = found.node;
    return { result: undefined, change: { node, schedule: [], end: [], live: isTainted(node) } };
  });
}

/**
 * Ends what is scheduled on a node of a cluster that is managed no longer. Should the cluster be registered again, its
 * relay tells of the node anew, and the countdowns go on from where they started.
 */
export async function endUnregistered(
  { ref, scheduled }: Partition,
  reason: UnknownClusterError,
  deps: RecordDeps,
): Promise<void> {
  await setAside(ref, [...scheduled.values()], deps, reason.message);
  const ended = await commitUnderLock(deps.store, ref, undefined, deps.clock, (found) => {
    const end = [...found.scheduled.values()].map((record) =>
      ending(record, { outcome: 'unregistered', error: reason.message }, record.version),
    );
    if (end.length === 0) return { result: end };
    return { result: end, change: { schedule: [], end, live: isTainted(found.node) } };
  });
  deps.metrics.gaveUp(ref.cluster, ended.length);
  for (const each of ended) deps.log.error('eviction.unregistered', { ...evictionFields(ref, each), reason });
}

/** Copies of evictions that end without their pods going: a redriven one is tried again. */
async function setAside(
  ref: NodeRef,
  records: readonly EvictionRecord[],
  { deadLetters }: RecordDeps,
  reason = records[0]?.failure?.error ?? '',
): Promise<void> {
  if (records.length === 0) return;
  const body = encodeRetry({ ...ref, pods: records.map(({ uid }) => uid) });
  const [failure] = await deadLetters.send([
    { body, groupId: dueGroupId(ref.cluster), attributes: { reason: reason || 'unknown' } },
  ]);
  if (failure) throw new Error(`the dead-letter queue refused what is given up: ${failure.reason}`);
}
