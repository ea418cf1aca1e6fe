import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DELTA_BATCH_SIZE, DELTA_RECORD_DEADLINE_MS } from '#functions/deltas/handler.ts';
import {
  MAX_BATCH_BYTES,
  MAX_DELAY_SECONDS,
  MAX_MESSAGE_BYTES,
  MAX_VISIBILITY_SECONDS,
} from '#shared/aws/limits.ts';
import {
  DEAD_LETTER_RETENTION_SECONDS,
  EXPIRY_DEAD_LETTER_NAME,
  QUEUES,
  RETENTION_SECONDS,
  visibilitySeconds,
} from '#shared/aws/queue-set.ts';
import { DELTA_MAX_AGE_MS, RESYNC_MS } from '#shared/eviction/facts.ts';
import { MAX_RETRY_MS } from '#shared/eviction/retry.ts';
import { CALL_TIMEOUT_MS } from '#shared/kubernetes/http/transport.ts';
import { ENDED_WINDOW_MS } from '#shared/state/store.ts';
import { MIN_HISTORY_DAYS, SCHEDULED_GRACE_SECONDS } from '#shared/state/stored.ts';

test('queues have the names under which alarms and operators know them, FIFO ones as SQS wants it', () => {
  assert.deepEqual(
    Object.values(QUEUES).map(({ name, deadLetterName, fifo }) => [name, deadLetterName, fifo]),
    [
      ['node-deltas.fifo', 'node-deltas-dlq.fifo', true],
      ['pod-deltas.fifo', 'pod-deltas-dlq.fifo', true],
      ['evictions-due', 'evictions-due-dlq', false],
    ],
  );
  assert.equal(EXPIRY_DEAD_LETTER_NAME, 'expiry-dlq');
});

describe('how limits relate', () => {
  test('a single message always fits a batch', () => assert.ok(MAX_MESSAGE_BYTES <= MAX_BATCH_BYTES));

  test('a received message stays hidden for six runs of its function, as AWS recommends', () => {
    for (const spec of Object.values(QUEUES)) {
      assert.ok(visibilitySeconds(spec) >= 6 * spec.functionTimeoutSeconds);
      assert.ok(visibilitySeconds(spec) <= MAX_VISIBILITY_SECONDS);
    }
  });

  test('a batch of deltas ends in time although every one of them uses up its share', () => {
    for (const { functionTimeoutSeconds } of [QUEUES.nodeDeltas, QUEUES.podDeltas]) {
      assert.ok(DELTA_BATCH_SIZE * DELTA_RECORD_DEADLINE_MS < functionTimeoutSeconds * 1000);
    }
  });

  test('evict outlasts an API server that never answers', () => {
    assert.ok(QUEUES.evictionsDue.functionTimeoutSeconds * 1000 > CALL_TIMEOUT_MS);
  });

  test('a message is dead-lettered before its queue forgets it, however it fails each time', () => {
    for (const spec of Object.values(QUEUES)) {
      // Its handler dies, or says itself when the message is to come again.
      const waitSeconds = Math.max(visibilitySeconds(spec), MAX_RETRY_MS / 1000);
      const lastsSeconds = MAX_DELAY_SECONDS + spec.maxReceiveCount * waitSeconds;
      assert.ok(lastsSeconds < RETENTION_SECONDS, `${spec.name}: ${lastsSeconds} s`);
    }
  });

  test('a message of evict outlives two days without the table', () => {
    const { maxReceiveCount } = QUEUES.evictionsDue;
    assert.ok((maxReceiveCount * MAX_RETRY_MS) / 1000 > 2 * 86_400);
  });

  test('a tombstone is read for longer than any delta counts, and kept for longer than it is read', () => {
    assert.ok(ENDED_WINDOW_MS > DELTA_MAX_AGE_MS);
    assert.ok(MIN_HISTORY_DAYS * 24 * 3_600_000 > ENDED_WINDOW_MS);
  });

  test('a record is removed by its time to live long after resyncs have looked at it', () => {
    assert.ok(SCHEDULED_GRACE_SECONDS * 1000 > 10 * RESYNC_MS);
  });

  test('a dead letter outlives its queue', () => {
    assert.ok(DEAD_LETTER_RETENTION_SECONDS > RETENTION_SECONDS);
  });

  test('queues have names that differ, and FIFO queues names that say so', () => {
    const specs = Object.values(QUEUES);
    const names = specs.flatMap(({ name, deadLetterName }) => [name, deadLetterName]);
    assert.equal(new Set(names).size, 6);
    for (const { fifo, name, deadLetterName } of specs) {
      assert.deepEqual([name.endsWith('.fifo'), deadLetterName.endsWith('-dlq.fifo')], [fifo, fifo]);
    }
  });
});
