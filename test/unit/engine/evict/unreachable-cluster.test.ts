import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVICT_BATCH_SIZE } from '#shared/aws/due-consumption.ts';
import type { Partition } from '#shared/eviction/records.ts';
import { afterFailures } from '#shared/eviction/retry.ts';
import { Breaker } from '#shared/kubernetes/http/breaker.ts';
import { CALL_TIMEOUT_MS } from '#shared/kubernetes/http/transport.ts';
import { after, at, nodeDelta, rules } from '#test/unit/eviction/builders.ts';

/** The number of concurrent batches: the stack's default of `taintward:concurrency`. */
const PROCESSES = 50;
const STEP_MS = 100;
const HEALTHY_MS = 300;
/** The duration of a try that the breaker rejects: a read and a write of the table. */
const REFUSED_MS = 100;
const OUTAGE_MS = 30 * 60_000;

interface Message {
  readonly sentAt: number;
  /** The state of an unreachable node; `undefined`: the message is of the healthy cluster. */
  readonly failing: Partition | undefined;
}

/** Returns a repeatable random generator from 0 to 1. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/**
 * Returns the reaction times, in milliseconds, of a cluster with an eviction every half second, while the nodes
 * of another cluster do not answer. The queue, the processes and their durations are a model; the breaker and
 * the retries are from the service.
 */
function reactions(unreachableNodes: number): readonly number[] {
  const random = randomFrom(7);
  const processes = Array.from({ length: PROCESSES }, () => ({ breaker: new Breaker(), freeAt: 0 }));
  const arriving = new Map<number, Message[]>();
  const send = (message: Message) => {
    const step = Math.ceil(message.sentAt / STEP_MS);
    arriving.set(step, [...(arriving.get(step) ?? []), message]);
  };
  const failing = after(nodeDelta(1));
  for (let i = 0; i < unreachableNodes; i++) send({ sentAt: at(60), failing });
  for (let ms = 0; ms < OUTAGE_MS; ms += 500) send({ sentAt: at(60) + ms, failing: undefined });

  const waiting = { unreachable: [] as Message[], healthy: [] as Message[] };
  /** A fair queue: the cluster with fewer messages in flight is first, which is the healthy cluster. */
  const take = (): Message | undefined => waiting.healthy.shift() ?? waiting.unreachable.shift();
  const reacted: number[] = [];
  /** Handles one message, and returns the time at which it is done. */
  const handle = ({ sentAt, failing: node }: Message, breaker: Breaker, now: number): number => {
    if (!node) {
      reacted.push(now + HEALTHY_MS - sentAt);
      return now + HEALTHY_MS;
    }
    let doneAt = now + REFUSED_MS;
    if (breaker.refusesUntil(now) === undefined) {
      const begun = breaker.begin(now);
      doneAt = now + CALL_TIMEOUT_MS;
      breaker.failed(begun, doneAt);
    }
    assert.ok(node.node);
    const failures = { everything: 'no answer', unanswered: true, outOfReach: breaker.open, pods: new Map() };
    const retried = afterFailures(node.node, node.scheduled, failures, {
      now: doneAt,
      random: random(),
      giveUpAfterMs: rules.policy.giveUpAfterMs,
    }).node;
    assert.ok(retried.outage);
    send({ sentAt: retried.outage.nextTryAt, failing: { ...node, node: retried } });
    return doneAt;
  };
  for (let now = at(60); now < at(60) + OUTAGE_MS; now += STEP_MS) {
    for (const message of arriving.get(now / STEP_MS) ?? [])
      (message.failing ? waiting.unreachable : waiting.healthy).push(message);
    arriving.delete(now / STEP_MS);
    for (const process of processes) {
      if (process.freeAt > now) continue;
      const batch = Array.from({ length: EVICT_BATCH_SIZE }, take).filter((message) => message !== undefined);
      if (batch.length === 0) break;
      process.freeAt = Math.max(...batch.map((message) => handle(message, process.breaker, now)));
    }
  }
  return reacted.sort((a, b) => a - b);
}

const p99 = (sorted: readonly number[]) => sorted[Math.floor(sorted.length * 0.99)] ?? Infinity;

for (const unreachable of [1_000, 2_000]) {
  test(`while ${unreachable} nodes of a cluster do not answer, a healthy cluster's p99 at most doubles`, () => {
    const alone = reactions(0);
    const beside = reactions(unreachable);
    assert.equal(beside.length, alone.length);
    assert.ok(p99(beside) <= 2 * p99(alone), `${p99(beside)} ms, alone ${p99(alone)} ms`);
  });
}
