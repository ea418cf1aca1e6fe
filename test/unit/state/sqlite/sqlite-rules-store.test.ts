import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { rulesStoreContract } from '#test/contracts/rules-store-contract.ts';

rulesStoreContract('SqliteRulesStore', async () => {
  const database = openRulesDatabase(':memory:');
  return { rulesStore: new SqliteRulesStore({ database }), close: async () => database.close() };
});

const KEPT_MS = HISTORY_DAYS * 24 * 3600 * 1000;

const entry = { actor: 'anna', at: 0, kind: 'resume', message: 'resumed' } as const;

test('removes audit entries after their retention', async () => {
  const database = openRulesDatabase(':memory:');
  const rulesStore = new SqliteRulesStore({ database });
  await rulesStore.changeFleetStop(undefined, undefined, entry);
  const entries = async () => (await rulesStore.audit({ from: 0, to: 1 })).length;
  rulesStore.purge(KEPT_MS - 1);
  assert.equal(await entries(), 1);
  rulesStore.purge(KEPT_MS, HISTORY_DAYS + 1);
  assert.equal(await entries(), 1);
  rulesStore.purge(KEPT_MS);
  assert.equal(await entries(), 0);
  database.close();
});

test('returns entries of the same time in reverse order', async () => {
  const database = openRulesDatabase(':memory:');
  const rulesStore = new SqliteRulesStore({ database });
  for (const message of ['first', 'second']) await rulesStore.note({ ...entry, message });
  const entries = await rulesStore.audit({ from: 0, to: 1 });
  assert.deepEqual(
    entries.map(({ message }) => message),
    ['second', 'first'],
  );
  database.close();
});
