import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { historyPage } from '#shared/console/history.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { HistoryEntry, HistoryQuery } from '#shared/state/history.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';

const cluster = clusterName('prod');
const LATEST = 40;

/** A fleet with events of pods and acts at these times. */
function fleetOf(pods: readonly number[], acts: readonly number[]) {
  const newest = (times: readonly number[], { from, to }: Pick<HistoryQuery, 'from' | 'to'>) =>
    times.toSorted((a, b) => b - a).filter((at) => at >= from && at <= to);
  async function* entries(query: HistoryQuery) {
    for (const at of newest(pods, query))
      yield { at, cluster, causes: [] as const } as unknown as HistoryEntry;
  }
  const audit = async ({ from, to }: { readonly from: number; readonly to: number }) =>
    newest(acts, { from, to: to - 1 }).map((at) => ({ at, cluster }) as AuditEntry);
  return {
    clusters: async () => [cluster],
    history: { entries },
    rulesStore: { audit },
  } as unknown as Parameters<typeof historyPage>[0];
}

test('a page of history is the newest part of the whole: it leaves out nothing after its oldest event', async () => {
  const times = fc.uniqueArray(fc.integer({ min: 1, max: LATEST }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(times, fc.integer({ min: 1, max: 8 }), fc.integer(), async (all, limit, seed) => {
      const [pods, acts] = [0, 1].map((part) => all.filter((at) => ((at * 7 + seed) & 1) === part));
      const fleet = fleetOf(pods ?? [], acts ?? []);
      const pageOf = async (most: number) => historyPage(fleet, { from: 0, to: LATEST, limit: most }, LATEST);
      const [page, whole] = [await pageOf(limit), await pageOf(LATEST)];
      const oldest = page.more ? Math.min(...page.entries.map(({ entry }) => entry.at)) : 0;
      assert.equal(page.more, (pods?.length ?? 0) > limit);
      assert.equal(page.entries.filter(({ of }) => of === 'pod').length, Math.min(limit, pods?.length ?? 0));
      assert.deepEqual(
        page.entries,
        whole.entries.filter(({ entry }) => entry.at >= oldest),
      );
    }),
  );
});
