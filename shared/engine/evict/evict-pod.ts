/*
 * The order in which a pod is evicted. Taints come and go, so each step follows a look at the node:
 *
 * 1. No mark is sent before a look of this pass has confirmed that a taint evicts the pod.
 * 2. The mark precedes the delete: otherwise, a Job's podFailurePolicy counts the pod as failed (KEP-3329).
 * 3. The pod is evaluated as the mark's answer shows it, and deleted at most 250 ms after the answer to a look, or not at all.
 */

import { BEING_MOVED } from '#shared/eviction/budget.ts';
import type { Evict } from '#shared/eviction/evaluate.ts';
import type { PodOutcome } from '#shared/eviction/outcome.ts';
import type { Method } from '#shared/eviction/policy.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { NAMESPACE_TERMINATING, refuserOf } from '#shared/kubernetes/http/eviction-refusal.ts';
import { API_REFUSALS } from '#shared/telemetry/metrics.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { byRules, type NodeReader, type NodeView, YOUNG_MS } from './node-reader.ts';
import type { PassPermits } from './pass-permits.ts';
import type { PassScope } from './ports.ts';

/** Maximum time between the server's answer about a node and a delete. */
export const NODE_MAX_AGE_MS = 250;
/** Maximum time between the check of the rules, in a mark's turn, and the sending of the mark. */
const MARK_MAX_AGE_MS = 250;
/** Maximum looks in one pass at a pod that keeps changing, or whose mark or delete comes too late. */
const MAX_READS = 10;

const GONE: PodOutcome = { kind: 'end', outcome: 'already-gone' };

/** Evicts the pods of one pass, until an error stops it. */
export class PodEvictor {
  readonly #scope: PassScope;
  readonly #reader: NodeReader;
  readonly #permits: PassPermits;
  /** The outcome that stopped the pass early: no further pod is tried. */
  #stopped: PodOutcome | undefined;

  constructor(scope: PassScope, reader: NodeReader, permits: PassPermits) {
    this.#scope = scope;
    this.#reader = reader;
    this.#permits = permits;
  }

  /**
   * Evicts a pod that `found`, a look of this pass, and the current rules evict. Never rejects: an error is an outcome,
   * so that the earlier results are recorded.
   */
  async evict(record: EvictionRecord, pod: LivePod | undefined, found: NodeView): Promise<PodOutcome> {
    if (this.#stopped) return this.#stopped;
    try {
      let verdict = await this.#reader.decide(found, record, pod);
      if (verdict.kind !== 'evict') return verdict;
      if (!pod) return GONE;
      // Pods wait for their turn, and rules change: a pod whose eviction is forbidden by now isn't marked either.
      const current = byRules(found, await this.#reader.rules(found.stored));
      if (current !== found) verdict = await this.#reader.decide(current, record, pod);
      return verdict.kind === 'evict' ? await this.#markAndRemove(record, pod, found, verdict.by) : verdict;
    } catch (error) {
      return this.failed(error, record);
    }
  }

  /** Returns the outcome of an error. An error that doesn't concern the record alone stops the pass. */
  failed(error: unknown, record?: EvictionRecord): PodOutcome {
    const stop = (outcome: PodOutcome): PodOutcome => {
      this.#stopped ??= outcome;
      return outcome;
    };
    if (!(error instanceof ApiError)) return stop({ kind: 'fault', error });
    this.#scope.metrics.put(API_REFUSALS, 1, this.#scope.partition.ref.cluster);
    const failure = { error: error.message, retryAfterSeconds: error.retryAfterSeconds ?? 0 };
    if (record && refuserOf(error) !== 'server') return { kind: 'failed', ...failure };
    return stop({ kind: 'refused', ...failure, unanswered: error.unanswered });
  }

  /**
   * Marks the pod, then deletes it as the mark's answer shows it, or has the Eviction API do both. Both require exactly
   * the pod that was evaluated.
   */
  async #markAndRemove(
    record: EvictionRecord,
    pod: LivePod,
    found: NodeView,
    method: Method['kind'],
  ): Promise<PodOutcome> {
    let means = method;
    let shown = pod;
    let seen = found;
    for (let reads = 0; reads < MAX_READS; reads++) {
      try {
        const isUnmarked = means === 'delete' && !shown.disrupted;
        const marked = isUnmarked ? await this.#mark(record, shown, seen) : shown;
        if (!marked && this.#stopped) return this.#stopped;
        shown = marked ?? shown;
        // A delete that was late needs all the time that a look allows.
        const view = await this.#reader.recent(reads === 0 ? YOUNG_MS : 0);
        const verdict = await this.#reader.decide(view, record, shown);
        if (verdict.kind !== 'evict') return verdict;
        // The mark was late, or the node has gone down: then the pod must be marked first, as this look confirms.
        if (!marked || verdict.by !== means) {
          means = verdict.by;
          seen = view;
          continue;
        }
        const permitted = await this.#permits.until(view, record, shown, verdict);
        if (typeof permitted === 'object') return permitted;
        const notAfter = Math.min(view.answeredAt + NODE_MAX_AGE_MS, permitted);
        const remove = this.#remove.bind(this, record, shown, verdict, notAfter);
        return await this.#permits.spend(record, verdict, notAfter, remove);
      } catch (error) {
        // Nothing was sent: look at the node again.
        if (error instanceof LateCallError) continue;
        // A webhook may reject with any status.
        if (!(error instanceof ApiError) || refuserOf(error) !== 'other') throw error;
        if (means === 'evict' && error.causes.includes(NAMESPACE_TERMINATING)) {
          this.#reader.sawTerminating(record.namespace);
          continue;
        }
        if (![404, 409].includes(error.status)) throw error;
        // 404, or a failed precondition: another pod has its name, or the pod changed since it was evaluated.
        if (error.status === 404 && means === 'delete') return GONE;
        const changed = await this.#scope.api.getPod(record);
        if (changed?.uid !== record.uid) return GONE;
        shown = changed;
      }
    }
    const error = `the pod or its node changed, or the call was late, ${MAX_READS} times while it was to be deleted`;
    return { kind: 'failed', error, retryAfterSeconds: 0 };
  }

  /**
   * Marks a pod; `undefined`: when its turn came, the rules forbade it, or it was too late. Marks wait for seconds if a
   * server is slow, and must not continue after a stop. An old look doesn't matter: another one precedes the delete.
   */
  async #mark(record: EvictionRecord, pod: LivePod, found: NodeView): Promise<LivePod | undefined> {
    const { api, clock } = this.#scope;
    const sentBy = async (): Promise<EpochMs> => {
      const now = clock.now();
      const current = byRules(found, await this.#reader.rules(found.stored));
      if (current !== found) {
        const verdict = current.verdict(record, pod);
        if (verdict.kind !== 'evict' || verdict.by !== 'delete')
          throw new LateCallError('the rules changed while the mark was waiting');
      }
      return now + MARK_MAX_AGE_MS;
    };
    try {
      return await api.markDisrupted(pod, record.uid, clock.now(), sentBy);
    } catch (error) {
      if (error instanceof LateCallError) return undefined;
      throw error;
    }
  }

  async #remove(
    record: EvictionRecord,
    { uid, resourceVersion, moving }: LivePod,
    { by: means, lease }: Evict,
    notAfter: EpochMs,
  ): Promise<PodOutcome> {
    const { api, clock } = this.#scope;
    const judged = { uid, resourceVersion };
    switch (means) {
      case 'delete':
        await api.deletePod(record, judged, notAfter);
        break;
      case 'evict': {
        const answer = await api.evictPod(record, judged, notAfter);
        if (answer.kind === 'evicted') break;
        const blocker = answer.by === 'admission' ? { by: answer.by } : {};
        const reason = moving ? `${BEING_MOVED} ${answer.reason}` : answer.reason;
        return { kind: 'blocked', block: { ...blocker, reason } };
      }
      default:
        means satisfies never;
    }
    const delayMs = Math.max(0, clock.now() - record.dueAt);
    return { kind: 'deleted', delayMs, ...(lease === undefined || lease === 'unread' ? {} : { lease }) };
  }
}
