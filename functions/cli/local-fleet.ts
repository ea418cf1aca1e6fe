import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { SqliteLeases } from '#functions/local/sqlite-leases.ts';
import { SqliteRulebook } from '#functions/local/sqlite-rulebook.ts';
import { SqliteStore } from '#functions/local/sqlite-store.ts';
import { STORE_FILE } from '#functions/local/state-directory.ts';
import { localUser } from '#shared/clusters/local-user.ts';
import { Operator } from '#shared/clusters/operator.ts';
import type { Clock } from '#shared/time/clock.ts';
import { CliError } from './command.ts';
import type { Fleet } from './fleet.ts';

/** The fleet of an `npm start`, running or not. Throws `CliError` for a directory that is none of its, or `StoreError`. */
export function localFleet(directory: string, clock: Clock): Fleet {
  const path = join(resolve(directory), STORE_FILE);
  if (!existsSync(path)) {
    throw new CliError(`There is no ${path}: name the directory that npm start was given as --state.`);
  }
  const store = new SqliteStore({ path });
  const { database } = store;
  const rulebook = new SqliteRulebook({ database });
  const leases = new SqliteLeases({ database });
  return {
    rulebook,
    store,
    clusters: async () => leases.clusters(),
    operator: async () => new Operator({ rulebook, clock, who: localUser() }),
  };
}
