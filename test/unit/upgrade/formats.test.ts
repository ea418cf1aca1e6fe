import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeDelta, parseDelta } from '#shared/aws/delta-message.ts';
import {
  type DueMessage,
  encodeCanceled,
  encodeCountdowns,
  encodeDue,
  encodeRetry,
  parseDueMessage,
} from '#shared/aws/due-message.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { fromAttributes, type Item, toAttributes } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { FILES_MEANING, readFiles, writtenFiles } from './kept-files.ts';
import { OBJECTS_MEANING, readObjects, writtenObjects } from './kept-objects.ts';
import { DELTAS, DUE, NOW } from './messages.ts';
import { POLICIES_MEANING, readPolicies, writtenPolicies } from './policies.ts';
import { FOLDER, RELEASES, type Written } from './releases.ts';
import { FAULTS, KEPT_MEANING, MEANING, readAll, writeAll } from './stored.ts';

/*
 * The output of each published release, one file per release, and that of the current code, which
 * `--test-update-snapshots` updates. `npm run release` copies that file for the release. The copy is never changed,
 * because later releases must read the output of each release.
 */
function emptyTable() {
  const fake = new FakeDynamoDb({ now: () => NOW });
  return {
    fake,
    table: new DynamoDbTable({ client: fakeClient(async (c) => fake.perform(c)), tableName: 't' }),
  };
}

/** Keys end with a random suffix where several items share a time. */
const RANDOM = /(?<=^(?:ENDED|CHANGED|GONE|AUDIT)#\d{16}#|^\d{16}#(?:.*#)?)[\w-]{8}$/;
const withoutChance = (item: Item): Item => ({
  ...item,
  ...Object.fromEntries(
    ['sk', 'clusterSort'].flatMap((name) =>
      typeof item[name] === 'string' ? [[name, item[name].replace(RANDOM, 'RANDOM__')]] : [],
    ),
  ),
});

const encodeDueMessage = (message: DueMessage): string => {
  switch (message.kind) {
    case 'due':
      return encodeDue(message);
    case 'canceled':
      return encodeCanceled(message).join();
    case 'countdowns':
      return encodeCountdowns(message).join();
    case 'retry':
      return encodeRetry(message);
    default:
      return message satisfies never;
  }
};

const encoded = <Message>(messages: Readonly<Record<string, Message>>, encode: (m: Message) => string) =>
  Object.fromEntries(Object.entries(messages).map(([kind, each]) => [kind, JSON.parse(encode(each))]));

test('the output of this release matches its record', async (t) => {
  const { fake, table } = emptyTable();
  await writeAll(table);
  const items = [...fake.items()]
    .map((item) => withoutChance(fromAttributes(item)))
    .sort((a, b) => (`${a['pk']}\n${a['sk']}` < `${b['pk']}\n${b['sk']}` ? -1 : 1));
  const written: Written = {
    deltas: encoded<Delta>(DELTAS, encodeDelta),
    due: encoded<DueMessage>(DUE, encodeDueMessage),
    items,
    objects: await writtenObjects(),
    files: await writtenFiles(),
    policies: await writtenPolicies(),
  };
  t.assert.fileSnapshot(written, join(FOLDER, 'unreleased.json'), {
    serializers: [(value) => JSON.stringify(value, null, 2)],
  });
});

for (const { release, written } of RELEASES) {
  test(`reads the messages of release ${release}`, () => {
    for (const [kind, body] of Object.entries(written.deltas)) {
      const read = parseDelta(JSON.stringify(body));
      assert.deepEqual(read, DELTAS[kind as keyof typeof DELTAS]);
    }
    for (const [kind, body] of Object.entries(written.due)) {
      const read = parseDueMessage(JSON.stringify(body));
      assert.deepEqual({ ...read, v: 1 }, DUE[kind as keyof typeof DUE]);
    }
  });

  test(`reads the table of release ${release}`, async () => {
    const { fake, table } = emptyTable();
    for (const item of written.items.map(toAttributes)) fake.set(item, item);
    assert.deepEqual(await readAll(table), { ...MEANING, faults: FAULTS });
  });

  test(`reads the in-cluster state of release ${release}`, async () => {
    assert.deepEqual(await readObjects(written.objects), OBJECTS_MEANING);
  });

  test(`reads the state directory of release ${release}`, async () => {
    assert.deepEqual(await readFiles(written.files), {
      ...KEPT_MEANING,
      ...FILES_MEANING,
    });
  });

  test(`reads the policies of release ${release} with their original meaning`, () => {
    assert.deepEqual(readPolicies(written.policies), POLICIES_MEANING);
  });
}

/** All kinds of items, by the prefixes of their keys. `prod` is the cluster whose nodes have partitions. */
const ITEMS = [
  ...['CLUSTER AUDIT', 'CLUSTER POLICY', 'CLUSTER REGISTRATION'],
  ...['FLEET AUDIT', 'FLEET STOP'],
  ...['LEASE AUDIT', 'LEASE GONE', 'LEASE GUARD', 'LEASE LEASE', 'LEASE STUCK'],
  ...['RATE PERMITS', 'RATE PROOF', 'RATE RATE'],
  ...['prod CHANGED', 'prod ENDED', 'prod NODE', 'prod PROBE', 'prod SCHEDULED'],
];

test('the record of a release contains a message and an item of each kind', () => {
  const kinds = ({ items }: Written) => [
    ...new Set(items.map(({ pk, sk }) => [pk, sk].map((key) => String(key).split('#')[0]).join(' '))),
  ];
  for (const { written } of RELEASES) {
    assert.deepEqual(Object.keys(written.deltas), Object.keys(DELTAS));
    assert.deepEqual(Object.keys(written.due), Object.keys(DUE));
    assert.deepEqual(kinds(written).toSorted(), ITEMS);
  }
});
