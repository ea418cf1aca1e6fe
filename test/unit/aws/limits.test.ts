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
import { WORK_BACKOFF } from '#shared/engine/timers.ts';
import { DELTA_MAX_AGE_MS, RESYNC_MS } from '#shared/eviction/facts.ts';
import { CALL_TIMEOUT_MS } from '#shared/kubernetes/http/transport.ts';
import { ENDED_WINDOW_MS } from '#shared/state/store.ts';
import { MIN_HISTORY_DAYS, SCHEDULED_GRACE_SECONDS } from '#shared/state/stored.ts';
import { backoffMs } from '#shared/time/backoff.ts';

test('queues have the names that alarms and operators use, with the .fifo suffix that SQS requires', () => {
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

/** Jitter shortens each wait by up to half; hundreds of waits differ little from their average. */
const AVERAGE_JITTER = 0.5;

describe('limits', () => {
  test('allow any single message in a batch', () => assert.ok(MAX_MESSAGE_BYTES <= MAX_BATCH_BYTES));

  test('keep a received message hidden for six runs of its function, as AWS recommends', () => {
    for (const spec of Object.values(QUEUES)) {
      assert.ok(visibilitySeconds(spec) >= 6 * spec.functionTimeoutSeconds);
      assert.ok(visibilitySeconds(spec) <= MAX_VISIBILITY_SECONDS);
    }
  });

  test('allow every delta of a batch its full time', () => {
    for (const { functionTimeoutSeconds } of [QUEUES.nodeDeltas, QUEUES.podDeltas]) {
      assert.ok(DELTA_BATCH_SIZE * DELTA_RECORD_DEADLINE_MS < functionTimeoutSeconds * 1000);
    }
  });

  test('let evict outlast an API server that never answers', () => {
    assert.ok(QUEUES.evictionsDue.functionTimeoutSeconds * 1000 > CALL_TIMEOUT_MS);
  });

  test('dead-letter a message before its retention ends, for any kind of failure', () => {
    for (const spec of Object.values(QUEUES)) {
      // The handler crashes, or sets the visibility timeout itself.
      const waitSeconds = Math.max(visibilitySeconds(spec), WORK_BACKOFF.longestMs / 1000);
      const lastsSeconds = MAX_DELAY_SECONDS + spec.maxReceiveCount * waitSeconds;
      assert.ok(lastsSeconds < RETENTION_SECONDS, `${spec.name}: ${lastsSeconds} s`);
    }
  });

  test('let a message of evict outlive two days without the table', () => {
    const { maxReceiveCount } = QUEUES.evictionsDue;
    const waits = Array.from({ length: maxReceiveCount }, (_, index) =>
      backoffMs(index + 1, WORK_BACKOFF, AVERAGE_JITTER),
    );
    const lastsMs = waits.reduce((sum, wait) => sum + wait, 0);
    assert.ok(lastsMs > 2 * 86_400_000, `${lastsMs} ms: raise its maxReceiveCount, or WORK_BACKOFF`);
  });

  test('read a tombstone for a minute longer than any delta counts, as clocks differ, and keep it for longer than it is read', () => {
    assert.ok(ENDED_WINDOW_MS >= DELTA_MAX_AGE_MS + 60_000);
    assert.ok(MIN_HISTORY_DAYS * 24 * 3_600_000 > ENDED_WINDOW_MS);
  });

  test('remove a record by its time to live long after several resyncs', () => {
    assert.ok(SCHEDULED_GRACE_SECONDS * 1000 > 10 * RESYNC_MS);
  });

  test('keep a dead letter for longer than its queue keeps messages', () => {
    assert.ok(DEAD_LETTER_RETENTION_SECONDS > RETENTION_SECONDS);
  });

  test('give queues distinct names, with .fifo for FIFO queues only', () => {
    const specs = Object.values(QUEUES);
    const names = specs.flatMap(({ name, deadLetterName }) => [name, deadLetterName]);
    assert.equal(new Set(names).size, 6);
    for (const { fifo, name, deadLetterName } of specs) {
      assert.deepEqual([name.endsWith('.fifo'), deadLetterName.endsWith('-dlq.fifo')], [fifo, fifo]);
    }
  });
});
