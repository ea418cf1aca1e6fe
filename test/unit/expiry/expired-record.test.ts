import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { expiredRecord } from '#functions/expiry/expired-record.ts';
import { ending } from '#shared/eviction/records.ts';
import { endedItem } from '#shared/state/dynamodb/history-items.ts';
import { StoreError } from '#shared/state/store.ts';
import { aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { anExpiry, imageOf } from './stream-records.ts';

const ref = aRef();

describe('a record of the stream', () => {
  test('yields the scheduled eviction that its time to live removed', () => {
    const eviction = aRecord();
    const source = anExpiry(ref, eviction);
    assert.deepEqual(expiredRecord(source), { ref, eviction, source });
  });

  test('is ignored if the expired item had ended', () => {
    const pod = ending(aRecord(), { outcome: 'evicted' });
    const OldImage = imageOf(endedItem({ ref, at: NOW, pass: 'pass', days: 7 }, [pod]));
    assert.equal(expiredRecord(anExpiry(ref, aRecord(), { dynamodb: { OldImage } })), undefined);
  });

  test('is ignored if a user removed the eviction', () => {
    const source = anExpiry(ref, aRecord());
    const { userIdentity: _identity, ...byHand } = source;
    assert.equal(expiredRecord(byHand), undefined);
    const other = { type: 'Service', principalId: 'replication.dynamodb.amazonaws.com' };
    assert.equal(expiredRecord({ ...source, userIdentity: other }), undefined);
  });

  test('is ignored if it removes nothing or another item', () => {
    assert.equal(expiredRecord(anExpiry(ref, aRecord(), { eventName: 'MODIFY' })), undefined);
    const node = { pk: { S: 'c#n' }, sk: { S: 'NODE' } };
    assert.equal(expiredRecord(anExpiry(ref, aRecord(), { dynamodb: { OldImage: node } })), undefined);
    assert.equal(expiredRecord({}), undefined);
  });

  test("is rejected if its eviction can't be read", () => {
    const source = anExpiry(ref, aRecord());
    const image = { ...source.dynamodb?.OldImage, dueAt: { S: 'tomorrow' } };
    assert.throws(() => expiredRecord({ ...source, dynamodb: { OldImage: image } }), StoreError);
  });
});
