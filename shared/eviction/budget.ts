import { DOWN_KEYS, NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import type { EpochMs, PodUid } from './identity.ts';
import type { Method } from './policy.ts';
import type { Block, Blocked, EvictionRecord, Partition } from './records.ts';

/** A pod that the Eviction API refuses is asked for again after so long. */
export const BUDGET_RETRY_MS = 5_000;

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
  /** When they are asked for again, if nothing is to look at their node by then yet. */
  readonly armAt?: EpochMs;
}

/**
 * Decides when pods are asked for again whose eviction was refused just now: those of a node together, so that it has one
 * message under way for them. `blocks`: why, by pod; only those that are scheduled and due count.
 */
export function afterBlocks(
  scheduled: Partition['scheduled'],
  blocks: ReadonlyMap<PodUid, Block>,
  method: Method,
  now: EpochMs,
): Waiting {
  const armed = [...scheduled.values()]
    .flatMap(({ blocked }) => blocked?.nextTryAt ?? [])
    .filter((moment) => moment > now && moment <= now + BUDGET_RETRY_MS);
  const nextTryAt = Math.min(now + BUDGET_RETRY_MS, ...armed);
  const changed: EvictionRecord[] = [];
  const failed = new Map<PodUid, string>();
  for (const [uid, block] of blocks) {
    const found = scheduled.get(uid);
    if (!found || found.fireAt > now) continue;
    if (method.kind === 'evict' && isOver(method, found.blocked, now)) {
      failed.set(uid, block.reason);
      continue;
    }
    const { failure: _failure, ...record } = found;
    changed.push({ ...record, blocked: { since: found.blocked?.since ?? now, nextTryAt, ...block } });
  }
  const armAt = changed.length > 0 && armed.length === 0 ? nextTryAt : undefined;
  return { changed, failed, ...(armAt === undefined ? {} : { armAt }) };
}
