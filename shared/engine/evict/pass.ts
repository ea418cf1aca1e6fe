import pMap from 'p-map';
import { BEING_MOVED } from '#shared/eviction/budget.ts';
import {
  type Evict,
  type EvictionDecision,
  evaluate,
  type NodeObservation,
} from '#shared/eviction/evaluate.ts';
import { asksLease, clusterGate, isObserved, storedGate } from '#shared/eviction/gate.ts';
import type { PodUid } from '#shared/eviction/identity.ts';
import { type NodeLife, nodeLife } from '#shared/eviction/node-life.ts';
import type { PodOutcome, Settled } from '#shared/eviction/outcome.ts';
import type { Method, Rules } from '#shared/eviction/policy.ts';
import { type Pace, RATE_PERMIT_LASTS_MS, type Turn } from '#shared/eviction/rate.ts';
import {
  drainsOnRelease,
  type EvictionRecord,
  heldRecord,
  type NodeState,
  type Partition,
} from '#shared/eviction/records.ts';
import type { KubernetesApi, LivePod } from '#shared/kubernetes/api.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { NAMESPACE_TERMINATING, refuserOf } from '#shared/kubernetes/http/eviction-refusal.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { evictionRef } from '#shared/telemetry/log-events.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PassDeps } from './ports.ts';
import { limitingWorkload, type PermitAnswer, takePermits } from './take-permits.ts';

export const PARALLEL_EVICTIONS = 32;
/** Maximum time between the server's answer about a node and a delete: taints come and go. */
export const NODE_MAX_AGE_MS = 250;
/** Maximum time between the check of the rules, in a mark's turn, and the sending of the mark. */
const MARK_MAX_AGE_MS = 250;
/** Maximum looks in one pass at a pod that keeps changing, or whose delete comes too late. */
const MAX_READS = 10;
/** Maximum age of a node's Lease: kubelets renew theirs as often, and most passes end sooner. */
export const LEASE_MAX_AGE_MS = 10_000;

interface NodeView {
  readonly observation: NodeObservation;
  readonly stored: NodeState | undefined;
  /** When the server's answer arrived. The stored state may have taken longer. */
  readonly answeredAt: EpochMs;
  readonly rules: Rules;
  readonly verdict: ReturnType<typeof evaluate>;
}

interface RatePermit {
  readonly until: EpochMs;
  /** Revision of the policy that sets `pace`. A permit isn't valid under another revision. */
  readonly revision: number;
  readonly pace: Pace;
}

const GONE: PodOutcome = { kind: 'end', outcome: 'already-gone' };

/** One pass over a node's due pods: acts on the cluster, and reports the outcome of each pod. */
export class Pass {
  readonly #partition: Partition;
  readonly #api: KubernetesApi;
  readonly #deps: PassDeps;
  /** The outcome that stopped the pass early: no further pod is tried. */
  #stopped: PodOutcome | undefined;
  #lastRead: Promise<unknown> = Promise.resolve();
  #nextRead: Promise<NodeView> | undefined;
  /** Absent outcome: the pod needs no permit, or has yet to ask. */
  #permissions: ReadonlyMap<PodUid, PermitAnswer> = new Map();
  readonly #ratePermits = new Map<PodUid, RatePermit>();
  readonly #terminatingNamespaces = new Set<string>();
  #lease: { readonly requestedAt: EpochMs; readonly life: Promise<NodeLife> } | undefined;

  constructor(partition: Partition, api: KubernetesApi, deps: PassDeps) {
    this.#partition = partition;
    this.#api = api;
    this.#deps = deps;
  }

  /** Resolves with the outcome of each due pod, in the order in which they settled. */
  async run(due: readonly EvictionRecord[]): Promise<readonly Settled[]> {
    let first: NodeView;
    let pods: ReadonlyMap<PodUid, LivePod>;
    try {
      // A server that counts as unreachable gets a single request: a second one would be rejected, and fail the pass.
      const isInReach = !this.#api.breakerOpen;
      const reading = this.#readNodeNow(this.#partition, isInReach ? this.#foreseenLife(due) : undefined);
      if (!isInReach) await reading;
      const [view, found] = await Promise.all([reading, this.#api.podsOnNode(this.#partition.ref.node, due)]);
      pods = new Map(found.map((pod) => [pod.uid, pod]));
      first = await this.#withLife(view, due, pods);
    } catch (error) {
      const outcome = this.#wentWrong(error);
      return this.#holdUnseen(due.map((record) => ({ record, outcome })));
    }
    await this.#takePermits(due, pods, first);
    const mayGo = due.filter(({ uid }) => this.#heldOf(uid) === undefined);
    const turns = await this.#takeRatePermits(mayGo, pods, first);
    const settled: Settled[] = [];
    const settle = async (record: EvictionRecord) => {
      const turn = turns.get(record.uid);
      const outcome = turn
        ? { kind: 'waiting' as const, turn }
        : (this.#heldOf(record.uid) ?? (await this.#handle(record, pods.get(record.uid), first)));
      this.#report(record, outcome);
      settled.push({ record, outcome });
    };
    await pMap(due, settle, { concurrency: PARALLEL_EVICTIONS });
    return this.#holdUnseen(settled);
  }

  async #takePermits(
    due: readonly EvictionRecord[],
    pods: ReadonlyMap<PodUid, LivePod>,
    { rules, verdict }: NodeView,
  ): Promise<void> {
    const asking = due.flatMap((record) => {
      const pod = pods.get(record.uid);
      const workload = pod && limitingWorkload(rules, pod);
      if (!workload) return [];
      const found = evictionOf(verdict(record, pod));
      return found && !found.unlimited ? { record, pod, workload } : [];
    });
    if (asking.length === 0) return;
    const { cluster } = this.#partition.ref;
    try {
      this.#permissions = await takePermits(asking, { ...this.#deps, cluster, api: this.#api, rules });
    } catch (error) {
      this.#wentWrong(error);
    }
  }

  #heldOf(uid: PodUid): PodOutcome | undefined {
    const permission = this.#permissions.get(uid);
    return permission?.kind === 'permitted' ? undefined : permission;
  }

  /** Returns the time until which a pod's permit allows its deletion; a time in the past means that it has none. */
  #permittedTo({ rules }: NodeView, pod: LivePod, { unlimited }: Evict): EpochMs {
    if (unlimited || !limitingWorkload(rules, pod)) return Infinity;
    const permission = this.#permissions.get(pod.uid);
    return permission?.kind === 'permitted' ? permission.until : -Infinity;
  }

  async #takeRatePermits(
    due: readonly EvictionRecord[],
    pods: ReadonlyMap<PodUid, LivePod>,
    { rules, verdict }: NodeView,
  ): Promise<ReadonlyMap<PodUid, Turn>> {
    const asking = due.filter((record) => {
      const found = isPaced(rules, record) && evictionOf(verdict(record, pods.get(record.uid)));
      return found && !found.unlimited && found.lease !== 'unread';
    });
    // Pods that the Eviction API rejected must not take permits from pods that it may evict.
    const [others = [], blocked = []] = [false, true].map((is) =>
      asking.filter((record) => (record.blocked !== undefined) === is),
    );
    try {
      return await this.#askRates([...others, ...blocked], rules);
    } catch (error) {
      this.#stopped = { kind: 'fault', error };
      return new Map();
    }
  }

  async #askRates(
    records: readonly EvictionRecord[],
    { policy, policyRevision: revision }: Rules,
  ): Promise<ReadonlyMap<PodUid, Turn>> {
    if (records.length === 0) return new Map();
    const { rates, clock } = this.#deps;
    const now = clock.now();
    const { node, ref } = this.#partition;
    const pods = records.map((record) => ({
      uid: record.uid,
      drains: drainsOnRelease(record),
      inTurn: isInTurn(record) || (node?.retry ?? node?.outage) !== undefined,
    }));
    const turns = await rates.take(ref.cluster, pods, policy, now);
    return new Map(
      records.flatMap(({ uid }, index) => {
        const turn = turns[index];
        if (turn) return [[uid, turn] as const];
        this.#ratePermits.set(uid, { until: now + RATE_PERMIT_LASTS_MS, revision, pace: policy });
        return [];
      }),
    );
  }

  /**
   * Resolves with the time until which the cluster's rates allow a pod's deletion, or with its turn. Replaces a permit
   * that expired or that another policy gave: else no permit would last if each answer takes seconds.
   */
  async #rateOf({ rules }: NodeView, record: EvictionRecord, { unlimited }: Evict): Promise<EpochMs | Turn> {
    if (unlimited || !isPaced(rules, record)) return Infinity;
    const counts = (permit: RatePermit | undefined): permit is RatePermit =>
      permit !== undefined &&
      permit.revision === rules.policyRevision &&
      permit.until >= this.#deps.clock.now();
    const { uid } = record;
    const permit = this.#ratePermits.get(uid);
    if (counts(permit)) return permit.until;
    const turn = (await this.#askRates([record], rules)).get(uid);
    return turn ?? this.#ratePermits.get(uid)?.until ?? -Infinity;
  }

  /**
   * A held pod's time doesn't count toward its failure: pods of an unreadable cluster that may not be evicted are held.
   */
  async #holdUnseen(settled: readonly Settled[]): Promise<readonly Settled[]> {
    if (!settled.some(({ outcome }) => outcome.kind === 'refused')) return settled;
    const now = this.#deps.clock.now();
    const { ref, node } = this.#partition;
    const rules = await this.#deps.rules(ref.cluster);
    const gate = clusterGate(rules, now);
    if (!gate) return settled;
    return settled.map((each): Settled => {
      if (!['refused', 'failed', 'blocked'].includes(each.outcome.kind)) return each;
      // In observe mode, it is unknown whether the pod would be evicted unless a stored gate holds it.
      const by = isObserved(rules) ? storedGate(rules, { ...node, node: ref.node }, each.record, now) : gate;
      if (!by || by.kind === 'observe') return each;
      return { ...each, outcome: { kind: 'hold', record: heldRecord(each.record, { by, since: now }) } };
    });
  }

  /** Never rejects: an error is an outcome, so that the earlier results are recorded. */
  async #handle(record: EvictionRecord, pod: LivePod | undefined, view: NodeView): Promise<PodOutcome> {
    if (this.#stopped) return this.#stopped;
    try {
      const verdict = await this.#verdict(view, record, pod);
      return verdict.kind === 'evict' ? await this.#evict(record, pod, view, verdict.by) : verdict;
    } catch (error) {
      return this.#wentWrong(error, record);
    }
  }

  /** An error that doesn't concern the record alone stops the pass. */
  #wentWrong(error: unknown, record?: EvictionRecord): PodOutcome {
    const stop = (outcome: PodOutcome): PodOutcome => {
      this.#stopped ??= outcome;
      return outcome;
    };
    if (!(error instanceof ApiError)) return stop({ kind: 'fault', error });
    this.#deps.metrics.requestRefused(this.#partition.ref.cluster);
    const failure = { error: error.message, retryAfterSeconds: error.retryAfterSeconds ?? 0 };
    if (record && refuserOf(error) !== 'server') return { kind: 'failed', ...failure };
    return stop({ kind: 'refused', ...failure, unanswered: error.unanswered });
  }

  /**
   * Marks the pod, then deletes it as the mark's answer shows it, or has the Eviction API do both. Both require exactly
   * the pod that was evaluated.
   */
  async #evict(
    record: EvictionRecord,
    pod: LivePod | undefined,
    found: NodeView,
    by: Method['kind'],
  ): Promise<PodOutcome> {
    if (!pod) return GONE;
    let means = by;
    // Pods wait for their turn, and rules change: a pod whose eviction is forbidden by now isn't marked either.
    const rules = await this.#deps.rules(this.#partition.ref.cluster, found.stored?.guardRevision);
    if (rules !== found.rules) {
      const verdict = await this.#verdict(judgedBy({ ...found, rules }), record, pod);
      if (verdict.kind !== 'evict') return verdict;
      means = verdict.by;
    }
    let shown: LivePod | undefined = pod;
    for (let reads = 0; reads < MAX_READS; reads++) {
      try {
        // Mark before the delete: otherwise, a Job's podFailurePolicy counts the pod as failed (KEP-3329).
        if (means === 'delete' && !shown.disrupted) {
          const marked = await this.#mark(record, shown, found);
          // The current rules may forbid the eviction.
          if (!marked) return await this.#handle(record, shown, found);
          shown = marked;
        }
        const view = await this.#readNode();
        const verdict = await this.#verdict(view, record, shown);
        if (verdict.kind !== 'evict') return verdict;
        // The node may have gone down meanwhile: then the pod must be marked first.
        if (verdict.by !== means) {
          means = verdict.by;
          continue;
        }
        const permittedTo = this.#permittedTo(view, shown, verdict);
        // The permit expired while the server was slow, or the limit is new: the next pass requests a permit.
        if (permittedTo < this.#deps.clock.now()) return { kind: 'behind' };
        const pacedTo = await this.#rateOf(view, record, verdict);
        if (typeof pacedTo === 'object') return { kind: 'waiting', turn: pacedTo };
        const notAfter = Math.min(view.answeredAt + NODE_MAX_AGE_MS, permittedTo, pacedTo);
        return await this.#removeAtRate(record, shown, verdict, notAfter);
      } catch (error) {
        // Nothing was sent: look at the node again.
        if (error instanceof LateCallError) continue;
        // A webhook may reject with any status.
        if (!(error instanceof ApiError) || refuserOf(error) !== 'other') throw error;
        if (means === 'evict' && error.causes.includes(NAMESPACE_TERMINATING)) {
          this.#terminatingNamespaces.add(record.namespace);
          continue;
        }
        if (![404, 409].includes(error.status)) throw error;
        // 404, or a failed precondition: another pod has its name, or the pod changed since it was evaluated.
        shown = error.status === 404 && means === 'delete' ? undefined : await this.#api.getPod(record);
        if (shown?.uid !== record.uid) return GONE;
      }
    }
    const error = `the pod or its node changed ${MAX_READS} times while it was to be deleted`;
    return { kind: 'failed', error, retryAfterSeconds: 0 };
  }

  /**
   * Marks a pod; `undefined`: when its turn came, the rules forbade it, or it was too late. Marks wait for seconds if a
   * server is slow, and must not continue after a stop. An old look doesn't matter: another one precedes the delete.
   */
  async #mark(record: EvictionRecord, pod: LivePod, found: NodeView): Promise<LivePod | undefined> {
    try {
      return await this.#api.markDisrupted(pod, record.uid, this.#deps.clock.now(), () =>
        this.#markedBy(record, pod, found),
      );
    } catch (error) {
      if (error instanceof LateCallError) return undefined;
      throw error;
    }
  }

  /** Rejects with `LateCallError` if the current rules don't allow the pod's deletion. */
  async #markedBy(record: EvictionRecord, pod: LivePod, found: NodeView): Promise<EpochMs> {
    const now = this.#deps.clock.now();
    const rules = await this.#deps.rules(this.#partition.ref.cluster, found.stored?.guardRevision);
    if (rules !== found.rules) {
      const verdict = evaluate(found.stored, found.observation, rules)(record, pod);
      if (verdict.kind !== 'evict' || verdict.by !== 'delete')
        throw new LateCallError('the rules changed while the mark was waiting');
    }
    return now + MARK_MAX_AGE_MS;
  }

  /** A permit counts from the time at which the delete may have been sent, and serves no other one. */
  async #removeAtRate(
    record: EvictionRecord,
    pod: LivePod,
    verdict: Evict,
    notAfter: EpochMs,
  ): Promise<PodOutcome> {
    const { rates, clock } = this.#deps;
    const permit = verdict.unlimited ? undefined : this.#ratePermits.get(record.uid);
    if (!permit) return this.#remove(record, pod, verdict, notAfter);
    const sent = { uid: record.uid, drains: drainsOnRelease(record) };
    const count = (sentBy?: EpochMs) =>
      rates.sent?.(this.#partition.ref.cluster, sent, permit.pace, clock.now(), sentBy);
    count(notAfter);
    this.#ratePermits.delete(record.uid);
    try {
      return await this.#remove(record, pod, verdict, notAfter);
    } catch (error) {
      if (error instanceof LateCallError) this.#ratePermits.set(record.uid, permit);
      throw error;
    } finally {
      if (clock.now() < notAfter) count();
    }
  }

  async #remove(
    record: EvictionRecord,
    { uid, resourceVersion, moving }: LivePod,
    { by: means, lease }: Evict,
    notAfter: EpochMs,
  ): Promise<PodOutcome> {
    const judged = { uid, resourceVersion };
    switch (means) {
      case 'delete':
        await this.#api.deletePod(record, judged, notAfter);
        break;
      case 'evict': {
        const answer = await this.#api.evictPod(record, judged, notAfter);
        if (answer.kind === 'evicted') break;
        const by = answer.by === 'admission' ? { by: answer.by } : {};
        const reason = moving ? `${BEING_MOVED} ${answer.reason}` : answer.reason;
        return { kind: 'blocked', block: { ...by, reason } };
      }
      default:
        means satisfies never;
    }
    const delayMs = Math.max(0, this.#deps.clock.now() - record.dueAt);
    return { kind: 'deleted', delayMs, ...(lease === undefined || lease === 'unread' ? {} : { lease }) };
  }

  #report(record: EvictionRecord, outcome: PodOutcome): void {
    const { metrics, log } = this.#deps;
    const { ref } = this.#partition;
    if (outcome.kind === 'deleted') {
      const { kind: _kind, delayMs, ...lease } = outcome;
      metrics.podDeleted(ref.cluster, delayMs / 1000);
      log.info('pod.evicted', { ...evictionRef(ref, record), delayMs, ...lease });
    } else if (outcome.kind === 'end') {
      const event = outcome.outcome === 'would-evict' ? 'eviction.would-evict' : 'pod.already-gone';
      log.info(event, evictionRef(ref, record));
    }
  }

  /** Looks at the node, beginning no earlier than now; one look serves all callers that ask before it begins. */
  #readNode(): Promise<NodeView> {
    this.#nextRead ??= this.#lastRead.then(() => {
      this.#nextRead = undefined;
      const read = this.#readNodeNow();
      this.#lastRead = read.catch(() => undefined);
      return read;
    });
    return this.#nextRead;
  }

  /**
   * Reads the stored state again, unless `loaded` just now: a delta may have reported since that a taint came back, or
   * that a deleted node had lost its taints.
   */
  async #readNodeNow(loaded?: Partition, foreseen?: Promise<NodeLife | undefined>): Promise<NodeView> {
    const { store, clock } = this.#deps;
    const { ref } = this.#partition;
    const at = clock.now();
    const answering = this.#api.getNode(ref.node).then((live) => ({ live, answeredAt: clock.now() }));
    const loading = loaded ?? store.load(ref, at, []);
    const asking = foreseen ?? (this.#lease && this.#life().catch(() => undefined));
    const [{ live, answeredAt }, { node: stored }, life] = await Promise.all([answering, loading, asking]);
    const { taints, taintsStamp, zone } = live ?? {};
    const { skews } = this.#api;
    const terminatingNamespaces = this.#terminatingNamespaces;
    const observation = { node: ref.node, at, taints, taintsStamp, zone, life, skews, terminatingNamespaces };
    // Read the rules last: a server may take longer than rules stay valid.
    const rules = await this.#deps.rules(ref.cluster, stored?.guardRevision);
    return judgedBy({ observation, stored, answeredAt, rules });
  }

  /**
   * Reads the Lease along with the node if a pod is due because the node is unreachable. An error recurs for its user.
   */
  async #foreseenLife(due: readonly EvictionRecord[]): Promise<NodeLife | undefined> {
    const isUnreachable = ({ causes }: EvictionRecord) =>
      causes.some(({ taint }) => taint.key === NODE_UNREACHABLE);
    if (!due.some(isUnreachable)) return undefined;
    try {
      const rules = await this.#deps.rules(this.#partition.ref.cluster);
      const decides = asksLease(rules) && (isObserved(rules) || !clusterGate(rules, this.#deps.clock.now()));
      return decides ? await this.#life() : undefined;
    } catch {
      return undefined;
    }
  }

  async #withLife(
    view: NodeView,
    due: readonly EvictionRecord[],
    pods: ReadonlyMap<PodUid, LivePod>,
  ): Promise<NodeView> {
    if (!due.some((record) => isUnread(view.verdict(record, pods.get(record.uid))))) return view;
    const life = await this.#life().catch(() => undefined);
    return life ? judgedWithLife(view, { life }) : view;
  }

  async #verdict(
    view: NodeView,
    record: EvictionRecord,
    pod: LivePod | undefined,
  ): Promise<EvictionDecision> {
    const verdict = view.verdict(record, pod);
    if (!isUnread(verdict)) return verdict;
    const later = judgedWithLife(view, { life: await this.#life() }).verdict(record, pod);
    return isUnread(later) ? { kind: 'behind' } : later;
  }

  /** Reads the Lease once, and again in a pass that takes long. Rejects with `ApiError`. */
  #life(): Promise<NodeLife> {
    const { clock } = this.#deps;
    const requestedAt = clock.now();
    if (this.#lease && requestedAt - this.#lease.requestedAt <= LEASE_MAX_AGE_MS) return this.#lease.life;
    const life = this.#api.getNodeLease(this.#partition.ref.node).then(
      (lease) => nodeLife(lease, clock.now()),
      (error: unknown): NodeLife => {
        // Without the permission, pods are evicted as if policy didn't ask for the Lease.
        if (error instanceof ApiError && error.status === 403) return { kind: 'lapsed', because: 'hidden' };
        throw error;
      },
    );
    this.#lease = { requestedAt, life };
    return life;
  }
}

/** Without a rate, a pod that was never held needs none. */
const isPaced = ({ policy }: Rules, record: EvictionRecord): boolean =>
  policy.evictionRate !== undefined || drainsOnRelease(record);

const isInTurn = ({ turnAt, notBefore, drains }: EvictionRecord): boolean =>
  turnAt !== undefined || (drains === true && notBefore !== undefined);

const isUnread = (verdict: EvictionDecision): boolean => evictionOf(verdict)?.lease === 'unread';

/** A pod that only observe mode holds is paced like one that is evicted. */
const evictionOf = (verdict: EvictionDecision): Evict | undefined =>
  verdict.kind === 'evict' ? verdict : verdict.kind === 'hold' ? verdict.would : undefined;

function judgedBy(view: Omit<NodeView, 'verdict'>): NodeView {
  return { ...view, verdict: evaluate(view.stored, view.observation, view.rules) };
}

const judgedWithLife = (view: NodeView, more: Pick<NodeObservation, 'life'>): NodeView =>
  judgedBy({ ...view, observation: { ...view.observation, ...more } });
