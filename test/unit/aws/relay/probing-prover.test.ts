import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { parseDelta } from '#shared/aws/delta-message.ts';
import { ProbingProver } from '#shared/aws/relay/probing-prover.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { probeOf } from '#shared/eviction/probe.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { ProofsInMemory } from '#test/world/proofs-in-memory.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';

const START = Date.UTC(2026, 0, 1);
const SECOND = 1000;
const CLUSTER = clusterName('c1');

function bench(context: TestContext) {
  const time = driveTimers(context, START);
  const [nodeDeltas, proofs] = [new ScriptedQueue(), new ProofsInMemory()];
  const stopping = new AbortController();
  const prover = new ProbingProver({ nodeDeltas, proofs, clock: { now: Date.now } });
  const probes = () => nodeDeltas.sent.map(({ body }) => probeOf(parseDelta(body)));
  const answer = (sentAt = probes().at(-1)?.sentAt ?? 0, failure?: string) =>
    proofs.notedProbe(CLUSTER, sentAt, Date.now(), failure);
  /** Returns the result of a proof that is requested now, while `happens` runs after `afterSeconds`. */
  const prove = async (happens: () => unknown = () => undefined, afterSeconds = 1) => {
    const proving = prover.prove(CLUSTER, stopping.signal);
    await time.pass(afterSeconds * SECOND);
    await happens();
    await time.pass(20 * SECOND);
    const proof = await proving;
    return 'asOf' in proof ? (proof.asOf - START) / SECOND : proof.unproven;
  };
  return { nodeDeltas, proofs, prover, probes, answer, prove, stopping };
}

test('an answered probe proves evictions as of when it was sent', async (context) => {
  const { answer, prove } = bench(context);
  assert.equal(await prove(answer), 0);
  assert.equal(await prove(answer, 5), 21);
});

for (const [until, reads] of [
  ['evictions are proven', 2],
  ['a failure is known', 2],
  ['the relay stops', 1],
] as const)
  test(`answers are read until ${until}`, async (context) => {
    const { proofs, prove, answer, stopping } = bench(context);
    const read = context.mock.method(proofs, 'read');
    const happens = {
      'evictions are proven': () => answer(),
      'a failure is known': () => answer(undefined, 'no permission'),
      'the relay stops': () => stopping.abort(),
    };
    await prove(happens[until], 0.4);
    // A double's answer begins with a read of its own.
    assert.equal(read.mock.callCount(), reads);
  });

test('a late answer counts for the next proof, as of when its probe was sent', async (context) => {
  const { answer, prove, probes } = bench(context);
  assert.match(String(await prove(answer, 12)), /sent 8s ago, isn't answered yet$/);
  const [first] = probes();
  assert.equal(await prove(), 0);
  assert.equal(first?.sentAt, START);
});

test('the same answer proves evictions only once', async (context) => {
  const { answer, prove } = bench(context);
  assert.equal(await prove(answer), 0);
  assert.match(String(await prove()), /isn't answered yet$/);
});

test('an answer to a probe of another relay, by another clock, proves no evictions', async (context) => {
  const { answer, prove } = bench(context);
  const isProven = async (sentAt: EpochMs) => typeof (await prove(() => answer(sentAt))) === 'number';
  assert.equal(await isProven(START + 3_600_000), false);
  assert.equal(await isProven(START - 1), false);
});

test('a pass that is recorded while a probe is queued proves evictions as of the previous read', async (context) => {
  const { proofs, prove, answer, probes } = bench(context);
  await proofs.notedPass(CLUSTER);
  const passes = () => proofs.notedPass(CLUSTER);
  assert.equal(await prove(passes), 0.5);
  assert.equal(await prove(passes), 21.5);
  const [first] = probes();
  assert.match(
    String(await prove(() => answer(first?.sentAt))),
    /isn't answered/,
    'the heartbeat never goes back',
  );
});

test('a pass that was recorded between two heartbeats proves no evictions, because its time is unknown', async (context) => {
  const { proofs, prove, answer } = bench(context);
  await prove(answer);
  await proofs.notedPass(CLUSTER);
  assert.match(String(await prove()), /isn't answered yet$/);
});

test('passes prove no evictions while a probe reports that evict cannot evict', async (context) => {
  const { proofs, prove, answer } = bench(context);
  const failure = 'the credentials lack the permission to delete pods';
  assert.equal(await prove(() => answer(undefined, failure)), `evict can't evict pods: ${failure}`);
  assert.equal(await prove(() => proofs.notedPass(CLUSTER)), `evict can't evict pods: ${failure}`);
  assert.equal(await prove(answer), 42);
  assert.equal(await prove(() => answer(undefined, failure)), `evict can't evict pods: ${failure}`);
  assert.match(String(await prove()), /evict can't evict/);
  assert.match(String(await prove()), /isn't answered/);
});

test('probes are traced only after an unanswered probe', async (context) => {
  const { prove, answer, probes } = bench(context);
  await prove(answer);
  await prove();
  await prove(answer);
  await prove(answer);
  assert.deepEqual(
    probes().map((probe) => probe?.isTraced),
    [false, false, true, false],
  );
});

test('each probe has its own ID, and all have the message group of their cluster', async (context) => {
  const { nodeDeltas, prove, answer } = bench(context);
  await prove(answer);
  await prove(answer);
  const { sent } = nodeDeltas;
  assert.equal(new Set(sent.map(({ deduplicationId }) => deduplicationId)).size, 2);
  assert.equal(new Set(sent.map(({ groupId }) => groupId)).size, 1);
});

test('a rejected probe proves no evictions, and the reason is reported', async (context) => {
  const { nodeDeltas, prove } = bench(context);
  nodeDeltas.refusal = { reason: 'no', permanent: true };
  assert.equal(await prove(), 'the node-deltas queue rejects probes: no');
});

test('the stage at which probes are stuck is reported', async (context) => {
  const { proofs, prove, probes } = bench(context);
  await prove();
  const sent = 'a probe of evictions, sent 29s ago,';
  await proofs.notedDelta(CLUSTER, START - 1);
  assert.equal(await prove(), `${sent} isn't answered: the delta function doesn't send probes on`);
  const traced = probes().at(-1)?.sentAt ?? 0;
  assert.equal(
    await prove(() => proofs.notedDelta(CLUSTER, traced)),
    "a probe of evictions, sent 50s ago, isn't answered: the delta function sends probes on, but evict doesn't answer",
  );
});

test('after a pass, answers to all probes but the last prove nothing more', async (context) => {
  const { proofs, prove, answer, probes } = bench(context);
  await prove();
  await prove();
  assert.equal(await prove(() => proofs.notedPass(CLUSTER)), 42.5);
  const second = probes()[1]?.sentAt;
  assert.equal(typeof (await prove(() => answer(second))), 'string');
});

test('up to four unanswered probes are sent with each heartbeat, however soon', async (context) => {
  const { prover, probes, stopping } = bench(context);
  stopping.abort();
  const sent = [];
  for (let heartbeats = 0; heartbeats < 6; heartbeats++) {
    await prover.prove(CLUSTER, stopping.signal);
    sent.push(probes().length);
  }
  assert.deepEqual(sent, [1, 2, 3, 4, 4, 4]);
});

test('many unanswered probes are sent less often, and their late answers still count', async (context) => {
  const { prove, answer, probes } = bench(context);
  context.mock.method(Math, 'random', () => 1);
  const sent = [];
  for (let heartbeats = 0; heartbeats < 8; heartbeats++) {
    await prove();
    sent.push(probes().length);
  }
  assert.deepEqual(sent, [1, 2, 3, 4, 4, 5, 5, 5]);
  const last = probes().at(-1)?.sentAt ?? 0;
  await answer(last);
  assert.equal(await prove(), (last - START) / SECOND);
  await prove();
  assert.equal(probes().length, 6);
});

for (const proof of ['a pass', 'an answer'] as const) {
  test(`the next heartbeat sends a probe immediately after ${proof}, although several were unanswered`, async (context) => {
    const { proofs, prove, answer, probes } = bench(context);
    context.mock.method(Math, 'random', () => 1);
    for (let heartbeats = 0; heartbeats < 3; heartbeats++) await prove();
    const happens = proof === 'a pass' ? () => proofs.notedPass(CLUSTER) : () => answer();
    assert.equal(typeof (await prove(happens)), 'number');
    await prove();
    assert.equal(probes().length, 5);
  });
}
