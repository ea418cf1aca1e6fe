import type { DatabaseSync } from 'node:sqlite';
import type { AttributeValue, Context, DynamoDBRecord } from 'aws-lambda';
import fc from 'fast-check';
import { createHandler as createExpiryHandler } from '#functions/expiry/handler.ts';
import { messageFault } from '#shared/aws/sqs-message.ts';
import { podUid } from '#shared/eviction/identity.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import type { History } from '#shared/state/history.ts';
import type { Leases } from '#shared/state/lease.ts';
import type { RulesStore } from '#shared/state/rules-store.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import { KINDS } from '#shared/state/sqlite/sqlite-objects.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { sqliteLeases, sqliteRequests } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { type Store, StoreError } from '#shared/state/store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { CLUSTER, NOW, REF } from '#test/unit/upgrade/messages.ts';
import { RELEASES } from '#test/unit/upgrade/releases.ts';
import { readAll, writeAll } from '#test/unit/upgrade/stored.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';
import { emptied } from './emptied.ts';
import { hostileJson, sameMeaning, spoilt } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { Broken, must, refusal, sentence } from './refusal.ts';

const ITEMS = RELEASES.flatMap(({ written }) => written.items);
const ATTRIBUTES = ITEMS.map((item) => toAttributes(item));

/** An item of the table, an item of its stream, or the content of a row of the embedded database. */
type Stored =
  | { readonly in: 'table' | 'stream'; readonly item: Record<string, AttributeValue> }
  | { readonly in: 'database'; readonly place: number; readonly text: string };

/** Columns of the embedded database that hold JSON, or values that SQLite stores unchanged. */
const COLUMNS = [
  ...[...Object.values(KINDS), ...Object.values(KINDS)].map((kind) => ['objects', 'json', kind] as const),
  ...(['summary', 'name', 'version'] as const).map((column) => ['objects', column, KINDS.node] as const),
  ...(['ended', 'noted', 'audit'] as const).map((table) => [table, 'json'] as const),
  ...(['uid', 'at'] as const).map((column) => ['gone', column] as const),
] as const;

/** Attributes that DynamoDB may hold, although Taintward writes none like these. */
const ODD: readonly AttributeValue[] = [
  { N: '1E+125' },
  { N: '-0' },
  { N: '9007199254740993' },
  { N: '123456789012345678901234567890' },
  { N: '0.1' },
  { S: '' },
  { S: '\ud800' },
  { BOOL: true },
  { NULL: true },
  { SS: ['a', 'b'] },
  { NS: ['1', '2'] },
  { B: 'AAAA' },
  { BS: ['AAAA'] },
  { L: [] },
  { M: {} },
  { M: Object.fromEntries([['__proto__', { N: '1' }]]) },
];

const KEY_NAMES = ['pk', 'sk', 'clusterKey', 'clusterSort'];

const spoiltItem: fc.Arbitrary<Record<string, AttributeValue>> = fc
  .record({
    original: fc.constantFrom(...ITEMS),
    keepsKeys: fc.boolean(),
    odd: fc.option(fc.record({ place: fc.nat(), value: fc.constantFrom(...ODD) })),
  })
  .chain(({ original, keepsKeys, odd }) =>
    spoilt([original]).map((json) => {
      const given = JSON.parse(JSON.stringify(json) ?? 'null') as unknown;
      const item = typeof given === 'object' && given !== null && !Array.isArray(given) ? given : {};
      const keys = Object.fromEntries(
        Object.entries(original).filter(
          ([name]) => name === 'pk' || name === 'sk' || (keepsKeys && KEY_NAMES.includes(name)),
        ),
      );
      const attributes = toAttributes(finite({ ...item, ...keys }) as object) as Record<
        string,
        AttributeValue
      >;
      const names = Object.keys(attributes).filter((name) => !KEY_NAMES.includes(name));
      if (!odd) return attributes;
      const name = names[odd.place % names.length];
      return name === undefined ? attributes : { ...attributes, [name]: odd.value };
    }),
  );

/** Replaces numbers beyond 1e125, which DynamoDB can't hold, and omits keys of an index that are not texts. */
function finite(json: unknown): unknown {
  if (typeof json === 'number') return Number.isSafeInteger(json) || Math.abs(json) < 1e15 ? json : 0;
  if (Array.isArray(json)) return json.map(finite);
  if (typeof json !== 'object' || json === null) return json;
  return Object.fromEntries(
    Object.entries(json)
      .filter(([name, value]) => !KEY_NAMES.includes(name) || (typeof value === 'string' && value !== ''))
      .map(([name, value]) => [name, finite(value)]),
  );
}

/**
 * Stored items and rows after a change by another program. Each is read with the meaning of its content, or the reader rejects
 * and names it. The other items are read as before.
 */
export const items: Kind<Stored> = {
  name: 'items',
  open: async () => {
    const sqlite = await filledDatabases();
    const texts = await textsOf(sqlite);
    const spare = new SqliteStore({ path: ':memory:' });
    return {
      inputs: fc.oneof(
        { weight: 5, arbitrary: spoiltItem.map((item) => ({ in: 'table' as const, item })) },
        { weight: 2, arbitrary: spoiltItem.map((item) => ({ in: 'stream' as const, item })) },
        {
          weight: 4,
          arbitrary: fc
            .nat(COLUMNS.length - 1)
            .chain((place) =>
              hostileJson([texts[place]]).map((text) => ({ in: 'database' as const, place, text })),
            ),
        },
      ),
      feed: async (stored) => {
        switch (stored.in) {
          case 'table':
            return feedTable(stored.item, spare);
          case 'stream':
            return feedStream(stored.item, spare);
          case 'database':
            return feedDatabase(sqlite, stored);
          default:
            return stored satisfies never;
        }
      },
      close: () => {
        sqlite.store.close();
        sqlite.rules.close();
        spare.close();
      },
    };
  },
};

const collected = <T>(all: AsyncIterable<T>) => Array.fromAsync(all);
const ALWAYS = { from: 0, to: Number.MAX_SAFE_INTEGER };

/** Every read of the stored data, each by itself. */
const readings = (opened: { store: Store; history: History; leases: Leases; rulesStore: RulesStore }) => [
  () => opened.store.load(REF, NOW),
  () => opened.store.load(REF, NOW, ['11111111-0000-4000-8000-000000000000' as never]),
  () => collected(opened.store.taintedNodes(CLUSTER)),
  () => collected(opened.history.entries({ cluster: CLUSTER, ...ALWAYS })),
  () => opened.leases.read(CLUSTER),
  () => opened.rulesStore.read(CLUSTER),
  () => opened.rulesStore.readAll([CLUSTER]),
  () => opened.rulesStore.fleetStop(),
  () => opened.rulesStore.audit({ cluster: CLUSTER, ...ALWAYS }),
];

async function outcomeOf(reads: readonly (() => unknown)[]): Promise<Outcome> {
  let outcome: Outcome = 'accepted';
  for (const read of reads) {
    try {
      await read();
    } catch (error) {
      if (error instanceof Broken) throw error;
      outcome = refusal(error, [StoreError]);
    }
  }
  return outcome;
}

async function feedTable(item: Record<string, AttributeValue>, copy: SqliteStore): Promise<Outcome> {
  const fake = new FakeDynamoDb({ now: () => NOW });
  const table = new DynamoDbTable({
    client: fakeClient(async (command) => fake.perform(command)),
    tableName: 't',
  });
  for (const each of ATTRIBUTES) fake.set(each, each);
  fake.set(item as never, item as never);
  const store = new DynamoDbStore(table);
  const [leases, rulesStore] = [new DynamoDbLeases(table), new DynamoDbRulesStore(table)];
  const registry = new DynamoDbClusterRegistry(table);
  const permits = dynamoDbPermits(table);
  return outcomeOf([
    ...readings({ store, history: new DynamoDbHistory(table), leases, rulesStore }),
    () => leases.stuck(CLUSTER),
    () => registry.list(),
    () => registry.get(CLUSTER),
    () =>
      permits.take(
        CLUSTER,
        [{ uid: podUid('u1'), drains: true, inTurn: false }],
        { evictionRate: 1, releaseRate: 1 },
        NOW,
      ),
    async () => {
      const read = await store.load(REF, NOW);
      await emptied(copy).commit(
        REF,
        0,
        {
          ...(read.node ? { node: read.node } : {}),
          schedule: [...read.scheduled.values()],
          end: [],
          live: true,
        },
        NOW,
      );
      const again = await copy.load(REF, NOW);
      must(
        sameMeaning([again.node, again.scheduled], [read.node, read.scheduled]),
        'is another partition when it is written again',
      );
    },
  ]);
}

let sequence = 0;

async function feedStream(item: Record<string, AttributeValue>, store: SqliteStore): Promise<Outcome> {
  const [dueQueue, deadLetters] = [new ScriptedQueue(), new ScriptedQueue()];
  emptied(store);
  sequence += 1;
  const record: DynamoDBRecord = {
    eventName: 'REMOVE',
    userIdentity: { type: 'Service', principalId: 'dynamodb.amazonaws.com' },
    dynamodb: { SequenceNumber: String(sequence), OldImage: item },
  };
  const log = recordingLog();
  const handler = createExpiryHandler({ store, dueQueue, deadLetters, clock: { now: () => NOW }, log });
  const response = await handler({ Records: [record] }, {} as Context);
  const causes = log.lines.map(({ fields }) => String(fields['error'] ?? '')).join(' | ');
  must(response?.batchItemFailures.length === 0, `keeps its stream from going on: ${causes}`);
  const [letter] = deadLetters.sent;
  if (!letter) return 'accepted';
  sentence(letter.attributes?.['reason'] ?? '');
  must(messageFault(letter) === undefined, `SQS takes no such letter: ${messageFault(letter)}`);
  return 'refused';
}

/** The embedded databases. */
interface Databases {
  readonly store: SqliteStore;
  readonly rules: DatabaseSync;
}

/** Returns the embedded databases with a row of each kind, as their own classes write them. */
async function filledDatabases(): Promise<Databases> {
  const fake = new FakeDynamoDb({ now: () => NOW });
  const table = new DynamoDbTable({
    client: fakeClient(async (command) => fake.perform(command)),
    tableName: 't',
  });
  await writeAll(table);
  const { node, scheduled, ended, noted, gone, storedRules, stuck, audit } = await readAll(table);
  const store = new SqliteStore({ path: ':memory:' });
  const { database } = store;
  await store.commit(REF, 0, { node, schedule: scheduled, end: ended, noted, live: true }, NOW);
  await new SqliteHistory({ database }).noteGone(CLUSTER, gone);
  const leases = sqliteLeases(database);
  const lease = await leases.take(CLUSTER, undefined, 'relay-1', NOW);
  if (!lease) throw new Error('there is a lease already');
  await leases.bid(lease, { holder: 'relay-2', load: 3 });
  await leases.reportStuck(lease, stuck);
  const rules = openRulesDatabase(':memory:');
  const rulesStore = new SqliteRulesStore({ database: rules });
  const [entry] = audit;
  if (!entry) throw new Error('there is no entry of the audit');
  await rulesStore.changeOrders(CLUSTER, { revision: 0, stops: [], holds: [] }, storedRules.orders, entry);
  await rulesStore.changeGuard(CLUSTER, { revision: 0, trips: [] }, storedRules.guard.trips);
  await rulesStore.changeFleetStop(undefined, storedRules.fleetStop, entry);
  await sqliteRequests(database).send([{ body: '{}' }]);
  return { store, rules };
}

/** Each write has another version, as if another process wrote it. */
let versions = 1;

const databaseOf = ({ store, rules }: Databases, place: number): DatabaseSync => {
  const [table, , kind] = COLUMNS[place] ?? [];
  return table === 'audit' || kind === KINDS.rules ? rules : store.database;
};

function rowOf(place: number) {
  const [table, column, kind] = COLUMNS[place] ?? ['objects', 'json'];
  const those = kind ? `kind = '${kind}'` : 'true';
  return { table, column, select: `SELECT * FROM ${table} WHERE ${those} ORDER BY 1 LIMIT 1`, those };
}

function writeRow(place: number): string {
  const { table, column, those } = rowOf(place);
  const version = table === 'objects' && column !== 'version' ? `, version = ${++versions}` : '';
  return `UPDATE ${table} SET ${column} = :value${version} WHERE ${those}`;
}

async function textsOf(databases: Databases): Promise<readonly unknown[]> {
  return COLUMNS.map((_, place) => {
    const { select, column } = rowOf(place);
    const value = databaseOf(databases, place).prepare(select).get()?.[column];
    try {
      return typeof value === 'string' ? (JSON.parse(value) as unknown) : value;
    } catch {
      return value;
    }
  });
}

async function feedDatabase(
  databases: Databases,
  { place, text }: Extract<Stored, { in: 'database' }>,
): Promise<Outcome> {
  const { store, rules } = databases;
  const { database } = store;
  const [leases, rulesStore] = [sqliteLeases(database), new SqliteRulesStore({ database: rules })];
  const { table } = rowOf(place);
  const changed = databaseOf(databases, place);
  const before = changed.prepare(`SELECT * FROM ${table}`).all();
  try {
    changed.prepare(writeRow(place)).run({ value: text });
  } catch {
    // The database itself rejects invalid JSON, numbers and keys, so they are never stored.
    return 'refused';
  }
  try {
    return await outcomeOf([
      ...readings({ store, history: new SqliteHistory({ database }), leases, rulesStore }),
      () => leases.stuck(CLUSTER),
      () => leases.clusters(),
      () => sqliteRequests(database).take(),
      () => collected(store.upcoming()),
      () => store.countdowns(10),
      () => store.states(),
    ]);
  } finally {
    restore(changed, table, before);
  }
}

function restore(database: DatabaseSync, table: string, rows: readonly Record<string, unknown>[]): void {
  database.exec(`DELETE FROM ${table}`);
  for (const row of rows) {
    const names = Object.keys(row);
    database
      .prepare(`INSERT INTO ${table} (${names.join()}) VALUES (${names.map((name) => `:${name}`).join()})`)
      .run(Object.fromEntries(names.map((name) => [name, row[name] as string])));
  }
}
