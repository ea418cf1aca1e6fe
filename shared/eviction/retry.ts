import { defined } from '#shared/defined.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { earliest } from './facts.ts';
import type { PodUid } from './identity.ts';
import type { EvictionRecord, Held, NodeOutage, NodeRetry, NodeState, Partition } from './records.ts';

/** Wait before the first retry. Each later wait is twice as long, up to the maximum. */
const FIRST_RETRY_MS = 1_000;
/** Longest wait of the early tries: most faults are short, and must not delay a pod by minutes. */
const MAX_EARLY_RETRY_MS = 30_000;
const EARLY_TRIES = 10;
/** About half an hour. The first answer ends the wait, but only if the relay, too, sees the outage. */
const EARLY_OUTAGE_TRIES = 60;
/** First wait for an unreachable server: each try may block a process for its whole timeout. */
const FIRST_UNREACHABLE_MS = 5_000;
export const MAX_RETRY_MS = 300_000;
/** Longest `Retry-After` of a server that is honored. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

/** Milliseconds after failed tries (1 or more) in a row. `random`, 0 to 1, shortens them by up to half. */
export function retryWaitMs(
  attempts: number,
  random: number,
  { unanswered, outOfReach }: Pick<Failures, 'unanswered' | 'outOfReach'> = {},
): number {
  const firstMs = outOfReach ? FIRST_UNREACHABLE_MS : FIRST_RETRY_MS;
  const early = Math.min(firstMs * 2 ** Math.min(attempts - 1, 30), MAX_EARLY_RETRY_MS);
  const doublings = Math.max(attempts - (unanswered ? EARLY_OUTAGE_TRIES : EARLY_TRIES), 0);
  return Math.ceil(Math.min(early * 2 ** Math.min(doublings, 30), MAX_RETRY_MS) * (0.5 + random / 2));
}

/**
 * At the deadline, at the turn, or when the budget is asked again. If held until a set time, only a turn assigned since
 * then delays that.
 */
export const ownMomentOf = ({ dueAt, notBefore = 0, turnAt = 0, blocked, held }: EvictionRecord): EpochMs =>
  held?.until === undefined
    ? Math.max(dueAt, notBefore, turnAt, blocked?.nextTryAt ?? 0)
    : Math.max(held.until, notBefore, turnAt);

/** Returns the last next try of its node that a record waits for; `undefined`: none. */
export function nextTryOf(
  { failure }: Pick<EvictionRecord, 'failure'>,
  { retry, outage }: Pick<NodeState, 'retry' | 'outage'> = {},
): NodeRetry | undefined {
  const own = retry && (retry.everything || failure) ? retry : undefined;
  return own && outage ? (own.nextTryAt > outage.nextTryAt ? own : outage) : (own ?? outage);
}

export function changeTries(
  { retry, outage, ...rest }: NodeState,
  change: <Next extends NodeRetry | NodeOutage>(next: Next) => Next | undefined,
): NodeState {
  const [changed, until] = [retry && change(retry), outage && change(outage)];
  return { ...rest, ...defined({ retry: changed, outage: until }) };
}

/**
 * When a record is to be processed, by itself or with its node's next try; `undefined`: failed permanently, or held
 * without an end.
 */
export function momentOf(record: EvictionRecord, node: NodeState | undefined): EpochMs | undefined {
  if (record.gaveUpAt !== undefined) return undefined;
  if (record.held && record.held.until === undefined) return undefined;
  // A pod that was blocked for too long is tried with the failures of its node, not with the blocked pods.
  const isBlocked = record.blocked && !record.held && !record.failure;
  const blockedUntil = isBlocked ? (node?.blocked?.nextTryAt ?? 0) : 0;
  const moment = Math.max(ownMomentOf(record), blockedUntil);
  return Math.max(moment, nextTryOf(record, node)?.nextTryAt ?? moment);
}

/**
 * Unlike {@link momentOf}, ignores the next try of the node's failures, which only delays a passed deadline. A blocked
 * eviction is overdue once the budget was not asked at its time.
 */
export function overdueFrom(record: EvictionRecord, node: NodeState | undefined): EpochMs | undefined {
  return momentOf(record, node && changeTries(node, () => undefined));
}

export const dueOf = ({ scheduled, node }: Partition, now: EpochMs): readonly EvictionRecord[] =>
  [...scheduled.values()].filter((record) => (momentOf(record, node) ?? Infinity) <= now);

/** Returns the next time after `now` at which a record of the node is to be processed. */
export function nextMomentOf({ scheduled, node }: Partition, now: EpochMs): EpochMs | undefined {
  const moments = [...scheduled.values()].map((record) => momentOf(record, node));
  return earliest(moments.filter((moment) => moment !== undefined && moment > now));
}

export interface Failures {
  /** Why no (further) pod could be evicted: the cluster does not answer, or accepts no more requests for now. */
  readonly everything?: string;
  /** That is, because it does not answer. */
  readonly unanswered?: boolean;
  /** The cluster answers no calls at all. */
  readonly outOfReach?: boolean;
  /** Why single pods could not be evicted. */
  readonly pods: ReadonlyMap<PodUid, string>;
  readonly retryAfterSeconds?: number;
  /** Nothing failed; evictions are held. This time does not count toward `giveUpAfterMs`. */
  readonly isHold?: boolean;
}

export interface Retry {
  readonly node: NodeState;
  /** Pods that failed by themselves, and evictions that failed permanently. */
  readonly changed: readonly EvictionRecord[];
  /** Changed records that failed for too long and are not retried. */
  readonly gaveUp: readonly EvictionRecord[];
}

/**
 * Decides when the failed evictions of a node are retried. All are retried together, so that the node has one message
 * in flight for any number of failing pods and for any time. A new failure joins the next try that is already
 * scheduled. The first failure of a pod may make that try earlier. Only records that are still scheduled count. If
 * none of them fails, the node has no next try. `random`: 0 to 1. `giveUpAfterMs`: how long an eviction is tried. A
 * held eviction is not tried before `held.until`.
 *
 * The wait for a cluster that does not answer is apart from these failures, because its first answer ends only this
 * wait. A pass that began before that answer (`begunAt`) proves nothing about the present.
 */
export function afterFailures(
  node: NodeState,
  scheduled: Partition['scheduled'],
  failures: Failures,
  {
    now,
    random,
    giveUpAfterMs,
    begunAt = now,
  }: Readonly<Record<'now' | 'random' | 'giveUpAfterMs', number>> & { readonly begunAt?: EpochMs },
): Retry {
  const due = [...scheduled.values()].filter(
    ({ dueAt, gaveUpAt, held }) => dueAt <= now && gaveUpAt === undefined && heldUntil(held) <= now,
  );
  const everything = failures.everything !== undefined;
  const changed: EvictionRecord[] = [];
  const gaveUp: EvictionRecord[] = [];
  const { retry, outage, ...rest } = node;
  const everythingSince = Math.min(outage?.since ?? now, retry?.everything ? retry.since : now);
  let failing = false;
  let isFirst = false;
  for (const record of due) {
    const error = failures.pods.get(record.uid);
    const failure = record.failure ?? (error === undefined ? undefined : { since: now, error });
    const tried =
      failure?.since ?? (everything ? Math.max(everythingSince, triableSince(record)) : undefined);
    if (tried === undefined) continue;
    const since = Math.max(tried, heldUntil(record.held));
    if (now - since >= giveUpAfterMs && !failures.isHold) {
      const given = {
        ...record,
        failure: failure ?? { since, error: failures.everything ?? '' },
        gaveUpAt: now,
      };
      gaveUp.push(given);
      changed.push(given);
      continue;
    }
    failing = true;
    if (!failure || failure === record.failure) continue;
    isFirst = true;
    changed.push({ ...record, failure });
  }
  if (!failing) return { node: rest, changed, gaveUp };
  const given = { now, random, isFirst, everythingSince };
  const { pods, unanswered } = failures;
  if (!unanswered) return { node: { ...rest, retry: nextRetry(retry, failures, given) }, changed, gaveUp };
  const next = pods.size > 0 ? nextRetry(retry, { pods }, given) : retry;
  const until =
    outage && isEndedSince(outage, begunAt)
      ? outage
      : { ...nextRetry(outage, failures, given), triedAt: begunAt };
  return { node: { ...rest, ...defined({ retry: next }), outage: until }, changed, gaveUp };
}

/** Reports whether the wait of an outage was ended after a pass began: the pass is to be repeated. */
export const isEndedSince = ({ attempts, nextTryAt }: NodeOutage, begunAt: EpochMs): boolean =>
  attempts === 0 && nextTryAt > begunAt;

const triableSince = ({ dueAt, notBefore = 0, turnAt = 0 }: EvictionRecord): EpochMs =>
  Math.max(dueAt, notBefore, turnAt);

/** A hold without an end lasts until the record is woken. */
const heldUntil = (held: Held | undefined): EpochMs =>
  held === undefined ? Number.NEGATIVE_INFINITY : (held.until ?? Number.POSITIVE_INFINITY);

/** Returns the next try after a failed one, or the try that is already scheduled. */
function nextRetry(
  retry: NodeRetry | undefined,
  failures: Failures,
  {
    now,
    random,
    isFirst,
    everythingSince,
  }: Readonly<Record<'now' | 'random' | 'everythingSince', number>> & { readonly isFirst: boolean },
): NodeRetry {
  const { everything, pods, retryAfterSeconds = 0, isHold } = failures;
  const error = everything ?? pods.values().next().value ?? retry?.error ?? '';
  // Unless the whole node waits, a pod that fails for the first time waits no longer than it would alone.
  const startsAgain = isFirst && !retry?.everything && everything === undefined;
  const attempts = startsAgain ? 1 : (retry?.attempts ?? 0) + 1;
  const retryAfterMs = Math.min(retryAfterSeconds * 1000, MAX_RETRY_AFTER_MS);
  const waitMs = Math.max(
    retryWaitMs(attempts, random, everything === undefined ? {} : failures),
    retryAfterMs,
  );
  const isComing = retry && retry.nextTryAt > now && (!startsAgain || retry.nextTryAt <= now + waitMs);
  // Failures of single pods don't show for how long the others couldn't be tried.
  const failingSince = everything === undefined ? (retry?.since ?? now) : everythingSince;
  const since = isHold ? now : failingSince;
  const next = { error, since, everything: everything !== undefined };
  if (isComing) return { ...retry, ...next, everything: retry.everything || next.everything };
  return { attempts, nextTryAt: now + waitMs, ...next };
}
