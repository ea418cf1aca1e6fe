import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulebook } from '#shared/state/sqlite/sqlite-rulebook.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { rulebookContract } from '#test/contracts/rulebook-contract.ts';

rulebookContract('SqliteRulebook', async () => {
  const database = openDatabase(':memory:');
  return { rulebook: new SqliteRulebook({ database }), close: async () => database.close() };
});

const KEPT_MS = HISTORY_DAYS * 24 * 3600 * 1000;

const entry = { who: 'anna', at: 0, kind: 'resume', what: 'resumed' } as const;

test('entries of the audit go when their time is over', async () => {
  const database = openDatabase(':memory:');
  const rulebook = new SqliteRulebook({ database });
  await rulebook.changeFleetStop(undefined, undefined, entry);
  const told = async () => (await rulebook.audit({ from: 0, to: 1 })).length;
  rulebook.purge(KEPT_MS - 1);
  assert.equal(await told(), 1);
  rulebook.purge(KEPT_MS, HISTORY_DAYS + 1);
  assert.equal(await told(), 1);
  rulebook.purge(KEPT_MS);
  assert.equal(await told(), 0);
  database.close();
});
