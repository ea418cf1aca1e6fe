import type { NodeRef, PodUid } from '#shared/eviction/identity.ts';
import { isTainted } from '#shared/eviction/records.ts';
import { commitUnderLock } from '#shared/state/store.ts';
import type { EvictDeps } from './evict-node.ts';

/** Retries failed evictions on request: they count as never tried. A repeated request finds none. */
export async function tryAgain(
  ref: NodeRef,
  uids: readonly PodUid[],
  { store, clock }: Pick<EvictDeps, 'store' | 'clock'>,
): Promise<void> {
  await commitUnderLock(store, ref, uids, clock, ({ node, scheduled }) => {
    const schedule = [...scheduled.values()]
      .filter(({ gaveUpAt }) => gaveUpAt !== undefined)
      .map(({ failure: _failure, gaveUpAt: _gaveUpAt, ...record }) => record);
    if (schedule.length === 0) return { result: undefined };
    const change = { schedule, end: [], live: isTainted(node) };
    if (!node?.retry) return { result: undefined, change };
    const { retry: _retry, ...rested } = node;
    return { result: undefined, change: { ...change, node: rested } };
  });
}
