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

/** A relay's word about a cluster: it takes the lease, whoever has it. */
async function take(sender: string | undefined, cluster: ClusterName = PROD) {
  const leases = new DynamoDbLeases(table, { sender });
  return leases.take(cluster, await leases.look(cluster), `holder of ${sender}`, clock.now());
}

function asked(): CanSend {
  const leases = new DynamoDbLeases(table);
  const look = (cluster: ClusterName) => {
    reads += 1;
    return leases.look(cluster);
  };
  return leaseSenders({ look }, onceASecond(look, clock));
}

describe('a cluster is spoken for', () => {
  test('by who holds its lease and by those who held it before, and by nobody else', async () => {
    await take(CORE, clusterName('other'));
    await take(EDGE);
    const canSend = asked();
    assert.equal(await canSend(PROD, `${EDGE}:i-1`), true);
    assert.equal(await canSend(PROD, `${CORE}:i-2`), false);
    await take('AROANEXT');
    assert.equal(await canSend(PROD, 'AROANEXT:i-3'), true, 'as soon as it has the lease');
    assert.equal(await canSend(PROD, `${EDGE}:i-1`), true, 'its last words may be under way');
  });

  test('by nobody before its lease was ever taken, and then as soon as it is', async () => {
    const canSend = asked();
    assert.equal(await canSend(PROD, `${EDGE}:i-1`), false);
    await take(EDGE);
    assert.equal(await canSend(PROD, `${EDGE}:i-1`), true);
  });

  test('by everybody while its lease names nobody: one took it who does not know who he is', async () => {
    const canSend = asked();
    await take(EDGE);
    assert.equal(await canSend(PROD, `${CORE}:i-2`), false);
    await clock.advanceTo(2_000);
    await take(undefined);
    assert.equal(await canSend(PROD, `${CORE}:i-2`), true);
  });

  test('by everybody while a relay holds it that knows nothing of senders, and leaves what the last one wrote', async () => {
    const before = await take(EDGE);
    const [key, epoch] = [{ pk: 'LEASE#prod', sk: 'LEASE' }, (before?.epoch ?? 0) + 1];
    await table.update({ key, set: { holder: 'of the release before', epoch, renewals: 0 } });
    assert.equal(await asked()(PROD, `${CORE}:i-2`), true);
  });

  test('by ten at most that held it one after the other', async () => {
    for (let relay = 0; relay < 12; relay++) await take(`AROA${relay}`);
    const { senders } = (await new DynamoDbLeases(table).look(PROD)) ?? {};
    assert.deepEqual(
      senders,
      Array.from({ length: 10 }, (_, index) => `AROA${11 - index}`),
    );
  });
});

test('who may speak is read once a second, and anew before anybody is refused', async () => {
  await take(EDGE);
  const canSend = asked();
  await canSend(PROD, EDGE);
  await canSend(PROD, EDGE);
  assert.equal(reads, 1);
  await canSend(PROD, CORE);
  assert.equal(reads, 2);
});

test('sessions of a role are one sender; users, accounts and federated users are who they are', () => {
  const names = ['AROAX:i-1', 'AROAX', 'AIDAX', '123456789012', '123456789012:anna'];
  assert.deepEqual(names.map(senderOf), ['AROAX', 'AROAX', 'AIDAX', '123456789012', '123456789012:anna']);
});
