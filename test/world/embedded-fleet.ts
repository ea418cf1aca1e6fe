import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';

import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { sqliteLeases } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import type { Clock } from '#shared/time/clock.ts';
import { VERSION } from '#shared/version.ts';
import { KeptLetters } from './kept-letters.ts';

/** The `service` of a fleet whose process runs. */
export const running = async () => ({ version: VERSION, startedAt: 0, queues: {}, clusters: {} });

/**
 * Returns a fleet of these clusters in memory with empty rules, with the operator anna; `parts` replace its own parts.
 */
export function embeddedFleet(
  t: Pick<TestContext, 'after'>,
  { clusters, clock }: { readonly clusters: readonly string[]; readonly clock: Clock },
  parts: Partial<Fleet> = {},
) {
  const names = clusters.map(clusterName);
  const store = new SqliteStore({ path: ':memory:' });
  const { database } = store;
  const rules = openRulesDatabase(':memory:');
  t.after(() => {
    rules.close();
    store.close();
  });
  const rulesStore = new SqliteRulesStore({ database: rules });
  const leases = sqliteLeases(database);
  const letters = new KeptLetters(clock);
  /** Bodies of messages on `evictions-due`. */
  const sent: string[] = [];
  const fleet: Fleet = {
    kind: 'local',
    where: 'a test',
    rulesStore,
    store,
    history: new SqliteHistory({ database }),
    leases,
    deadLetters: letters,
    clusters: async () => names,
    manages: async (cluster) => names.includes(cluster),
    cluster: async (name) => assert.fail(`cluster ${name} was asked`),
    backlog: async () => new Map(),
    service: async () => undefined,
    operator: async () => ({ rulesStore, clock, actor: 'anna' }),
    dueQueue: async () => ({
      send: async (messages) => {
        sent.push(...messages.map(({ body }) => body));
        return [];
      },
    }),
    close: () => undefined,
    ...parts,
  };
  return { fleet, store, rules, rulesStore, leases, letters, sent };
}
