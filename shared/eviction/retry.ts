import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PodUid } from './identity.ts';
import type { EvictionRecord, Held, NodeRetry, NodeState, Partition } from './records.ts';

/** The first retry comes so soon, each later one after twice the time, up to the longest. */
const FIRST_RETRY_MS = 1_000;
/** The longest wait of the early tries: most faults are short, and a pod must not be minutes late because of one. */
const MAX_EARLY_RETRY_MS = 30_000;
const EARLY_TRIES = 10;
/** The first wait for a server that is out of reach: sooner it is not asked, and its relay wakes what waits once it answers. */
const FIRST_UNREACHABLE_MS = 5_000;
export const MAX_RETRY_MS = 300_000;
/** A server's `Retry-After` is honoured up to here. */
export const MAX_ASKED_MS = 3_600_000;

/**
 * The wait after so many failed tries (1 or more) in a row. `random`, 0 to 1, shortens it by up to half, and never lengthens it.
 * A server that is out of reach is asked ever more seldom from the start: each try may keep a process waiting for its whole time-out.
 */
export function retryWaitMs(attempts: number, random: number, outOfReach = false): number {
  const doublings = Math.min(attempts - 1, 30);
  const early = Math.min(FIRST_RETRY_MS * 2 ** doublings, MAX_EARLY_RETRY_MS);
  const further = early * 2 ** Math.max(doublings + 1 - EARLY_TRIES, 0);
  const waitMs = outOfReach ? FIRST_UNREACHABLE_MS * 2 ** doublings : further;
  return Math.ceil(Math.min(waitMs, MAX_RETRY_MS) * (0.5 + random / 2));
}

/**
 * When a record is to be looked at by itself: at its deadline, in its turn, or when its budget is asked again. Of one that is held until
 * a moment, only a turn that it was given since puts that off.
 */
export const ownMomentOf = ({ fireAt, notBefore = 0, turnAt = 0, blocked, held }: EvictionRecord): EpochMs =>
  held?.until === undefined
    ? Math.max(fireAt, notBefore, turnAt, blocked?.nextTryAt ?? 0)
    : Math.max(held.until, notBefore, turnAt);

/**
 * When a record is to be looked at, and not before: by itself, or with the next try of its node's failures; `undefined`: it was given up, or is held until somebody wakes it.
 */
export function momentOf(record: EvictionRecord, node: NodeState | undefined): EpochMs | undefined {
  if (record.gaveUpAt !== undefined) return undefined;
  if (record.held && record.held.until === undefined) return undefined;
  const asked = record.blocked && !record.held ? (node?.blocked?.nextTryAt ?? 0) : 0;
  const moment = Math.max(ownMomentOf(record), asked);
  const retry = node?.retry;
  const waits = retry && (retry.everything || record.failure);
  return waits ? Math.max(moment, retry.nextTryAt) : moment;
}

/**
 * Since when a record is overdue, if it is past that moment: as {@link momentOf}, but without the next try of its node's failures, which only puts
 * off a deadline that has passed. What a budget blocks is overdue once the budget was not asked when it was its turn.
 */
export function overdueFrom(record: EvictionRecord, node: NodeState | undefined): EpochMs | undefined {
  if (!node) return momentOf(record, node);
  const { retry: _retry, ...untried } = node;
  return momentOf(record, untried);
}

/** The records of a node that are to be looked at by now. */
export const dueOf = ({ scheduled, node }: Partition, now: EpochMs): readonly EvictionRecord[] =>
  [...scheduled.values()].filter((record) => (momentOf(record, node) ?? Infinity) <= now);

/** The next moment at which something is to be looked at on a node, after `now`. */
export function nextMomentOf({ scheduled, node }: Partition, now: EpochMs): EpochMs | undefined {
  const later = [...scheduled.values()]
    .map((record) => momentOf(record, node))
    // Equivalent mutant (ConditionalExpression): `undefined` is not after any moment: the check is for the
    // type checker.
    .filter((moment) => moment !== undefined && moment > now);
  return later.reduce<EpochMs | undefined>(
    (least, moment) => Math.min(least ?? Infinity, moment ?? Infinity),
    undefined,
  );
}

/** What a look at a node could not do. */
export interface Failures {
  /** Why nothing (more) could be done there: the cluster does not answer, or takes no more for now. */
  readonly everything?: string;
  /** The cluster answers no calls at all. */
  readonly outOfReach?: boolean;
  /** Why single pods could not be evicted. */
  readonly pods: ReadonlyMap<PodUid, string>;
  /** What the API server asked for. */
  readonly retryAfterSeconds?: number;
  /** Nothing failed, evictions are held: that does not count until they are given up. */
  readonly isHold?: boolean;
}

/** What becomes of a node on which something failed. */
export interface Retry {
  readonly node: NodeState;
  /** Records as they are to be stored: those that failed by themselves, and those that are given up. */
  readonly changed: readonly EvictionRecord[];
  /** Those of them that have failed for too long, and are left alone from now on. */
  readonly gaveUp: readonly EvictionRecord[];
}

/**
 * Decides when the failed evictions of a node are tried again: all of them together, so that the node has one message
 * under way however many pods fail and for however long. A failure that is met while others wait for their next try
 * joins them, or has it come sooner if its pod never failed before. Only records that still stand count; when none does, and nothing else failed before, nothing is left
 * to try. `random`: 0 to 1. `giveUpAfterMs`: of trying; what is held is not tried before the moment until which it is.
 */
export function afterFailures(
  node: NodeState,
  scheduled: Partition['scheduled'],
  failures: Failures,
  {
    now,
    random,
    giveUpAfterMs,
  }: { readonly now: EpochMs; readonly random: number; readonly giveUpAfterMs: number },
): Retry {
  const due = [...scheduled.values()].filter(
    ({ fireAt, gaveUpAt, held }) => fireAt <= now && gaveUpAt === undefined && heldUntil(held) <= now,
  );
  const everything = failures.everything !== undefined;
  const changed: EvictionRecord[] = [];
  const gaveUp: EvictionRecord[] = [];
  const everythingSince = node.retry?.everything ? node.retry.since : now;
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
        // Equivalent mutant (StringLiteral): A record that has not failed by itself is counted here only when
        // everything failed, for a reason; the type checker does not know.
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
  const { retry, ...rest } = node;
  if (!failing) return { node: rest, changed, gaveUp };
  const next = nextRetry(retry, failures, { now, random, isFirst });
  return { node: { ...rest, retry: next }, changed, gaveUp };
}

/** Since when a record may be tried: it fell due, was freed, and had its turn. */
const triableSince = ({ fireAt, notBefore = 0, turnAt = 0 }: EvictionRecord): EpochMs =>
  Math.max(fireAt, notBefore, turnAt);

/** What is held without a moment is so until somebody wakes it; what is not is so no more. */
const heldUntil = (held: Held | undefined): EpochMs =>
  held === undefined ? Number.NEGATIVE_INFINITY : (held.until ?? Number.POSITIVE_INFINITY);

/** The next try after one that failed, or the one that is coming already. */
function nextRetry(
  retry: NodeRetry | undefined,
  { everything, outOfReach, pods, retryAfterSeconds = 0, isHold }: Failures,
  { now, random, isFirst }: { readonly now: EpochMs; readonly random: number; readonly isFirst: boolean },
): NodeRetry {
  const error = everything ?? pods.values().next().value ?? retry?.error ?? '';
  // Where the node is not put off as a whole, a pod that fails for the first time waits no longer than if it were alone.
  const startsAnew = isFirst && !retry?.everything && everything === undefined;
  const attempts = startsAnew ? 1 : (retry?.attempts ?? 0) + 1;
  const askedMs = Math.min(retryAfterSeconds * 1000, MAX_ASKED_MS);
  const waitMs = Math.max(retryWaitMs(attempts, random, outOfReach), askedMs);
  const isComing = retry && retry.nextTryAt > now && (!startsAnew || retry.nextTryAt <= now + waitMs);
  // Failures of single pods say nothing about how long the others could not be tried.
  const since = retry && !isHold && (retry.everything || everything === undefined) ? retry.since : now;
  const next = { error, since, everything: everything !== undefined };
  if (isComing) return { ...retry, ...next, everything: retry.everything || next.everything };
  return { attempts, nextTryAt: now + waitMs, ...next };
}
