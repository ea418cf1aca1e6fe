import type { EpochMs, PodUid } from './identity.ts';
import type { EvictionRecord, Held, NodeRetry, NodeState, Partition } from './records.ts';

/** The first retry comes so soon, each later one after twice the time, up to the longest; jittered by half. */
const FIRST_RETRY_MS = 5_000;
export const LONGEST_RETRY_MS = 300_000;
/** A server's `Retry-After` is honoured up to here. */
const LONGEST_ASKED_MS = 3_600_000;

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
  const moment = ownMomentOf(record);
  const retry = node?.retry;
  const waits = retry && (retry.everything || record.failure);
  return waits ? Math.max(moment, retry.nextTryAt) : moment;
}

/** The records of a node that are to be looked at by now. */
export const dueOf = ({ scheduled, node }: Partition, now: EpochMs): readonly EvictionRecord[] =>
  [...scheduled.values()].filter((record) => (momentOf(record, node) ?? Infinity) <= now);

/** The next moment at which something is to be looked at on a node, after `now`. */
export function nextMomentOf({ scheduled, node }: Partition, now: EpochMs): EpochMs | undefined {
  const later = [...scheduled.values()]
    .map((record) => momentOf(record, node))
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
  /** Why single pods could not be evicted. */
  readonly pods: ReadonlyMap<PodUid, string>;
  /** What the API server asked for. */
  readonly retryAfterSeconds?: number;
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
 * joins them. Only records that still stand count; when none does, and nothing else failed before, nothing is left
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
  let failing = false;
  for (const record of due) {
    const error = failures.pods.get(record.uid);
    const failure = record.failure ?? (error === undefined ? undefined : { since: now, error });
    const tried =
      failure?.since ?? (everything ? Math.max(node.retry?.since ?? now, record.fireAt) : undefined);
    if (tried === undefined) continue;
    const since = Math.max(tried, heldUntil(record.held));
    if (now - since >= giveUpAfterMs) {
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
    if (failure && failure !== record.failure) changed.push({ ...record, failure });
  }
  const { retry, ...rest } = node;
  if (!failing) return { node: rest, changed, gaveUp };
  const next = nextRetry(retry, failures, now, random);
  return { node: { ...rest, retry: next }, changed, gaveUp };
}

/** What is held without a moment is so until somebody wakes it; what is not is so no more. */
const heldUntil = (held: Held | undefined): EpochMs =>
  held === undefined ? Number.NEGATIVE_INFINITY : (held.until ?? Number.POSITIVE_INFINITY);

/** The next try after one that failed, or the one that is coming already. */
function nextRetry(
  retry: NodeRetry | undefined,
  { everything, pods, retryAfterSeconds = 0 }: Failures,
  now: EpochMs,
  random: number,
): NodeRetry {
  const error = everything ?? pods.values().next().value ?? retry?.error ?? '';
  const waits = retry && retry.nextTryAt > now ? retry : undefined;
  if (waits) return { ...waits, error, everything: waits.everything || everything !== undefined };
  const attempts = (retry?.attempts ?? 0) + 1;
  const exponentialMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(attempts - 1, 30), LONGEST_RETRY_MS);
  const askedMs = Math.min(retryAfterSeconds * 1000, LONGEST_ASKED_MS);
  const waitMs = Math.max(Math.ceil(exponentialMs * (0.5 + random / 2)), askedMs);
  return {
    attempts,
    nextTryAt: now + waitMs,
    since: retry?.since ?? now,
    error,
    everything: everything !== undefined,
  };
}
