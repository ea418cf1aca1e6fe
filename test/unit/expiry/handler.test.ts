import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { Context, DynamoDBRecord } from 'aws-lambda';
import { createHandler } from '#functions/expiry/handler.ts';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import { messageFault } from '#shared/aws/sqs-message.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import { type EvictionRecord, ending } from '#shared/eviction/records.ts';
import { endedItem } from '#shared/state/dynamodb/history-items.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { type Store, StoreError } from '#shared/state/store.ts';
import { aNode, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { type RecordingLog, recordingLog } from '#test/contracts/recording-log.ts';
import { recordingSender } from '../aws/recording-sender.ts';
import { anExpiry, imageOf } from './stream-records.ts';

const ref = aRef();
/** Long after the deadline, when the time to live has expired. */
const LATER = NOW + 48 * 3_600_000;

let store: SqliteStore;
let dueQueue: ReturnType<typeof recordingSender>;
let deadLetters: ReturnType<typeof recordingSender>;
let log: RecordingLog;
beforeEach(async () => {
  store = new SqliteStore({ path: ':memory:' });
  dueQueue = recordingSender();
  deadLetters = recordingSender();
  log = recordingLog();
  await store.commit(ref, 0, { node: aNode(), schedule: [], end: [], live: true }, NOW);
});

async function handle(records: readonly DynamoDBRecord[], over: Partial<Store> = {}): Promise<string[]> {
  const handler = createHandler({
    store: over.load ? { ...bound(store), ...over } : store,
    dueQueue,
    deadLetters,
    clock: { now: () => LATER },
    log,
  });
  const response = await handler({ Records: [...records] }, {} as Context);
  return response?.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier) ?? [];
}

/** Returns a store's methods as values, so that tests can replace some. */
const bound = (inner: SqliteStore): Store => ({
  load: inner.load.bind(inner),
  commit: inner.commit.bind(inner),
  end: inner.end.bind(inner),
  taintedNodes: inner.taintedNodes.bind(inner),
});

const partition = () => store.load(ref, LATER);
const stored = async ({ uid }: EvictionRecord) => (await partition()).scheduled.get(uid);
const sent = () => dueQueue.calls.flat().map(({ body }) => parseDueMessage(body));
const events = () => log.lines.map(({ event }) => event);
const sequenceOf = (record: DynamoDBRecord) => record.dynamodb?.SequenceNumber;

describe('an eviction whose timer was missed', () => {
  test('is restored, and its node is sent as due after the restore is certain', async () => {
    const eviction = aRecord();
    assert.deepEqual(await handle([anExpiry(ref, eviction)]), []);
    assert.deepEqual(await stored(eviction), eviction);
    assert.deepEqual(sent(), [{ v: 1, kind: 'due', ...ref, at: LATER }]);
    assert.equal(dueQueue.calls[0]?.[0]?.delaySeconds, 10);
    assert.deepEqual(events(), ['eviction.recovered']);
  });

  test('is restored and sent once even if the stream delivers its record twice', async () => {
    const record = anExpiry(ref, aRecord());
    await handle([record]);
    const { revision } = await partition();
    await handle([record]);
    assert.equal((await partition()).revision, revision);
    assert.equal(sent().length, 1);
  });

  test('keeps its recorded failure', async () => {
    const eviction = aRecord({ failure: { since: NOW, error: 'no' } });
    await handle([anExpiry(ref, eviction)]);
    assert.deepEqual(await stored(eviction), eviction);
  });

  test("is retried when its message couldn't be sent", async () => {
    const record = anExpiry(ref, aRecord());
    dueQueue = recordingSender((_, call) =>
      call === 1 ? [{ index: 0, reason: 'throttled', permanent: false }] : [],
    );
    assert.deepEqual(await handle([record]), [sequenceOf(record)]);
    assert.deepEqual(await handle([record]), []);
    assert.equal(dueQueue.calls.length, 2);
  });

  test('sends one message per node, however many pods were missed', async () => {
    const evictions = [5_000, 1_000, 3_000].map((ms) => aRecord({ dueAt: NOW + ms }));
    await handle(evictions.map((eviction) => anExpiry(ref, eviction)));
    assert.deepEqual(
      sent().map((message) => 'at' in message && message.at),
      [LATER],
    );
    assert.equal((await partition()).scheduled.size, 3);
  });
});

describe('an expired eviction that was decided again', () => {
  test('keeps the new decision, and its node is sent as due', async () => {
    const expired = aRecord();
    const rescheduled = { ...expired, dueAt: LATER + 60_000, version: { epoch: 2, sequence: 1 } };
    const { revision } = await partition();
    await store.commit(ref, revision, { schedule: [rescheduled], end: [], live: true }, LATER);
    await handle([anExpiry(ref, expired)]);
    assert.deepEqual(await stored(expired), rescheduled);
  });

  test('is not due again if it ended in the meantime', async () => {
    for (const outcome of ['evicted', 'already-gone', 'canceled'] as const) {
      const expired = aRecord();
      await store.end(ref, [ending(expired, { outcome })], LATER);
      await handle([anExpiry(ref, expired)]);
      assert.equal(await stored(expired), undefined);
    }
    assert.deepEqual(sent(), []);
  });
});

test('a failed eviction is not restored when its record expires', async () => {
  await handle([anExpiry(ref, aRecord({ gaveUpAt: NOW }))]);
  assert.equal((await partition()).scheduled.size, 0);
  assert.deepEqual(sent(), []);
});

describe('the batch', () => {
  test('continues with other nodes when one fails, and returns the records of that node', async () => {
    const other = { ...ref, node: nodeName('node-2') };
    const failing = anExpiry(ref, aRecord());
    const working = anExpiry(other, aRecord());
    const load: Store['load'] = (node, ...args) =>
      node.node === ref.node ? Promise.reject(new StoreError('out of reach')) : store.load(node, ...args);
    assert.deepEqual(await handle([failing, working], { load }), [sequenceOf(failing)]);
    assert.deepEqual(
      sent().map(({ node }) => node),
      [other.node],
    );
  });

  test('returns all records of a failing node', async () => {
    const records = [anExpiry(ref, aRecord()), anExpiry(ref, aRecord())];
    const load: Store['load'] = () => Promise.reject(new StoreError('out of reach'));
    assert.deepEqual(await handle(records, { load }), records.map(sequenceOf));
    assert.deepEqual(events(), ['eviction.recovery-failed']);
  });

  test('sends other nodes as due only once when it is retried for one failing node', async () => {
    const nodes = Array.from({ length: 20 }, (_, index) => ({ ...ref, node: nodeName(`node-${index}`) }));
    const records = nodes.map((node) => anExpiry(node, aRecord()));
    const load: Store['load'] = (nodeRef, ...args) =>
      nodeRef.node === nodeName('node-0')
        ? Promise.reject(new StoreError('unreadable'))
        : store.load(nodeRef, ...args);
    for (let tries = 0; tries < 50; tries++) {
      assert.deepEqual(await handle(records, { load }), [sequenceOf(records[0] ?? {})]);
    }
    assert.equal(sent().length, 19);
  });

  test('moves unreadable records to the dead-letter queue with the reason and continues', async () => {
    const good = aRecord();
    const bad = anExpiry(ref, aRecord());
    const image = { ...bad.dynamodb?.OldImage, dueAt: { S: 'tomorrow' } };
    const unreadable = { ...bad, dynamodb: { ...bad.dynamodb, OldImage: image } };
    assert.deepEqual(await handle([unreadable, anExpiry(ref, good)]), []);
    const [[letter] = []] = deadLetters.calls;
    assert.deepEqual(JSON.parse(letter?.body ?? ''), unreadable);
    assert.match(
      letter?.attributes?.['reason'] ?? '',
      /^The stored item SCHEDULED#\S+ of .* cannot be read \(dueAt/,
    );
    assert.ok(await stored(good));
    assert.deepEqual(events(), ['stream-record.rejected', 'eviction.recovered']);
  });

  test('sends dead letters with a body that SQS accepts, whatever the record contains', async () => {
    const bad = anExpiry(ref, aRecord());
    const image = { ...bad.dynamodb?.OldImage, name: { N: '1' }, namespace: { S: '\uffff' } };
    await handle([{ ...bad, dynamodb: { ...bad.dynamodb, OldImage: image } }]);
    const [letter] = deadLetters.calls.flat();
    assert.ok(letter);
    assert.equal(messageFault(letter), undefined);
  });

  test("returns records that couldn't be sent to the dead-letter queue", async () => {
    deadLetters = recordingSender(() => [{ index: 0, reason: 'no such queue', permanent: false }]);
    const bad = anExpiry(ref, aRecord());
    const image = { ...bad.dynamodb?.OldImage, name: { S: '' } };
    const unreadable = { ...bad, dynamodb: { ...bad.dynamodb, OldImage: image } };
    assert.deepEqual(await handle([unreadable]), [sequenceOf(bad)]);
  });

  test('ignores all other records of the stream', async () => {
    const removed = anExpiry(ref, aRecord());
    const { userIdentity: _identity, ...byHand } = removed;
    const byReplication = { type: 'Service', principalId: 'replication.dynamodb.amazonaws.com' };
    const ended = endedItem({ ref, at: NOW, pass: 'pass', days: 7 }, [
      ending(aRecord(), { outcome: 'evicted' }),
    ]);
    const others = [
      {},
      byHand,
      { ...removed, userIdentity: byReplication },
      { ...removed, eventName: 'MODIFY' as const },
      { ...removed, dynamodb: { OldImage: imageOf(ended) } },
      { ...removed, dynamodb: { OldImage: { pk: { S: 'c#n' }, sk: { S: 'NODE' } } } },
    ];
    for (const other of others) assert.deepEqual(await handle([other]), []);
    assert.deepEqual([dueQueue.calls, deadLetters.calls], [[], []]);
  });
});
