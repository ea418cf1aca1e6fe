import type { Evict } from '#shared/eviction/evaluate.ts';
import type { PodUid } from '#shared/eviction/identity.ts';
import type { PodOutcome } from '#shared/eviction/outcome.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { RATE_PERMIT_LASTS_MS } from '#shared/eviction/rate.ts';
import { drainsOnRelease, type EvictionRecord } from '#shared/eviction/records.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { LateCallError } from '#shared/kubernetes/http/api-error.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { evictionOf, type FirstView, type NodeView } from './node-reader.ts';
import type { PassScope } from './ports.ts';
import { limitingWorkload, type PermitAnswer, takePermits } from './take-permits.ts';

/** Due pods that may not be evicted in this pass, each with its outcome. */
type Withheld = ReadonlyMap<PodUid, PodOutcome>;

interface RatePermit {
  readonly until: EpochMs;
  /** The rules whose policy sets the rates. A permit isn't valid under another revision of the policy. */
  readonly rules: Rules;
}

const NO_LIMIT: PermitAnswer = { kind: 'permitted', until: Infinity };

/** Decides which evictions of one pass may be sent now: by the limits of workloads, and by the cluster's rates. */
export class PassPermits {
  readonly #scope: PassScope;
  /** Absent answer: the pod needs no permit of its workload, or has yet to ask. */
  #byWorkload: ReadonlyMap<PodUid, PermitAnswer> = new Map();
  readonly #byRate = new Map<PodUid, RatePermit>();

  constructor(scope: PassScope) {
    this.#scope = scope;
  }

  /** Takes permits for the pods that a workload's limit concerns. Rejects as {@link takePermits}: none has one then. */
  async takeByWorkload(due: readonly EvictionRecord[], first: FirstView): Promise<Withheld> {
    this.#byWorkload = await takePermits(due, first, this.#scope);
    return new Map(
      [...this.#byWorkload].flatMap(([uid, answer]) => (answer.kind === 'permitted' ? [] : [[uid, answer]])),
    );
  }

  /** Takes permits for the pods to which a rate applies. Rejects with `StoreError`. */
  takeByRate(due: readonly EvictionRecord[], { view, pods }: FirstView): Promise<Withheld> {
    const asking = due.filter((record) => {
      const found = isPaced(view.rules, record) && evictionOf(view.verdict(record, pods.get(record.uid)));
      return found && !found.unlimited && found.lease !== 'unread';
    });
    // Pods that the Eviction API rejected must not take permits from pods that it may evict.
    const rank = ({ blocked }: EvictionRecord) => (blocked === undefined ? 0 : 1);
    const inOrder = asking.toSorted((a, b) => rank(a) - rank(b));
    return this.#askRates(inOrder, view.rules);
  }

  /**
   * Resolves with the time until which a pod's permits allow its deletion, or with its outcome if they don't. Replaces
   * a rate permit that expired or that another policy gave: else no permit would last if each answer takes seconds.
   */
  async until(
    { rules }: NodeView,
    record: EvictionRecord,
    pod: LivePod,
    { unlimited }: Evict,
  ): Promise<EpochMs | PodOutcome> {
    if (unlimited) return Infinity;
    const { clock } = this.#scope;
    const { uid } = record;
    const answer = limitingWorkload(rules, pod) ? this.#byWorkload.get(uid) : NO_LIMIT;
    // The permit expired while the server was slow, or the limit is new: the next pass requests a permit.
    if (answer?.kind !== 'permitted' || answer.until < clock.now()) return { kind: 'behind' };
    if (!isPaced(rules, record)) return answer.until;
    const permit = this.#byRate.get(uid);
    if (!permit || permit.rules.policyRevision !== rules.policyRevision || permit.until < clock.now()) {
      const outcome = (await this.#askRates([record], rules)).get(uid);
      if (outcome) return outcome;
    }
    return Math.min(answer.until, this.#byRate.get(uid)?.until ?? -Infinity);
  }

  /** A rate permit counts from the time at which the delete may have been sent, and serves no other one. */
  async spend(
    record: EvictionRecord,
    { unlimited }: Evict,
    notAfter: EpochMs,
    send: () => Promise<PodOutcome>,
  ): Promise<PodOutcome> {
    const permit = unlimited ? undefined : this.#byRate.get(record.uid);
    if (!permit) return send();
    const { rates, clock, partition } = this.#scope;
    const sent = { uid: record.uid, drains: drainsOnRelease(record) };
    const count = (sentBy?: EpochMs) =>
      rates.sent?.(partition.ref.cluster, sent, permit.rules.policy, clock.now(), sentBy);
    count(notAfter);
    this.#byRate.delete(record.uid);
    try {
      return await send();
    } catch (error) {
      if (error instanceof LateCallError) this.#byRate.set(record.uid, permit);
      throw error;
    } finally {
      if (clock.now() < notAfter) count();
    }
  }

  async #askRates(records: readonly EvictionRecord[], rules: Rules): Promise<Withheld> {
    if (records.length === 0) return new Map();
    const { rates, clock, partition } = this.#scope;
    const now = clock.now();
    const { node, ref } = partition;
    const pods = records.map((record) => ({
      uid: record.uid,
      drains: drainsOnRelease(record),
      inTurn: isInTurn(record) || (node?.retry ?? node?.outage) !== undefined,
    }));
    const turns = await rates.take(ref.cluster, pods, rules.policy, now);
    return new Map(
      records.flatMap(({ uid }, index) => {
        const turn = turns[index];
        if (turn) return [[uid, { kind: 'waiting', turn }]];
        this.#byRate.set(uid, { until: now + RATE_PERMIT_LASTS_MS, rules });
        return [];
      }),
    );
  }
}

/** Without a rate, a pod that was never held needs none. */
const isPaced = ({ policy }: Rules, record: EvictionRecord): boolean =>
  policy.evictionRate !== undefined || drainsOnRelease(record);

const isInTurn = ({ turnAt, notBefore, drains }: EvictionRecord): boolean =>
  turnAt !== undefined || (drains === true && notBefore !== undefined);
