import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeDelta, parseDelta } from '#shared/aws/delta-message.ts';
import {
  type DueMessage,
  encodeCancelled,
  encodeCountdowns,
  encodeDue,
  encodeRetry,
  parseDueMessage,
} from '#shared/aws/due-message.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import {
  DynamoDbTable,
  fromAttributes,
  type Item,
  toAttributes,
} from '#shared/state/dynamodb/dynamodb-table.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';
import { changed, changesOf } from './changes.ts';
import { FILES_MEANING, readFiles, writtenFiles } from './kept-files.ts';
import { readObjects, writtenObjects } from './kept-objects.ts';
import { POLICIES_MEANING, readPolicies, writtenPolicies } from './policies.ts';
import { FIRST, FOLDER, onRecord, RELEASES, type Written } from './releases.ts';
import { APPLIED_FILE, FAULTS, HISTORY_MEANING, KEPT_MEANING, MEANING, readAll, writeAll } from './stored.ts';
import { DELTAS, DUE, NOW } from './told.ts';

/*
 * What each release writes, one file a release: the first whole, of each other what it writes in place of that. What runs here has a file
 * that is renewed by --test-update-snapshots; npm run release copies it for the release, and then it is never touched again, because
 * later ones have to read what this one left. All of them mean the same; of what an older release did not know, its reading is
 * expected without.
 */
function emptyTable() {
  const fake = new FakeDynamoDb({ now: () => NOW });
  return {
    fake,
    table: new DynamoDbTable({ client: fakeClient(async (c) => fake.perform(c)), tableName: 't' }),
  };
}

/** Keys end with something random where several items of a moment are told apart. */
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
    case 'cancelled':
      return encodeCancelled(message).join();
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

test('what this release writes is what is on record for it', async (t) => {
  const { fake, table } = emptyTable();
  await writeAll(table);
  const items = [...fake.items()]
    .map((item) => withoutChance(fromAttributes(item)))
    .sort((a, b) => (`${a['pk']}\n${a['sk']}` < `${b['pk']}\n${b['sk']}` ? -1 : 1));
  const first = onRecord(FIRST);
  const written: Written = {
    deltas: encoded<Delta>(DELTAS, encodeDelta),
    due: encoded<DueMessage>(DUE, encodeDueMessage),
    items,
    objects: await writtenObjects(),
    files: await writtenFiles(),
    policies: await writtenPolicies(),
  };
  const asJson: unknown = JSON.parse(JSON.stringify(written));
  const changes = changesOf(first, asJson);
  assert.deepEqual(changed(first, changes), asJson);
  t.assert.fileSnapshot(changes, join(FOLDER, 'unreleased.json'), {
    serializers: [(value) => JSON.stringify(value, null, 2)],
  });
});

/** The first noted no file of a policy, and reported no faults. */
const appliedBy = (release: string) => (release === FIRST ? undefined : APPLIED_FILE);
const faultsOf = (release: string) => (release === FIRST ? undefined : FAULTS);

for (const { release, written } of RELEASES) {
  test(`what release ${release} has sent is read`, () => {
    for (const [kind, body] of Object.entries(written.deltas)) {
      const read = parseDelta(JSON.stringify(body));
      assert.deepEqual(read, DELTAS[kind as keyof typeof DELTAS]);
    }
    for (const [kind, body] of Object.entries(written.due)) {
      const read = parseDueMessage(JSON.stringify(body));
      assert.deepEqual({ ...read, v: 1 }, DUE[kind as keyof typeof DUE]);
    }
  });

  test(`what release ${release} has stored is read`, async () => {
    const { fake, table } = emptyTable();
    for (const item of written.items.map(toAttributes)) fake.set(item, item);
    assert.deepEqual(await readAll(table), { ...MEANING, faults: faultsOf(release) });
  });

  test(`what release ${release} has kept in its cluster is read`, async () => {
    assert.deepEqual(await readObjects(written.objects), {
      ...{ ...KEPT_MEANING, ...HISTORY_MEANING },
      appliedFile: appliedBy(release),
      faults: faultsOf(release),
    });
  });

  test(`what release ${release} has left in its state directory is read`, async () => {
    assert.deepEqual(await readFiles(written.files), {
      ...{ ...KEPT_MEANING, ...FILES_MEANING },
      appliedFile: appliedBy(release),
    });
  });

  test(`policies of release ${release} mean what they meant`, () => {
    assert.deepEqual(readPolicies(written.policies), POLICIES_MEANING);
  });
}

/** All kinds there are, by what their keys begin with; `prod` is a cluster, whose nodes have partitions. */
const ITEMS = [
  ...['CLUSTER AUDIT', 'CLUSTER POLICY', 'CLUSTER REGISTRATION'],
  ...['FLEET AUDIT', 'FLEET STOP'],
  ...['LEASE AUDIT', 'LEASE GONE', 'LEASE GUARD', 'LEASE LEASE', 'LEASE STUCK'],
  ...['RATE RATE', 'prod CHANGED', 'prod ENDED', 'prod NODE', 'prod SCHEDULED'],
];

test('the record of a release has a message and an item of each kind', () => {
  const kinds = ({ items }: Written) => [
    ...new Set(items.map(({ pk, sk }) => [pk, sk].map((key) => String(key).split('#')[0]).join(' '))),
  ];
  for (const { written } of RELEASES) {
    assert.deepEqual(Object.keys(written.deltas), Object.keys(DELTAS));
    assert.deepEqual(Object.keys(written.due), Object.keys(DUE));
    assert.deepEqual(kinds(written).toSorted(), ITEMS);
  }
});
