import pMap from 'p-map';
import { clusterGate, isObserved, storedGate } from '#shared/eviction/gate.ts';
import type { PodOutcome, Settled } from '#shared/eviction/outcome.ts';
import { type EvictionRecord, heldRecord } from '#shared/eviction/records.ts';
import { evictionRef } from '#shared/telemetry/log-events.ts';
import { POD_DELETION_DURATION, POD_DELETIONS } from '#shared/telemetry/metrics.ts';
import { PodEvictor } from './evict-pod.ts';
import { type FirstView, NodeReader } from './node-reader.ts';
import { PassPermits } from './pass-permits.ts';
import type { PassScope } from './ports.ts';

export const PARALLEL_EVICTIONS = 32;

/**
 * One pass over a node's due pods: looks at the node, takes permits, and evicts. Resolves with the outcome of each pod,
 * in the order in which they settled.
 */
export async function runPass(due: readonly EvictionRecord[], scope: PassScope): Promise<readonly Settled[]> {
  const reader = new NodeReader(scope);
  const permits = new PassPermits(scope);
  const evictor = new PodEvictor(scope, reader, permits);
  let first: FirstView;
  try {
    first = await reader.first(due);
  } catch (error) {
    const outcome = evictor.failed(error);
    const unseen = due.map((record) => ({ record, outcome }));
    return holdUnseen(unseen, scope);
  }
  await permits.take(due, first).catch((error) => void evictor.failed(error));
  const settled: Settled[] = [];
  const settle = async (record: EvictionRecord) => {
    const { uid } = record;
    const outcome = permits.withheld(uid) ?? (await evictor.evict(record, first.pods.get(uid), first.view));
    report(record, outcome, scope);
    settled.push({ record, outcome });
  };
  await pMap(due, settle, { concurrency: PARALLEL_EVICTIONS });
  return holdUnseen(settled, scope);
}

/**
 * A held pod's time doesn't count toward its failure: pods of an unreadable cluster that may not be evicted are held.
 */
async function holdUnseen(
  settled: readonly Settled[],
  { partition: { ref, node }, clock, rules: read }: PassScope,
): Promise<readonly Settled[]> {
  if (!settled.some(({ outcome }) => outcome.kind === 'refused')) return settled;
  const now = clock.now();
  const rules = await read(ref.cluster);
  const gate = clusterGate(rules, now);
  if (!gate) return settled;
  return settled.map((due): Settled => {
    if (!['refused', 'failed', 'blocked'].includes(due.outcome.kind)) return due;
    // In observe mode, it is unknown whether the pod would be evicted unless a stored gate holds it.
    const heldBy = isObserved(rules) ? storedGate(rules, { ...node, node: ref.node }, due.record, now) : gate;
    if (!heldBy || heldBy.kind === 'observe') return due;
    return { ...due, outcome: { kind: 'hold', record: heldRecord(due.record, { by: heldBy, since: now }) } };
  });
}

function report(record: EvictionRecord, outcome: PodOutcome, { partition, metrics, log }: PassScope): void {
  const { ref } = partition;
  if (outcome.kind === 'deleted') {
    const { kind: _kind, delayMs, ...lease } = outcome;
    metrics.put(POD_DELETIONS, 1, ref.cluster);
    metrics.put(POD_DELETION_DURATION, delayMs / 1000, ref.cluster);
    log.info('pod.evicted', { ...evictionRef(ref, record), delayMs, ...lease });
  } else if (outcome.kind === 'end') {
    const event = outcome.outcome === 'would-evict' ? 'eviction.would-evict' : 'pod.already-gone';
    log.info(event, evictionRef(ref, record));
  }
}
