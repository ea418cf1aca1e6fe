import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DeadLetters } from '#functions/local/dead-letters.ts';
import { SqliteLeases } from '#functions/local/sqlite-leases.ts';
import { SqliteRulebook } from '#functions/local/sqlite-rulebook.ts';
import { SqliteStore } from '#functions/local/sqlite-store.ts';
import { STORE_FILE } from '#functions/local/state-directory.ts';
import { localUser } from '#shared/clusters/local-user.ts';
import { Operator } from '#shared/clusters/operator.ts';
import { QUEUES } from '#shared/queues/queue-set.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import { logTo } from '#shared/telemetry/log.ts';
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
    leases,
    clusters: async () => leases.clusters(),
    manages: async (cluster) => leases.clusters().includes(cluster),
    operator: async () => new Operator({ rulebook, clock, who: localUser() }),
    dueQueue: async () => redriving(new DeadLetters({ database, clock, log: logTo(() => undefined) })),
  };
}

/** Sends to the queue of the process that runs, or of the next that starts, by way of letters that it is to send again. */
function redriving(letters: DeadLetters): QueueSender {
  return {
    send: async (messages) => {
      for (const message of messages)
        letters.add(QUEUES.evictionsDue.name, message, 'an operator asked for it');
      const bodies = new Set(messages.map(({ body }) => body));
      for (const { id, body } of letters.list()) if (bodies.has(body)) letters.redrive(id);
      return [];
    },
  };
}
