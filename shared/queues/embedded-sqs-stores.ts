import type { DatabaseSync } from 'node:sqlite';
import type { buildApp } from 'fauxqs';
import { fauxqsInternals } from './fauxqs-internals.ts';

/** What the queue server keeps its state in. */
type Stores = NonNullable<NonNullable<Parameters<typeof buildApp>[0]>['stores']>;
type Persistence = NonNullable<Stores['sqsStore']['persistence']>;

export interface DurableStores {
  readonly stores: Stores;
  /** To be called once the server is closed. */
  close(): void;
}

const MAKE_VISIBLE = 'UPDATE sqs_messages SET receipt_handle = NULL, visibility_deadline = NULL';

/** The server itself knows no retention, so the file is rid of what is too old whenever it is opened. */
const DROP_EXPIRED = `DELETE FROM sqs_messages WHERE sent_timestamp < 1000 * (unixepoch() - (
  SELECT attributes ->> 'MessageRetentionPeriod' FROM sqs_queues WHERE name = queue_name))`;

/**
 * Stores for fauxqs that write every change to a SQLite file in `dir` before it is answered, and start with what
 * that file holds. Nothing that was answered is lost when the process is killed; a power cut may take the last
 * moments. No other process may use the directory.
 *
 * fauxqs itself offers this only with a server that listens on every interface, so its persistence is taken from
 * inside the package, whose version is therefore pinned. Three of its ways are changed here:
 * - It waits for the disk after every row: 1,500 instead of 5,000 sends per second.
 * - It breaks a constraint when a message is made visible at once, and then loses the message.
 * - It keeps messages in flight hidden after a restart, although whoever had them is gone.
 */
export async function durableStores(dir: string): Promise<DurableStores> {
  const [{ PersistenceManager }, { SqsStore }, { SnsStore }, { S3Store }] = await Promise.all([
    fauxqsInternals<{ PersistenceManager: new (dir: string) => Persistence }>('persistence.js'),
    fauxqsInternals<{ SqsStore: new () => Stores['sqsStore'] }>('sqs/sqsStore.js'),
    fauxqsInternals<{ SnsStore: new () => Stores['snsStore'] }>('sns/snsStore.js'),
    fauxqsInternals<{ S3Store: new () => Stores['s3Store'] }>('s3/s3Store.js'),
  ]);
  const persistence = new PersistenceManager(dir);
  const database = persistence['db'] as DatabaseSync;
  database.exec(`PRAGMA synchronous = NORMAL; ${MAKE_VISIBLE}; ${DROP_EXPIRED};`);
  const makeVisible = database.prepare(`${MAKE_VISIBLE} WHERE message_id = ?`);
  persistence.updateMessageReady = (messageId) => {
    makeVisible.run(messageId);
  };
  const stores = { sqsStore: new SqsStore(), snsStore: new SnsStore(), s3Store: new S3Store() };
  persistence.loadSqsAndSns(stores.sqsStore, stores.snsStore);
  // Only now: a store that persists while it loads would replace, and thereby empty, the queues it loads.
  stores.sqsStore.persistence = persistence;
  for (const queue of stores.sqsStore.allQueues()) queue.persistence = persistence;
  return { stores, close: () => persistence.close() };
}
