import type { History, HistoryEntry, HistoryQuery } from '#shared/state/history.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** No more than these are told of one pod or node. */
const MAX_ENTRIES = 50;
/** Clocks differ a little. */
const AHEAD_MS = 60_000;

/** The newest of what history tells, for as long as that is kept, the oldest of these first. Rejects with `StoreError`. */
export async function recentHistory(
  history: History,
  about: Omit<HistoryQuery, 'from' | 'to'>,
  now: EpochMs,
): Promise<readonly HistoryEntry[]> {
  const found: HistoryEntry[] = [];
  const query = { ...about, from: 0, to: now + AHEAD_MS };
  for await (const entry of history.entries(query)) {
    found.push(entry);
    if (found.length === MAX_ENTRIES) break;
  }
  return found.reverse();
}
