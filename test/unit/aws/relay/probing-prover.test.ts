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
  const prover = new ProbingProver({ nodeDeltas, proofs, clock: { now: Date.now } });
  const probes = () => nodeDeltas.sent.map(({ body }) => probeOf(parseDelta(body)));
  const answer = (sentAt = probes().at(-1)?.sentAt ?? 0, failure?: string) =>
    proofs.notedProbe(CLUSTER, sentAt, Date.now(), failure);
  /** Returns the result of a proof that is requested now, while `happens` runs after `afterSeconds`. */
  const prove = async (happens: () => unknown = () => undefined, afterSeconds = 1) => {
    const asked = prover.prove(CLUSTER, new AbortController().signal);
    await time.pass(afterSeconds * SECOND);
    await happens();
    await time.pass(20 * SECOND);
    const proof = await asked;
    return 'asOf' in proof ? (proof.asOf - START) / SECOND : proof.unproven;
  };
  return { nodeDeltas, proofs, probes, answer, prove };
}

test('an answered probe proves evictions as of when it was sent', async (context) => {
  const { answer, prove } = bench(context);
  assert.equal(await prove(answer), 0);
  assert.equal(await prove(answer, 5), 21);
});

test('a late answer counts for the next proof, as of when its probe was sent', async (context) => {
  const { answer, prove, probes } = bench(context);
  assert.match(String(await prove(answer, 12)), /sent 8 s ago, isn't answered yet$/);
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
