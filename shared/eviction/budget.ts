import { DOWN_KEYS, NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PodUid } from './identity.ts';
import type { Method } from './policy.ts';
import type { Block, Blocked, EvictionRecord, NodeBlocked, Partition } from './records.ts';

/** A pod that the Eviction API refuses is asked for again after so long, then after twice the time, up to the longest. */
export const BUDGET_RETRY_MS = 5_000;
export const MAX_BUDGET_RETRY_MS = 60_000;

/** Set for as long as something moves a pod off its node in place of its eviction: KubeVirt, while it migrates a VM. */
export const MOVING_ANNOTATION = 'descheduler.alpha.kubernetes.io/eviction-in-progress';
/** Said of a pod with that annotation. */
export const BEING_MOVED = `It is being moved off its node (annotation ${MOVING_ANNOTATION}).`;

/** What of a pod that is due decides by which means it goes. */
export interface Leaving {
  /** Keys of the taints each of which alone makes it go by now. */
  readonly dueBy: readonly string[];
  readonly nodeGone: boolean;
  readonly blocked?: Blocked | undefined;
}

/**
 * By which means a pod goes at `now`. Where its node is down, gone or out of service it is always deleted: it does not
 * run, so nothing is disrupted, and as it is not ready a budget that has too few healthy pods would keep it for ever.
 */
export function meansOf(method: Method, { dueBy, nodeGone, blocked }: Leaving, now: EpochMs): Method['kind'] {
  if (method.kind === 'delete' || nodeGone) return 'delete';
  if (dueBy.some((key) => key === NODE_OUT_OF_SERVICE || DOWN_KEYS.includes(key))) return 'delete';
  return isOver(method, blocked, now) && method.afterDeadline === 'delete' ? 'delete' : 'evict';
}

/** Whether a pod has been blocked for as long as policy lets it. */
const isOver = (
  method: Method & { readonly kind: 'evict' },
  blocked: Blocked | undefined,
  now: EpochMs,
): boolean => blocked !== undefined && now - blocked.since >= method.deadlineMs;

/** What becomes of pods that the Eviction API refuses. */
export interface Waiting {
  /** Their records as they are to be stored. */
  readonly changed: readonly EvictionRecord[];
  /** Those that have been blocked for longer than policy lets them, and are never deleted: they have failed, for this reason. */
  readonly failed: ReadonlyMap<PodUid, string>;
  /** The next try on their node, if this set it: a timer is to be armed for it. */
  readonly node?: NodeBlocked;
}

/**
 * Decides when pods are asked for again whose eviction was refused just now: those of a node together, ever more seldom while none
 * of them goes, but at the deadline of each. Only that is written then, on the node; a record is written when its pod is blocked
 * first, or for another reason. `blocks`: why, by pod; only those that are scheduled and due count. `progressed`: one went.
 */
export function afterBlocks(
  { node, scheduled }: Pick<Partition, 'node' | 'scheduled'>,
  blocks: ReadonlyMap<PodUid, Block>,
  method: Method,
  { now, progressed }: { readonly now: EpochMs; readonly progressed: boolean },
): Waiting {
  const changed: EvictionRecord[] = [];
  const failed = new Map<PodUid, string>();
  const waiting = [...scheduled.values()].flatMap(({ blocked }) => blocked ?? []);
  const asked: { readonly since: EpochMs }[] = [];
  for (const [uid, block] of blocks) {
    const found = scheduled.get(uid);
    if (!found || found.fireAt > now) continue;
    // Equivalent mutant (ConditionalExpression): The other method has no deadline, and nothing is over it:
    // the check is for the type checker.
    if (method.kind === 'evict' && isOver(method, found.blocked, now)) {
      failed.set(uid, block.reason);
      continue;
    }
    const { failure, ...record } = found;
    const since = found.blocked?.since ?? now;
    asked.push({ since });
    if (!failure && isSameBlock(found.blocked, block)) continue;
    const nextTryAt = found.blocked?.nextTryAt ?? now;
    changed.push({ ...record, blocked: { since, nextTryAt, ...block } });
  }
  if (asked.length === 0) return { changed, failed };
  // One of a clock that was set back since counts as none.
  const known = (node?.blocked?.nextTryAt ?? Infinity) <= now + MAX_BUDGET_RETRY_MS;
  const before = known && waiting.length > 0 ? node?.blocked : undefined;
  const isComing = before && before.nextTryAt > now ? before : undefined;
  const attempts = isComing?.attempts ?? (progressed ? 1 : (before?.attempts ?? 0) + 1);
  const waitMs = Math.min(BUDGET_RETRY_MS * 2 ** Math.min(attempts - 1, 30), MAX_BUDGET_RETRY_MS);
  const deadlines = [...waiting, ...asked]
    .map(({ since }) => since + (method.kind === 'evict' ? method.deadlineMs : Infinity))
    .filter((deadline) => deadline > now);
  const nextTryAt = Math.min(isComing?.nextTryAt ?? now + waitMs, ...deadlines);
  return { changed, failed, ...(nextTryAt === isComing?.nextTryAt ? {} : { node: { attempts, nextTryAt } }) };
}

const isSameBlock = (stored: Blocked | undefined, { by, reason }: Block): boolean =>
  stored !== undefined && stored.by === by && stored.reason === reason;
