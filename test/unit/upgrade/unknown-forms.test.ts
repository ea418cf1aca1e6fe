import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { parseDelta } from '#shared/aws/delta-message.ts';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { type Item, toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { parseScheduledItem, scheduledItem } from '#shared/state/dynamodb/items.ts';
import { sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { RULES_FILE, STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import { logTo } from '#shared/telemetry/log.ts';
import { aRecord } from '#test/contracts/partition-builders.ts';
import { GATES } from '#test/contracts/store-contract.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { dumped, openFiles, restore } from './kept-files.ts';
import { emptyCluster, fill, OBJECTS_MEANING, readObjects } from './kept-objects.ts';
import { CLUSTER, NOW, REF } from './messages.ts';
import { RELEASES } from './releases.ts';
import { FAULTS, MEANING, readAll } from './stored.ts';

/*
 * What another release wrote in a form that this one does not know: it forbids evictions, and is never read as rules
 * without stops and holds, or as a node without taints and evictions.
 */

const SCHEMA_11 = JSON.parse(readFileSync(join(import.meta.dirname, 'schema-11.json'), 'utf8'));
const { written } = RELEASES.find(({ release }) => release === 'unreleased') ?? assert.fail();

type Fields = Readonly<Record<string, unknown>>;

/** Returns each copy of a value with a field or a policy setting that nobody knows, and the field's place. */
function* withUnknownField(value: unknown, path = ''): Generator<readonly [string, unknown]> {
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries())
      for (const [at, changed] of withUnknownField(element, `${path}/${index}`))
        yield [at, value.with(index, changed)];
  } else if (typeof value === 'object' && value !== null) {
    yield [path, { ...value, freeze: true }];
    for (const [name, inner] of Object.entries(value))
      for (const [at, changed] of withUnknownField(inner, `${path}/${name}`))
        yield [at, { ...value, [name]: changed }];
  } else if (path.endsWith('/policy/text')) yield [path, `${value}freeze: true\n`];
}

const tableOf = (fake: FakeDynamoDb) =>
  new DynamoDbTable({ client: fakeClient(async (command) => fake.perform(command)), tableName: 't' });

/** Returns the recorded state directory, with another text in the objects of a kind. */
function directoryWith(t: TestContext, kind: string, text: string, other: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'unknown-'));
  t.after(() => rmSync(directory, { recursive: true }));
  let changed = 0;
  for (const file of [STORE_FILE, RULES_FILE] as const) {
    restore(join(directory, file), written.files[file]);
    const database = new DatabaseSync(join(directory, file));
    const { changes } = database
      .prepare(
        'UPDATE objects SET json = replace(json, :text, :other) WHERE kind = :kind AND instr(json, :text)',
      )
      .run({ kind, text, other });
    changed += Number(changes);
    database.close();
  }
  assert.ok(changed > 0);
  return directory;
}

const refused = { name: 'StoreError', message: /^The (stored|rules)/ };

test('a state directory of another schema is refused, and not changed', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'unknown-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'store.sqlite');
  restore(path, SCHEMA_11);
  const content = () => {
    const database = new DatabaseSync(path);
    const found = dumped(database);
    database.close();
    return found;
  };
  const before = content();
  const options = { directory, historyDays: 7, clock: { now: () => NOW }, log: logTo(() => undefined) };
  const message =
    /an older release wrote it \(schema 11, this one knows 13\); move it away and set policies, stops and holds again, or/;
  assert.throws(() => sqliteState({ ...options, lost: assert.fail }), { name: 'StoreError', message });
  assert.deepEqual(content(), before);
});

describe('rules in an unknown form are refused', () => {
  test('in a table', async () => {
    const rules = written.items.filter(({ pk, sk }) =>
      ['CLUSTER POLICY', 'FLEET STOP', 'LEASE GUARD'].includes(
        [pk, sk].map((key) => String(key).split('#')[0]).join(' '),
      ),
    );
    assert.equal(rules.length, 3);
    for (const item of rules)
      for (const [path, changed] of withUnknownField(item)) {
        const fake = new FakeDynamoDb({ now: () => NOW });
        for (const attributes of written.items.map((it) =>
          toAttributes(it === item ? (changed as Fields) : it),
        ))
          fake.set(attributes, attributes);
        await assert.rejects(
          new DynamoDbRulesStore(tableOf(fake)).read(CLUSTER),
          { name: 'StoreError' },
          `${item['pk']}${path}`,
        );
      }
  });

  test('in objects', async () => {
    for (const [at, object] of written.objects.evictionrules.entries())
      for (const [path, changed] of withUnknownField((object as { status: Fields }).status)) {
        // Further parts of an object belong to other readers.
        if (!/^\/(orders|guard|fleet)/.test(path)) continue;
        const evictionrules = written.objects.evictionrules.with(at, { ...object, status: changed } as never);
        const cluster = emptyCluster();
        await fill(cluster, { ...written.objects, evictionrules });
        await assert.rejects(cluster.rulesStore.read(CLUSTER), { name: 'StoreError' }, path);
      }
  });

  test('in a state directory', async (t) => {
    const { rulesStore, close } = openFiles(
      directoryWith(t, 'EvictionRules', '"holds":[', '"freeze":true,"holds":['),
    );
    await assert.rejects(rulesStore.read(CLUSTER), { name: 'StoreError' });
    close();
  });
});

/** Returns a copy with a field that nobody knows in each object that is not a map. */
const withUnknownFields = (value: unknown, name = ''): unknown => {
  if (Array.isArray(value)) return value.map((each) => withUnknownFields(each));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, each]) => [key, withUnknownFields(each, key)]);
  const isMap = ['labels', 'annotations', 'pods'].includes(name) || 'packed' in value;
  return { ...Object.fromEntries(fields), ...(isMap ? {} : { freeze: true }) };
};

test('fields that a newer release added to nodes, evictions, history, leases, and registrations are ignored', async () => {
  const fake = new FakeDynamoDb({ now: () => NOW });
  for (const item of written.items) {
    const isOfRules = ['POLICY', 'STOP', 'GUARD'].includes(`${item['sk']}`);
    const attributes = toAttributes((isOfRules ? item : withUnknownFields(item)) as Fields);
    fake.set(attributes, attributes);
  }
  assert.deepEqual(await readAll(tableOf(fake)), { ...MEANING, faults: FAULTS });
  const tripProgress = { epoch: 1, list: [{ scope: 'rack' }] };
  const lease = {
    pk: 'LEASE#c',
    sk: 'LEASE',
    holder: 'r',
    epoch: 1,
    renewals: 0,
    renewedAt: NOW,
    tripProgress,
  };
  fake.set(toAttributes(lease), toAttributes(lease));
  const read = await new DynamoDbLeases(tableOf(fake)).read(clusterName('c'));
  assert.deepEqual(read?.tripProgress, [], 'its scope is unknown');
  for (const by of Object.values(GATES)) {
    const item = scheduledItem(REF, aRecord({ held: { by, since: NOW } }), NOW);
    assert.deepEqual(parseScheduledItem(withUnknownFields(item) as Item).held?.by, by);
  }
  const { evictionrules, ...others } = written.objects;
  const objects = { ...(withUnknownFields(others) as typeof others), evictionrules };
  assert.deepEqual(await readObjects(objects), OBJECTS_MEANING);
});

test('a node in an unknown form is refused', async (t) => {
  const node = written.items.find(({ sk }) => sk === 'NODE') ?? assert.fail();
  const fake = new FakeDynamoDb({ now: () => NOW });
  for (const entry of written.items) {
    const item = toAttributes(entry === node ? { ...entry, taints: {} } : entry);
    fake.set(item, item);
  }
  await assert.rejects(new DynamoDbStore(tableOf(fake)).load(REF, NOW), refused);
  const { store, close } = openFiles(directoryWith(t, 'NodeEviction', '"taints":[', '"taints":{},"were":['));
  await assert.rejects(store.load(REF, NOW), refused);
  close();
});

test('a message in an unknown form is refused', () => {
  for (const [messages, parse] of [
    [written.deltas, parseDelta],
    [written.due, parseDueMessage],
  ] as const)
    for (const body of Object.values(messages)) {
      const others = [
        { ...body, v: 99 },
        { ...body, kind: 'unknown' },
      ].map((each) => ['', each] as const);
      for (const [path, changed] of [...others, ...withUnknownField(body)])
        assert.throws(() => parse(JSON.stringify(changed)), { name: 'RejectedMessageError' }, path);
    }
});
