import { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import type { Again } from '#shared/engine/timers.ts';
import type { ClusterName, NodeRef, PodUid } from '#shared/eviction/identity.ts';
import { isComplete } from '#shared/eviction/outcome.ts';
import { type EvictionRecord, isTainted } from '#shared/eviction/records.ts';
import { changeTries, dueOf, nextMomentOf, nextTryOf } from '#shared/eviction/retry.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { commitUnderLock } from '#shared/state/store.ts';
import { CLOCK_SKEW, OUT_OF_REACH, RIVALS } from '#shared/telemetry/metrics.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { markingForDeletion, postEvents } from './events.ts';
import { runPass } from './pass.ts';
import type { EvictDeps } from './ports.ts';
import { endRetry, endUnregistered, recordPass } from './record-pass.ts';

/**
 * Processes a node: evicts the due pods that still must be evicted, corrects records that the live state contradicts,
 * and schedules retries. Runs may be repeated or concurrent. `cameBefore`: the message is a redelivery. `recorded`
 * is called when the results are stored: the node may then be processed again while Events are posted. Rejects with
 * `StoreError`, `TimerError`, `QueueError`; the message must then be redelivered.
 */
export async function evictNode(
  ref: NodeRef,
  deps: EvictDeps,
  cameBefore = false,
  recorded: () => void = () => undefined,
): Promise<Again | undefined> {
  const now = deps.clock.now();
  const partition = await deps.store.load(ref, now);
  const due = dueOf(partition, now);
  const { retry, outage } = partition.node ?? {};
  const tries = [retry, outage].flatMap((next) => next?.nextTryAt ?? []);
  // A redelivered message may have failed before it armed timers for its stored records.
  const armAgain = async (): Promise<void> => {
    const later = [nextMomentOf(partition, now) ?? now, ...tries].filter((moment) => moment > now);
    if (cameBefore && later.length > 0) await deps.timers.arm(ref, [...new Set(later)]);
  };
  if (due.length === 0) {
    await armAgain();
    if (tries.some((at) => at <= now)) await endRetry(ref, deps);
    return undefined;
  }
  let api: KubernetesApi;
  try {
    api = await deps.clusters.api(ref.cluster);
  } catch (error) {
    if (!(error instanceof UnknownClusterError)) throw error;
    await endUnregistered(partition, error, deps);
    return undefined;
  }
  if (outage?.attempts === 0) api.answeredElsewhere(outage.nextTryAt);
  const settled = await runPass(byDeadline(due, now), { ...deps, partition, loadedAt: now, api });
  const events = settled.flatMap(({ record, outcome }) =>
    outcome.kind === 'deleted' ? markingForDeletion(record) : [],
  );
  const pass = { before: partition, settled, outOfReach: api.breakerOpen, begunAt: now };
  try {
    const again = await recordPass(pass, deps, (event) => events.push(event));
    if (!again) await armAgain();
    if (isComplete(pass)) await deps.proofs?.passed(ref.cluster);
    return again;
  } finally {
    recorded();
    if (api.breakerOpen) deps.metrics.put(OUT_OF_REACH, 1, ref.cluster);
    if (api.skewMs !== undefined) deps.metrics.put(CLOCK_SKEW, Math.abs(api.skewMs) / 1000, ref.cluster);
    reportRivals(ref.cluster, api, deps);
    const at = deps.clock.now();
    const post = () => postEvents(api, events, deps, at);
    await (deps.laterEvents ? deps.laterEvents.post(ref.cluster, events.length, post) : post());
  }
}

/** Two installations evict twice, each by its own rules: one evicts the pods that the other holds. */
function reportRivals(cluster: ClusterName, api: KubernetesApi, { log, metrics }: EvictDeps): void {
  for (let rival = api.takeRival(); rival !== undefined; rival = api.takeRival()) {
    metrics.put(RIVALS, 1, cluster);
    const reason =
      'another installation evicts in this cluster: stop one of the two, or remove the cluster from it';
    log.warn('cluster.conflicting-installation', { cluster, otherInstallation: rival, reason });
  }
}

/** A pod that is overdue for longer was tried before and failed, or waited for an unreachable cluster. */
const LONG_OVERDUE_MS = 30_000;

/**
 * The oldest first, so that no pod waits much longer than the others; long overdue ones last. Those with the same
 * deadline come in random order, so that the same few don't always fail first.
 */
function byDeadline(records: readonly EvictionRecord[], now: EpochMs): readonly EvictionRecord[] {
  const rank = ({ dueAt }: EvictionRecord): number =>
    (now - dueAt > LONG_OVERDUE_MS ? now : dueAt) + Math.random();
  return records
    .map((record) => ({ record, rank: rank(record) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ record }) => record);
}

/**
 * Retries evictions on request: permanently failed ones as if never tried. A redelivered request (`cameBefore`) doesn't
 * skip the wait for the node's next try.
 */
export async function tryAgain(
  ref: NodeRef,
  uids: readonly PodUid[],
  { store, clock }: Pick<EvictDeps, 'store' | 'clock'>,
  cameBefore = false,
): Promise<void> {
  await commitUnderLock(store, ref, uids, clock, ({ node, scheduled }) => {
    const now = clock.now();
    const records = [...scheduled.values()];
    const isWaiting = records.some((record) => (nextTryOf(record, node)?.nextTryAt ?? now) > now);
    const schedule = records
      .filter(({ gaveUpAt }) => gaveUpAt !== undefined)
      .map(({ failure: _failure, gaveUpAt: _gaveUpAt, ...record }) => record);
    if (schedule.length === 0 && (cameBefore || !isWaiting)) return { result: undefined };
    // The time of evictions that failed permanently counts from now on.
    const ended = { attempts: 0, nextTryAt: now, ...(schedule.length > 0 ? { since: now } : {}) };
    const rested = node && { node: changeTries(node, (next) => ({ ...next, ...ended })) };
    return { result: undefined, change: { ...rested, schedule, end: [], live: isTainted(node) } };
  });
}
