import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { type CanSend, leaseSenders, senderOf } from '#shared/aws/lease-senders.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { onceASecond } from '#shared/state/lease.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeDynamoDb, fakeClient } from '#test/world/fake-dynamodb.ts';

const PROD = clusterName('prod');
const [EDGE, CORE] = ['AROAEDGE', 'AROACORE'];

let clock: DrivenClock;
let table: DynamoDbTable;
let reads: number;
beforeEach(() => {
  clock = new DrivenClock(0);
  reads = 0;
  const fake = new FakeDynamoDb(clock);
  table = new DynamoDbTable({
    client: fakeClient(async (command) => fake.perform(command)),
    tableName: 'table',
  });
});

/** Acquires the lease of a cluster from any holder, as a relay with this sender. */
async function take(sender: string | undefined, cluster: ClusterName = PROD) {
  const leases = new DynamoDbLeases(table, { sender });
  return leases.take(cluster, await leases.read(cluster), `holder of ${sender}`, clock.now());
}

function sendersOf(): CanSend {
  const leases = new DynamoDbLeases(table);
  const read = (cluster: ClusterName) => {
    reads += 1;
    return leases.read(cluster);
  };
  return leaseSenders({ read: read }, onceASecond(read, clock));
}

describe('deltas of a cluster are accepted', () => {
  test('from the holder of its lease and earlier holders, and from no others', async () => {
    await take(CORE, clusterName('other'));
    await take(EDGE);
    const canSend = sendersOf();
    assert.equal(await canSend(PROD, `${EDGE}:i-1`), true);
    assert.equal(await canSend(PROD, `${CORE}:i-2`), false);
    await take('AROANEXT');
    assert.equal(await canSend(PROD, 'AROANEXT:i-3'), true, 'as soon as it has the lease');
    assert.equal(await canSend(PROD, `${EDGE}:i-1`), true, 'its last words may be under way');
  });

  test('from nobody before the first acquisition of its lease, and from the holder immediately after', async () => {
    const canSend = sendersOf();
    assert.equal(await canSend(PROD, `${EDGE}:i-1`), false);
    await take(EDGE);
    assert.equal(await canSend(PROD, `${EDGE}:i-1`), true);
  });

  test('from any sender while the holder of its lease does not know its own sender', async () => {
    const canSend = sendersOf();
    await take(EDGE);
    assert.equal(await canSend(PROD, `${CORE}:i-2`), false);
    await clock.advanceTo(2_000);
    await take(undefined);
    assert.equal(await canSend(PROD, `${CORE}:i-2`), true);
  });

  test('from any sender while a relay of an earlier release holds the lease, which keeps the last senders', async () => {
    const before = await take(EDGE);
    const [key, epoch] = [{ pk: 'LEASE#prod', sk: 'LEASE' }, (before?.epoch ?? 0) + 1];
    await table.update({ key, set: { holder: 'of the release before', epoch, renewals: 0 } });
    assert.equal(await sendersOf()(PROD, `${CORE}:i-2`), true);
  });

  test('from at most ten successive holders', async () => {
    for (let relay = 0; relay < 12; relay++) await take(`AROA${relay}`);
    const { senders } = (await new DynamoDbLeases(table).read(PROD)) ?? {};
    assert.deepEqual(
      senders,
      Array.from({ length: 10 }, (_, index) => `AROA${11 - index}`),
    );
  });
});

test('reads the senders once a second, and again before it rejects a sender', async () => {
  await take(EDGE);
  const canSend = sendersOf();
  await canSend(PROD, EDGE);
  await canSend(PROD, EDGE);
  assert.equal(reads, 1);
  await canSend(PROD, CORE);
  assert.equal(reads, 2);
});

test('a sender is the role of a session, and the full ID of users, accounts and federated users', () => {
  const names = ['AROAX:i-1', 'AROAX', 'AIDAX', '123456789012', '123456789012:anna'];
  assert.deepEqual(names.map(senderOf), ['AROAX', 'AROAX', 'AIDAX', '123456789012', '123456789012:anna']);
});
