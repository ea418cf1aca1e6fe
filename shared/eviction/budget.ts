import { DOWN_KEYS, NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PodUid } from './identity.ts';
import type { Method } from './policy.ts';
import type { Block, Blocked, EvictionRecord, NodeBlocked, Partition } from './records.ts';

/** Wait before the eviction of a blocked pod is requested again. Each later wait is twice as long, up to the maximum. */
export const BUDGET_RETRY_MS = 5_000;
export const MAX_BUDGET_RETRY_MS = 60_000;

/** Set while a controller moves a pod off its node instead of an eviction: KubeVirt, while it migrates a VM. */
export const MOVING_ANNOTATION = 'descheduler.alpha.kubernetes.io/eviction-in-progress';
/** Reason for which a pod with that annotation is blocked. */
export const BEING_MOVED = `It is being moved off its node (annotation ${MOVING_ANNOTATION}).`;

export interface Leaving {
  /** Keys of the taints that are due by now. Each of them alone evicts the pod. */
  readonly dueBy: readonly string[];
  readonly nodeGone: boolean;
  readonly namespaceTerminating: boolean;
  readonly blocked?: Blocked | undefined;
}

/**
 * Returns how a pod is evicted at `now`. If its node is down, gone, or out of service, it is always deleted: nothing is
 * disrupted, and a budget with too few healthy pods would keep it indefinitely. The Eviction API rejects all pods of a
 * namespace that is being deleted.
 */
export function meansOf(
  method: Method,
  { dueBy, nodeGone, namespaceTerminating, blocked }: Leaving,
  now: EpochMs,
): Method['kind'] {
  if (method.kind === 'delete' || nodeGone || namespaceTerminating) return 'delete';
  if (dueBy.some((key) => key === NODE_OUT_OF_SERVICE || DOWN_KEYS.includes(key))) return 'delete';
  return isOver(method, blocked, now) && method.onTimeout === 'delete' ? 'delete' : 'evict';
}

const isOver = (
  method: Method & { readonly kind: 'evict' },
  blocked: Blocked | undefined,
  now: EpochMs,
): boolean => blocked !== undefined && now - blocked.since >= method.timeoutMs;

export interface Waiting {
  /** Changed records, as they are to be stored. */
  readonly changed: readonly EvictionRecord[];
  /** Pods that were blocked for longer than policy allows, and that policy never deletes, with the reason. */
  readonly failed: ReadonlyMap<PodUid, string>;
  /** The next try on the node, if this call set it. It needs a timer. */
  readonly node?: NodeBlocked;
}

/**
 * Decides when blocked evictions are requested again: a node's pods together, at growing intervals while none is
 * evicted, and at each deadline. A retry writes only the node; a record, only when first blocked or for another reason.
 * `blocks`: the reason by pod; only scheduled, due pods count. `progressed`: a pod was evicted.
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
  const answered: { readonly since: EpochMs }[] = [];
  for (const [uid, block] of blocks) {
    const found = scheduled.get(uid);
    if (!found || found.dueAt > now) continue;
    if (method.kind === 'evict' && isOver(method, found.blocked, now)) {
      failed.set(uid, block.reason);
      continue;
    }
    const { failure, ...record } = found;
    const since = found.blocked?.since ?? now;
    answered.push({ since });
    if (!failure && isSameBlock(found.blocked, block)) continue;
    const nextTryAt = found.blocked?.nextTryAt ?? now;
    changed.push({ ...record, blocked: { since, nextTryAt, ...block } });
  }
  if (answered.length === 0) return { changed, failed };
  // A next try from before the clock was set back counts as none.
  const known = (node?.blocked?.nextTryAt ?? Infinity) <= now + MAX_BUDGET_RETRY_MS;
  const before = known && waiting.length > 0 ? node?.blocked : undefined;
  const isComing = before && before.nextTryAt > now ? before : undefined;
  const attempts = isComing?.attempts ?? (progressed ? 1 : (before?.attempts ?? 0) + 1);
  const waitMs = Math.min(BUDGET_RETRY_MS * 2 ** Math.min(attempts - 1, 30), MAX_BUDGET_RETRY_MS);
  const deadlines = [...waiting, ...answered]
    .map(({ since }) => since + (method.kind === 'evict' ? method.timeoutMs : Infinity))
    .filter((deadline) => deadline > now);
  const nextTryAt = Math.min(isComing?.nextTryAt ?? now + waitMs, ...deadlines);
  return { changed, failed, ...(nextTryAt === isComing?.nextTryAt ? {} : { node: { attempts, nextTryAt } }) };
}

const isSameBlock = (stored: Blocked | undefined, { by: blocker, reason }: Block): boolean =>
  stored !== undefined && stored.by === blocker && stored.reason === reason;
