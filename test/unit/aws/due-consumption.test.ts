import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Context, SQSRecord } from 'aws-lambda';
import { createHandler } from '#functions/evict/handler.ts';
import { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import { EVICT_BATCH_SIZE, EVICT_RECORD_DEADLINE_MS } from '#shared/aws/due-consumption.ts';
import { encodeCanceled, encodeDue } from '#shared/aws/due-message.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';
import { NotedProofs } from '#shared/engine/evict/proofs.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import { probeRef, probeTimerAt } from '#shared/eviction/probe.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { after, at, nodeDelta, pod, ref, tolerating } from '#test/unit/eviction/builders.ts';
import { driveTimers, inNoTime } from '#test/world/driven-timers.ts';
import { ProofsInMemory } from '#test/world/proofs-in-memory.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { benchAfter, EvictBench, podsNamed, serverError } from '../engine/evict/evict-bench.ts';

const CONTEXT = {} as Context;

const dueAt = (second: number, messageId = '1', receives = 1): SQSRecord =>
  sqsRecord(encodeDue({ ...ref, at: at(second) }), { messageId, receives, groupId: ref.cluster });

/** Returns a message as a schedule sends it, without a group. */
const scheduledFor = (second: number): SQSRecord => sqsRecord(encodeDue({ ...ref, at: at(second) }));

/** Returns the IDs of the messages that the handler returns to the queue. */
async function failed(bench: EvictBench, ...records: readonly SQSRecord[]): Promise<readonly string[]> {
  const response = await createHandler(bench)(sqsEvent(...records), CONTEXT);
  return (response?.batchItemFailures ?? []).map(({ itemIdentifier }) => itemIdentifier);
}

const onePod = () => benchAfter([nodeDelta(1)], [livePod()]);

/** Makes every request of this kind fail. */
function failing({ cluster }: EvictBench, verb: string, error: Error): void {
  cluster.beforeRequest = (requested) => {
    if (requested === verb) throw error;
  };
}

const eventsIn = ({ log }: EvictBench) => log.lines.map(({ event }) => event);

describe('a due message', () => {
  test('evicts the due pods of its node', async () => {
    const bench = await onePod();
    assert.deepEqual(await failed(bench, dueAt(60)), []);
    assert.deepEqual(bench.deleted, ['u1']);
    assert.deepEqual(bench.retries, []);
  });

  test('changes nothing when it is repeated, late, or without a reason', async () => {
    const bench = await onePod();
    assert.deepEqual(await failed(bench, dueAt(60, '1'), dueAt(59, '2'), dueAt(1, '3')), []);
    assert.deepEqual(await failed(bench, dueAt(60)), []);
    const nothing = sqsRecord(encodeDue({ ...ref, node: nodeName('n9'), at: at(0) }));
    assert.deepEqual(await failed(bench, nothing), []);
    assert.deepEqual(bench.deleted, ['u1']);
    assert.equal(bench.cluster.events.length, 1);
  });

  test('returns to the queue until its time when it is early', async () => {
    const bench = await onePod();
    assert.deepEqual(await failed(bench, dueAt(180)), ['1']);
    assert.deepEqual(bench.retries, [{ receiptHandle: '1', seconds: 120 }]);
    assert.deepEqual(bench.deleted, []);
  });

  test('is sent again as a message of its cluster when a schedule delivers it early', async () => {
    const bench = await onePod();
    assert.deepEqual(await failed(bench, scheduledFor(180)), []);
    assert.deepEqual(bench.armed, [at(180)]);
    assert.deepEqual(bench.retries, []);
    assert.deepEqual(bench.deleted, []);
  });

  test('is redelivered when an early message of a schedule cannot be sent again', async () => {
    const bench = await onePod();
    bench.timerOutages = 1;
    assert.deepEqual(await failed(bench, scheduledFor(180)), ['m1']);
  });

  test('arms the next deadline when it is redelivered and finds only later deadlines', async () => {
    const later = pod('u2', { tolerations: [tolerating('a', 560)] });
    const { tolerations } = later;
    const bench = await benchAfter([nodeDelta(1, { pods: [later] })], [livePod('u2', { tolerations })]);
    assert.deepEqual(await failed(bench, dueAt(60, '1', 1)), []);
    assert.deepEqual(bench.armed, []);
    assert.deepEqual(await failed(bench, dueAt(60, '1', 2)), []);
    assert.deepEqual(bench.armed, [at(560)]);
  });
});

describe('a redelivered message that could not arm a retry', () => {
  /** Pod u1 failed at second 60, and no timer could be armed for its retry; pod u2 is due at second 61. */
  async function unarmed(): Promise<EvictBench> {
    const soon = pod('u2', { tolerations: [tolerating('a', 61)] });
    const bench = await benchAfter(
      [nodeDelta(1, { pods: [pod('u1'), soon] })],
      [livePod('u1'), livePod('u2', { tolerations: [tolerating('a', 61)] })],
    );
    failing(bench, 'delete', serverError(500, 30));
    bench.timerOutages = 1;
    assert.deepEqual(await failed(bench, dueAt(60)), ['1']);
    bench.recovers();
    return bench;
  }

  test('arms the retry, although another pod is due earlier', async () => {
    const bench = await unarmed();
    assert.deepEqual(await failed(bench, dueAt(60, '1', 2)), []);
    assert.ok(bench.armed.includes(at(90)), 'nobody tries u1 again');
  });

  test('arms the retry, although another pod is due now', async () => {
    const bench = await unarmed();
    await bench.clock.advanceTo(at(61));
    assert.deepEqual(await failed(bench, dueAt(60, '1', 2)), []);
    assert.deepEqual(bench.deleted, ['u2']);
    assert.ok(bench.armed.includes(at(90)), 'nobody tries u1 again');
  });

  test('arms the retry, although it shares its pass with first deliveries', async () => {
    const bench = await unarmed();
    assert.deepEqual(await failed(bench, dueAt(60, '2'), dueAt(60, '3'), dueAt(60, '1', 2)), []);
    assert.ok(bench.armed.includes(at(90)), 'nobody tries u1 again');
  });
});

describe('an announcement', () => {
  const announcement = () => {
    const { scheduled } = after(nodeDelta(1, { pods: [pod('u1'), pod('u2')] }));
    const version = { epoch: 1, sequence: 7 };
    const [body] = encodeCanceled({ ...ref, version, pods: [...scheduled.values()] });
    assert.ok(body);
    return sqsRecord(body);
  };

  test('posts one Event for each pod, for any number of deliveries', async () => {
    const bench = await onePod();
    assert.deepEqual(await failed(bench, announcement()), []);
    assert.deepEqual(await failed(bench, announcement()), []);
    assert.deepEqual(
      bench.cluster.events.map(({ message }) => message),
      ['Cancelling deletion of Pod default/pod-u1', 'Cancelling deletion of Pod default/pod-u2'],
    );
    assert.deepEqual(bench.deleted, []);
  });

  test('logs a dropped Event for an unregistered cluster, and is not redelivered', async () => {
    const bench = await onePod();
    bench.clusters.api = async (name) => {
      throw new UnknownClusterError(`cluster ${name} is not registered`);
    };
    assert.deepEqual(await failed(bench, announcement()), []);
    assert.equal(eventsIn(bench).filter((event) => event === 'event.dropped').length, 2);
  });

  test('logs a dropped Event when the API server rejects it, and is not redelivered', async () => {
    const bench = await onePod();
    failing(bench, 'create', serverError(403));
    assert.deepEqual(await failed(bench, announcement()), []);
    assert.equal(eventsIn(bench).filter((event) => event === 'event.dropped').length, 1);
  });
});

describe('a message whose work fails', () => {
  test('is redelivered while nothing is stored for its node, because no retry can be recorded', async () => {
    const bench = new EvictBench();
    const { scheduled } = after(nodeDelta(1));
    const change = { schedule: [...scheduled.values()], end: [], live: true };
    await bench.store.commit(ref, 0, change, at(0));
    bench.cluster.putPod(livePod());
    failing(bench, 'get', serverError(0));
    assert.deepEqual(await failed(bench, dueAt(60)), ['1']);
    assert.deepEqual(await bench.states(), { u1: 'scheduled' });
  });

  test('is deleted on any error of the API server, because the retry of the node has its own timer', async () => {
    for (const [verb, error] of [
      ['get', serverError(0)],
      ['patch', serverError(500)],
      ['delete', serverError(429, 42)],
    ] as const) {
      const bench = await onePod();
      failing(bench, verb, error);
      assert.deepEqual(await failed(bench, dueAt(60)), []);
      assert.deepEqual(await bench.states(), { u1: 'scheduled' });
      assert.equal(bench.armed.length, 1);
      assert.deepEqual(bench.retries, []);
    }
  });

  test('is retried after the time that the API server requested, up to an hour', async () => {
    for (const [retryAfter, waited] of [
      [42, 42],
      [86_400, 3600],
    ] as const) {
      const bench = await onePod();
      failing(bench, 'delete', serverError(429, retryAfter));
      await failed(bench, dueAt(60));
      assert.deepEqual(bench.armed, [at(60 + waited)]);
    }
  });

  test('is redelivered when the retry could not be written or its timer could not be armed', async (t) => {
    const unwritten = await onePod();
    failing(unwritten, 'delete', serverError(500));
    unwritten.store.conflicts = Number.POSITIVE_INFINITY;
    assert.deepEqual(await inNoTime(t, () => failed(unwritten, dueAt(60))), ['1']);
    const unarmed = await onePod();
    failing(unarmed, 'delete', serverError(500));
    unarmed.timerOutages = 1;
    assert.deepEqual(await failed(unarmed, dueAt(60)), ['1']);
    assert.deepEqual(await failed(unarmed, dueAt(60, '1', 2)), []);
    assert.equal(unarmed.armed.length, 1);
  });

  test('is redelivered with growing waits while the table is unreachable', async () => {
    const bench = await onePod();
    bench.store.outages = Number.POSITIVE_INFINITY;
    for (const receives of [1, 2, 5, 8, 30]) await failed(bench, dueAt(60, '1', receives));
    const seconds = bench.retries.map((retry) => retry.seconds);
    for (const [index, longest] of [1, 2, 16, 128, 300].entries()) {
      const waited = seconds[index] ?? 0;
      assert.ok(waited >= longest / 2 && waited <= longest, `${waited} of ${longest} s`);
    }
  });

  test('does not affect the others of its batch', async () => {
    const bench = await onePod();
    bench.store.outages = 1;
    const other = { ...ref, node: nodeName('n2') };
    const records = [sqsRecord(encodeDue({ ...other, at: at(0) }), { messageId: '1' }), dueAt(60, '2')];
    assert.deepEqual(await failed(bench, ...records), ['1']);
    assert.deepEqual(bench.deleted, ['u1']);
  });
});

test('redelivers soon a message with pods that wait for a delta of the relay', async () => {
  const bench = await onePod();
  bench.cluster.putNode({ ...liveNode('n1', 'a'), taintsStamp: 'kubectl@1' });
  assert.deepEqual(await failed(bench, dueAt(60)), ['1']);
  assert.deepEqual(bench.retries, [{ receiptHandle: '1', seconds: 0.25 }]);
  assert.deepEqual(bench.deleted, []);
});

describe('an unreadable message', () => {
  test('is dead-lettered with the reason', async () => {
    const bench = await onePod();
    assert.deepEqual(await failed(bench, sqsRecord('{"v":9}', { messageId: '1' }), dueAt(60, '2')), []);
    const [letter] = bench.deadLetters.sent;
    assert.equal(letter?.body, '{"v":9}');
    assert.match(letter.attributes?.['reason'] ?? '', /^due message rejected: /);
    assert.equal(letter.groupId, undefined);
    assert.deepEqual(bench.deleted, ['u1']);
  });
});

test('messages for one node that arrive together share a pass', async () => {
  const bench = await benchAfter([nodeDelta(1, { pods: [pod('u1'), pod('u2')] })], podsNamed(2));
  const load = bench.store.load.bind(bench.store);
  let loads = 0;
  bench.store.load = (...args) => {
    const [, , only] = args;
    if (!only) loads += 1;
    return load(...args);
  };
  const records = Array.from({ length: 5 }, (_, index) => dueAt(60, String(index)));
  assert.deepEqual(await failed(bench, ...records), []);
  assert.equal(loads, 1);
  assert.equal(bench.cluster.deletions.length, 2);
});

test('a message whose work never ends is returned in time, and delays no other', async (context: TestContext) => {
  const time = driveTimers(context);
  const bench = await onePod();
  const slow = nodeName('slow');
  const load = bench.store.load.bind(bench.store);
  bench.store.load = (of, now) => (of.node === slow ? new Promise(() => undefined) : load(of, now));
  const stuck = sqsRecord(encodeDue({ ...ref, node: slow, at: at(0) }), { messageId: '1' });
  const handling = failed(bench, stuck, dueAt(60, '2'));
  await time.settle();
  assert.deepEqual(bench.deleted, ['u1']);
  await time.pass(EVICT_RECORD_DEADLINE_MS);
  assert.deepEqual(await handling, ['1']);
  assert.equal(bench.retries.length, 1);
});

test('the limits of evict are consistent', () => {
  const spec = QUEUES.evictionsDue;
  assert.ok(
    EVICT_RECORD_DEADLINE_MS < spec.functionTimeoutSeconds * 1000,
    'a record ends before its function',
  );
  assert.ok(EVICT_BATCH_SIZE <= 10);
});

describe('a proof that evictions work', () => {
  const probe = sqsRecord(encodeDue({ ...probeRef(ref.cluster), at: probeTimerAt(at(59)) }), {
    groupId: ref.cluster,
  });

  /** A bench with a due pod and readable proofs. */
  async function proving() {
    const bench = await onePod();
    const notes = new ProofsInMemory();
    const proofs = new NotedProofs({ notes, clock: bench.clock, log: bench.log });
    const handle = (...records: readonly SQSRecord[]) => failed(Object.assign(bench, { proofs }), ...records);
    const noted = async () => notes.read(ref.cluster);
    return { bench, handle, noted };
  }

  test('is a completed probe, dated to when its relay sent it', async () => {
    const { handle, noted } = await proving();
    assert.deepEqual(await handle(probe), []);
    assert.deepEqual(await noted(), { probe: { sentAt: at(59) }, passes: 0 });
  });

  test('is a complete pass, in a cluster with probes', async () => {
    const { bench, handle, noted } = await proving();
    await handle(probe);
    await handle(dueAt(60));
    assert.deepEqual(bench.deleted, ['u1']);
    assert.equal((await noted()).passes, 1);
  });

  test('is a complete pass also where the rules hold every pod', async () => {
    const { bench, handle, noted } = await proving();
    bench.ruling = { ...bench.ruling, stops: [{ scope: 'fleet', actor: 'anna', at: 0, reason: '' }] };
    await handle(probe, dueAt(60));
    assert.deepEqual(bench.deleted, []);
    assert.equal((await noted()).passes, 1);
  });

  test('is no pass in a cluster without probes, to save a write', async () => {
    const { handle, noted } = await proving();
    await handle(dueAt(60));
    assert.equal((await noted()).passes, 0);
  });

  test('is no pass in which an eviction failed', async () => {
    const { bench, handle, noted } = await proving();
    failing(bench, 'delete', serverError(500));
    await handle(probe, dueAt(60));
    assert.equal((await noted()).passes, 0);
  });
});
