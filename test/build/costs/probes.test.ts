import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { CountedTable } from '#test/costs/counted-table.ts';
import { guideHas, rowText } from '#test/costs/guide-rows.ts';
import { PRICES, perMillion, SECONDS_A_MONTH } from '#test/costs/prices.ts';
import { probedTakeover } from '#test/unit/engine/watch/probed-takeover.ts';
import { ref } from '#test/unit/eviction/builders.ts';

/** The duration of sixty probes. */
const MINUTES = 20.5;
const MEMORY_GB = 0.5;
/**
 * The duration of warm invocations. Deltas: concurrent reads and a send. Evict: reads, two sequential requests to an
 * API server in the same region, and a write.
 */
const SECONDS = { deltas: 0.02, evict: 0.05 };
/** Each message is sent, received, and deleted. */
const REQUESTS = 3;

test("the guide states the monthly cost of a takeover's probes", async (context) => {
  const counted = new CountedTable(Date.now);
  const { time, nodeDeltas, dueQueue, cluster } = probedTakeover(context, counted.client);
  const leases = new DynamoDbLeases(new DynamoDbTable({ client: counted.client, tableName: 't' }));
  await leases.take(ref.cluster, undefined, 'r1', Date.now());
  await time.pass(60_000);
  const before = { ...counted.units, deltas: nodeDeltas.sent, due: dueQueue.sent };
  await time.pass(MINUTES * 60_000);
  assert.ok(Date.now() - (cluster.takeover?.heartbeat ?? 0) < 30_000, 'it is renewed');
  const aMonth = SECONDS_A_MONTH / (MINUTES * 60);
  const [deltas, due] = [nodeDeltas.sent - before.deltas, dueQueue.sent - before.due];
  const reads = counted.units.reads - before.reads;
  const writes = counted.units.writes - before.writes;
  const dollars =
    aMonth *
    (perMillion(deltas * REQUESTS, PRICES.sqsFifoPerMillion) +
      perMillion(due * REQUESTS, PRICES.sqsStandardPerMillion) +
      perMillion(deltas + due, PRICES.lambdaRequestsPerMillion) +
      (deltas * SECONDS.deltas + due * SECONDS.evict) * MEMORY_GB * PRICES.lambdaArmPerGbSecond +
      perMillion(reads, PRICES.dynamoDbReadsPerMillion) +
      perMillion(writes, PRICES.dynamoDbWritesPerMillion));
  context.diagnostic(JSON.stringify({ deltas, due, reads, writes, dollars }));
  assert.ok(dollars <= 0.7, `${dollars}`);
  const perDelta = (count: number) => (count / deltas).toFixed(0);
  const row = rowText(
    'probes of a takeover, by cluster',
    `${(deltas / MINUTES).toFixed(1)} a minute: each 6 SQS requests, invocations of ${SECONDS.deltas} and ${SECONDS.evict} s, ${perDelta(reads)} reads, ${perDelta(writes)} write`,
    dollars.toFixed(2),
  );
  assert.ok(guideHas(row), `docs/reference/quotas-and-costs.md is to say:\n${row}`);
});
