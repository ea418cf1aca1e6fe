import pMap from 'p-map';
import type { ClusterAccess } from '#shared/clusters/cluster-access.ts';
import type { EpochMs, NodeRef } from '#shared/eviction/identity.ts';
import { judge, type Look, type Verdict } from '#shared/eviction/judge.ts';
import { type Ending, type EvictionRecord, ending, type NodeState } from '#shared/eviction/records.ts';
import type { KubernetesApi, LivePod, PodEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import type { Store } from '#shared/store/store.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { EvictionMetrics } from '#shared/telemetry/metrics.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { Timers } from '#shared/timers/timers.ts';
import { correctRecords } from './correct-records.ts';
import { lookAgain, lookAt } from './look.ts';
import { cancellingDeletion, markingForDeletion } from './pod-events.ts';
import { postEvents } from './post-events.ts';

/** What evicting needs of the world. */
export interface EvictDeps {
  readonly store: Store;
  readonly timers: Timers;
  readonly clusters: ClusterAccess;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: EvictionMetrics;
  readonly matching: MatchOptions;
}

/** Pods of one node that are deleted at a time. */
const PARALLEL_DELETIONS = 32;
/** A look older than this is taken again before the next pod is deleted: taints come and go. */
export const LOOK_MAX_AGE_MS = 250;
/** After this many failures on a node the rest is not tried: the API server has a reason that they would meet too. */
const MAX_FAILURES = 8;

/** Some pods could not be evicted yet. */
export class EvictionsFailedError extends Error {
  override readonly name = 'EvictionsFailedError';
  readonly pods: readonly EvictionRecord[];
  /** The longest wait the API server asked for. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, pods: readonly EvictionRecord[], retryAfterSeconds: number | undefined) {
    super(message);
    this.pods = pods;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * Evicts what is due on a node: looks at the live node and pods, decides once more, deletes what still must go
 * and corrects what live state contradicts. Resolves when nothing that was due is left. Rejects with
 * `EvictionsFailedError` (the rest is done), or with what kept it from looking: `StoreError`, `ApiError`,
 * `UnknownClusterError`. Doing it again, or twice at once, does no harm. `recorded` is called when the store says
 * what was done, so that the node may be looked at again; Events are still posted then.
 */
export async function evictNode(
  ref: NodeRef,
  deps: EvictDeps,
  recorded: () => void = () => undefined,
): Promise<void> {
  const now = deps.clock.now();
  const partition = await deps.store.load(ref, now);
  const due = inTurn(
    [...partition.scheduled.values()].filter(({ fireAt }) => fireAt <= now),
    now,
  );
  if (due.length === 0) return;
  const api = await deps.clusters.api(ref.cluster);
  const look = await lookAt(api, ref, due, deps.clock);
  const pass = new Pass(ref, partition.node, due, look, api, deps);
  await pass.run(recorded);
}

/** A pod overdue for longer was tried before and failed, or waited for a cluster that was out of reach. */
const LONG_OVERDUE_MS = 30_000;

/**
 * The oldest first, so that none waits much longer than the others. Those overdue for long come last, and those of
 * one moment in random order: pods whose deletion always fails would use up each pass's failures before the others'
 * turn comes.
 */
function inTurn(records: readonly EvictionRecord[], now: EpochMs): readonly EvictionRecord[] {
  const rank = ({ fireAt }: EvictionRecord): number =>
    (now - fireAt > LONG_OVERDUE_MS ? now : fireAt) + Math.random();
  return records
    .map((record) => ({ record, rank: rank(record) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ record }) => record);
}

/** One pass over a node's due pods. */
class Pass {
  readonly #ref: NodeRef;
  readonly #node: NodeState | undefined;
  readonly #due: readonly EvictionRecord[];
  readonly #api: KubernetesApi;
  readonly #deps: EvictDeps;
  #look: Look<LivePod>;
  #looking: Promise<void> | undefined;
  /** What has happened: evicted, or gone. */
  readonly #happened: Ending[] = [];
  readonly #cancelled: Ending[] = [];
  readonly #rescheduled: EvictionRecord[] = [];
  readonly #failed: EvictionRecord[] = [];
  readonly #errors: ApiError[] = [];
  readonly #events: PodEvent[] = [];

  constructor(
    ref: NodeRef,
    node: NodeState | undefined,
    due: readonly EvictionRecord[],
    look: Look<LivePod>,
    api: KubernetesApi,
    deps: EvictDeps,
  ) {
    this.#ref = ref;
    this.#node = node;
    this.#due = due;
    this.#look = look;
    this.#api = api;
    this.#deps = deps;
  }

  async run(recorded: () => void): Promise<void> {
    try {
      await pMap(this.#due, (record) => this.#handle(record), { concurrency: PARALLEL_DELETIONS });
    } finally {
      // What happened is recorded even when something unforeseen ends the pass, and told even when that fails.
      await this.#record().finally(() => {
        recorded();
        return postEvents(this.#api, this.#events, this.#deps);
      });
    }
    this.#throwFailures();
  }

  async #record(): Promise<void> {
    await this.#deps.store.end(this.#ref, this.#happened, this.#deps.clock.now());
    await this.#correct();
  }

  async #handle(record: EvictionRecord): Promise<void> {
    if (this.#errors.length >= MAX_FAILURES) {
      this.#failed.push(record);
      return;
    }
    try {
      await this.#refreshLook();
      await this.#perform(this.#judge(record));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#deps.metrics.requestRefused();
      this.#errors.push(error);
      this.#failed.push(record);
    }
  }

  #judge(record: EvictionRecord): Verdict {
    const [verdict] = judge(this.#node, [record], this.#look, this.#deps.matching);
    if (!verdict) throw new Error(`no verdict on pod ${record.uid}`);
    return verdict;
  }

  async #refreshLook(): Promise<void> {
    if (this.#deps.clock.now() - this.#look.at <= LOOK_MAX_AGE_MS) return;
    this.#looking ??= lookAgain(this.#api, this.#ref, this.#look, this.#deps.clock)
      .then((look) => {
        this.#look = look;
      })
      .finally(() => {
        this.#looking = undefined;
      });
    await this.#looking;
  }

  async #perform(verdict: Verdict): Promise<void> {
    const { record } = verdict;
    switch (verdict.kind) {
      case 'evict':
        await this.#evict(record);
        break;
      case 'end':
        this.#ended(record, verdict.outcome);
        break;
      case 'cancel':
        this.#cancelled.push(ending(record, { outcome: 'cancelled', cancelled: verdict.because }));
        break;
      case 'reschedule':
        this.#rescheduled.push(record);
        break;
      default:
        verdict satisfies never;
    }
  }

  async #evict(record: EvictionRecord): Promise<void> {
    const { clock, metrics, log } = this.#deps;
    try {
      // Before the delete, or a Job's podFailurePolicy counts the pod as failed (KEP-3329).
      const pod = this.#look.pods.get(record.uid);
      if (pod && !pod.disrupted) {
        await this.#api.markDisrupted(pod, record.uid, clock.now());
        // A slow API server took its time, and the taint may be gone by now.
        await this.#refreshLook();
        const verdict = this.#judge(record);
        if (verdict.kind !== 'evict') return await this.#perform(verdict);
      }
      await this.#api.deletePod(record, { uid: record.uid });
    } catch (error) {
      if (!(error instanceof ApiError && (await this.#isGone(record, error)))) throw error;
      this.#ended(record, 'gone');
      return;
    }
    const lateMs = Math.max(0, clock.now() - record.fireAt);
    this.#happened.push(ending(record, { outcome: 'done', lateMs }));
    this.#events.push(markingForDeletion(record));
    metrics.podDeleted(lateMs / 1000);
    log.info('eviction.done', { ...this.#fields(record), lateMs });
  }

  /** A 409 may also mean that a status changed too fast to be patched: only a look tells. */
  async #isGone(record: EvictionRecord, error: ApiError): Promise<boolean> {
    if (error.status === 404) return true;
    if (error.status !== 409) return false;
    const pod = await this.#api.getPod(record);
    return pod?.uid !== record.uid;
  }

  #ended(record: EvictionRecord, outcome: 'done' | 'gone'): void {
    this.#happened.push(ending(record, { outcome }));
    this.#deps.log.info('eviction.gone', this.#fields(record));
  }

  async #correct(): Promise<void> {
    // First the timers: the message that brought us here finds nothing due any more once the records stand.
    await this.#deps.timers.arm(this.#ref, [...new Set(this.#rescheduled.map(({ fireAt }) => fireAt))]);
    const correction = { schedule: this.#rescheduled, end: this.#cancelled };
    const corrected = await correctRecords(this.#ref, correction, this.#deps);
    for (const each of this.#cancelled.filter(({ uid }) => corrected.has(uid))) {
      this.#events.push(cancellingDeletion(each, each.version));
      this.#deps.log.info('eviction.cancelled', {
        ...this.#fields(each),
        reason: each.cancelled,
        announced: true,
      });
    }
    for (const record of this.#rescheduled.filter(({ uid }) => corrected.has(uid))) {
      this.#deps.log.info('eviction.rescheduled', this.#fields(record));
    }
  }

  #fields({ uid, namespace, name: pod, fireAt, because }: EvictionRecord | Ending) {
    return { ...this.#ref, namespace, pod, uid, fireAt, because };
  }

  #throwFailures(): void {
    const [first] = this.#errors;
    if (!first) return;
    const waits = this.#errors.map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0);
    throw new EvictionsFailedError(
      `${this.#failed.length} of ${this.#due.length} due pods are not evicted yet: ${first.message}`,
      this.#failed,
      Math.max(...waits),
    );
  }
}
