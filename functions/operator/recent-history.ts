import type { EpochMs } from '#shared/eviction/identity.ts';
import type { History, HistoryEntry, HistoryQuery } from '#shared/store/history.ts';
import { HISTORY_DAYS } from '#shared/store/stored.ts';

/** No more than these are told of one pod or node. */
const MOST_ENTRIES = 50;
const DAY_MS = 86_400_000;
/** Clocks differ a little. */
const AHEAD_MS = 60_000;

/** The newest of what history tells, the oldest of these first. Rejects with `StoreError`. */
export async function recentHistory(
  history: History,
  about: Omit<HistoryQuery, 'from' | 'to'>,
  now: EpochMs,
): Promise<readonly HistoryEntry[]> {
  const found: HistoryEntry[] = [];
  const query = { ...about, from: now - HISTORY_DAYS * DAY_MS, to: now + AHEAD_MS };
  for await (const entry of history.entries(query)) {
    found.push(entry);
    if (found.length === MOST_ENTRIES) break;
  }
  return found.reverse();
}
