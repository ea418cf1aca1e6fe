import type { History, HistoryEntry, HistoryQuery } from '#shared/state/history.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Maximum number of entries for one pod or node. */
const MAX_ENTRIES = 50;
/** Allows for clock skew between machines. */
const AHEAD_MS = 60_000;

/** Returns the newest entries of the whole history, oldest first. Rejects with `StoreError`. */
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
