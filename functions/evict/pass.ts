import pMap from 'p-map';
import type { RateLimiter } from '#shared/clusters/rate-limiter.ts';
import type { RulesReader } from '#shared/clusters/rulebook.ts';
import { asksLease, wholeBrake } from '#shared/eviction/brake.ts';
import { BEING_MOVED } from '#shared/eviction/budget.ts';
import type { EpochMs, PodUid } from '#shared/eviction/identity.ts';
import { judge, type NodeLook, type Verdict } from '#shared/eviction/judge.ts';
import { type Lapse, type NodeLife, nodeLife } from '#shared/eviction/node-life.ts';
import type { Method, Rules } from '#shared/eviction/policy.ts';
import { askAgainAt, hasTurn } from '#shared/eviction/rate.ts';
import {
  type Block,
  type CancelReason,
  type Ending,
  type EvictionRecord,
  ending,
  type NodeState,
  type Partition,
} from '#shared/eviction/records.ts';
import type { KubernetesApi, LivePod, PodEvent } from '#shared/kubernetes/api.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/api-error.ts';
import { refuserOf } from '#shared/kubernetes/eviction-refusal.ts';
import type { Store } from '#shared/store/store.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { evictionRef } from '#shared/telemetry/log-events.ts';
import type { EvictionMetrics } from '#shared/telemetry/metrics.ts';
import type { Clock } from '#shared/time/clock.ts';
import { markingForDeletion } from './events.ts';
import { SingleFlight } from './single-flight.ts';

/** Pods of one node that are evicted at a time. */
const PARALLEL_EVICTIONS = 32;
/** A delete is sent so long after the server's answer about its node at the latest: taints come and go. */
export const LOOK_MAX_AGE_MS = 250;
/** A mark is sent so long after the rules allowed it, in its turn, at the latest. */
const MARK_MAX_AGE_MS = 250;
/** How often a pod that keeps changing, or a delete that comes too late, is looked at again in one pass. */
const MAX_LOOKS = 10;
/** What a node's Lease said is believed for so long: as often kubelets renew theirs, and most passes are over before. */
export const LEASE_MAX_AGE_MS = 10_000;

export interface PassDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: EvictionMetrics;
  /** What governs a cluster; with a look's age, at most a second old. */
  readonly rules: RulesReader;
  readonly rates: RateLimiter;
}

/** A look at the node, live and stored, and what decides pods by it. */
interface NodeView {
  readonly look: NodeLook;
  readonly stored: NodeState | undefined;
  /** When the server's answer was there: what is stored may have taken longer. */
  readonly answeredAt: EpochMs;
  /** By which `verdict` decides. */
  readonly rules: Rules;
  readonly verdict: ReturnType<typeof judge>;
}

/** How a pod is to go. */
interface Leave {
  readonly means: Method['kind'];
  readonly notAfter: EpochMs;
  /** Why the node's Lease does not keep it, where that matters. */
  readonly lease: Lapse | 'unread' | undefined;
}

/** One pass over a node's due pods: acts on the cluster, and gathers what is to be recorded. */
export class Pass {
  /** Pods that are gone, and those that were deleted. */
  readonly ends: Ending[] = [];
  readonly cancelled: { readonly record: EvictionRecord; readonly because: CancelReason }[] = [];
  readonly rescheduled: EvictionRecord[] = [];
  /** Those that the rules of the cluster forbid for now. */
  readonly held: EvictionRecord[] = [];
  /** Those that the Eviction API refuses for now, and why. */
  readonly blocked = new Map<PodUid, Block>();
  /** Those that wait for their turn under the rate of the cluster. */
  readonly queued: EvictionRecord[] = [];
  /** When it is the turn of pods, or when they ask for one again. */
  readonly turns = new Map<PodUid, Pick<EvictionRecord, 'turnAt' | 'notBefore'>>();
  readonly failed = new Map<PodUid, string>();
  readonly events: PodEvent[] = [];
  /** The cluster lets nothing (more) be done for now. */
  refusal: ApiError | undefined;
  retryAfterSeconds = 0;
  /** Pods wait for what the relay is about to tell. */
  behind = false;
  /** A fault of ours. */
  fault: unknown;
  readonly #partition: Partition;
  readonly #api: KubernetesApi;
  readonly #deps: PassDeps;
  readonly #looks = new SingleFlight<NodeView>();
  /** The last question after the node's Lease; absent: it did not matter yet. */
  #lease: { readonly askedAt: EpochMs; readonly life: Promise<NodeLife> } | undefined;

  constructor(partition: Partition, api: KubernetesApi, deps: PassDeps) {
    this.#partition = partition;
    this.#api = api;
    this.#deps = deps;
  }

  async run(due: readonly EvictionRecord[]): Promise<void> {
    let first: NodeView;
    let pods: ReadonlyMap<PodUid, LivePod>;
    try {
      // A server that counts as out of reach is asked one question: the second would be refused, and the pass with it.
      const isInReach = !this.#api.breakerOpen;
      const looking = this.#look(this.#partition, isInReach ? this.#foreseenLife(due) : undefined);
      if (!isInReach) await looking;
      const [view, found] = await Promise.all([looking, this.#api.podsOnNode(this.#partition.ref.node, due)]);
      pods = new Map(found.map((pod) => [pod.uid, pod]));
      first = await this.#withLife(view, due, pods);
    } catch (error) {
      this.#refused(error);
      return this.#holdUnseen(due);
    }
    const now = await this.#takeTurns(due, pods, first);
    await pMap(now, (record) => this.#handle(record, pods.get(record.uid), first), {
      concurrency: PARALLEL_EVICTIONS,
    });
    await this.#holdUnseen(due);
  }

  /** Where the cluster has a rate, takes turns for the pods that are to go; returns those of which it is the turn by now. */
  async #takeTurns(
    due: readonly EvictionRecord[],
    pods: ReadonlyMap<PodUid, LivePod>,
    { rules, verdict }: NodeView,
  ): Promise<readonly EvictionRecord[]> {
    const { rate } = rules.policy;
    if (rate === undefined) return due;
    const now = this.#deps.clock.now();
    const asking = due.filter((record) => {
      const found = !hasTurn(record, now) && verdict(record, pods.get(record.uid));
      return found && found.kind === 'evict' && !found.unlimited && found.lease !== 'unread';
    });
    if (asking.length === 0) return due;
    try {
      const turns = await this.#deps.rates.take(this.#partition.ref.cluster, asking.length, rate, now);
      for (const [index, { uid }] of asking.entries()) {
        const turnAt = turns[index];
        this.turns.set(uid, turnAt === undefined ? { notBefore: askAgainAt(now) } : { turnAt });
      }
    } catch (error) {
      this.fault = error;
    }
    const waits = ({ uid }: EvictionRecord) => {
      const { turnAt = Infinity } = this.turns.get(uid) ?? { turnAt: now };
      return turnAt > now;
    };
    this.queued.push(...due.filter(waits).map((record) => ({ ...record, ...this.turns.get(record.uid) })));
    return due.filter((record) => !waits(record));
  }

  /**
   * Where nothing may be evicted anyway, a cluster that cannot be looked at is nobody's failure: what is due is held by
   * its schedule, so that the time does not count until it is given up.
   */
  async #holdUnseen(due: readonly EvictionRecord[]): Promise<void> {
    if (!this.refusal) return;
    const now = this.#deps.clock.now();
    const by = wholeBrake(await this.#deps.rules(this.#partition.ref.cluster), now);
    if (!by) return;
    const settled = new Set(this.settled().map(({ uid }) => uid));
    for (const record of due) {
      if (!settled.has(record.uid)) this.held.push({ ...record, held: { by, since: now } });
    }
    this.refusal = undefined;
  }

  /** Whether the cluster answers no calls at all. */
  get outOfReach(): boolean {
    return this.#api.breakerOpen;
  }

  /** Pods of which it is known what becomes of them. */
  settled(): readonly { readonly uid: PodUid }[] {
    const ended = [...this.ends, ...this.cancelled.map(({ record }) => record)];
    return [...ended, ...this.rescheduled, ...this.held, ...this.queued];
  }

  /** Never rejects: what goes wrong is gathered, so that what happened before it is recorded. */
  async #handle(record: EvictionRecord, pod: LivePod | undefined, view: NodeView): Promise<void> {
    if (this.refusal || this.fault) return;
    try {
      await this.#settle(record, pod, view);
    } catch (error) {
      this.#refused(error, record);
    }
  }

  #refused(error: unknown, record?: EvictionRecord): void {
    if (!(error instanceof ApiError)) {
      this.fault ??= error;
      return;
    }
    this.#deps.metrics.requestRefused(this.#partition.ref.cluster);
    this.retryAfterSeconds = Math.max(this.retryAfterSeconds, error.retryAfterSeconds ?? 0);
    if (record && refuserOf(error) !== 'server') this.failed.set(record.uid, error.message);
    else this.refusal ??= error;
  }

  async #settle(record: EvictionRecord, pod: LivePod | undefined, view: NodeView): Promise<void> {
    const verdict = await this.#verdict(view, record, pod);
    switch (verdict.kind) {
      case 'evict':
        // A verdict to evict is one on a pod that is there.
        if (pod) await this.#evict(record, pod, view, verdict.by);
        break;
      case 'end':
        this.#ended(record, verdict);
        break;
      case 'cancel':
        this.cancelled.push({ record, because: verdict.because });
        break;
      case 'reschedule':
        this.rescheduled.push(verdict.record);
        break;
      case 'hold':
        this.held.push(verdict.record);
        break;
      case 'behind':
        this.behind = true;
        break;
      default:
        verdict satisfies never;
    }
  }

  /**
   * Has a pod go, unless what a later look at the node shows speaks against it: marks and deletes it as the mark's answer
   * shows it, or has the Eviction API do both. Either demands the very pod that was judged.
   */
  async #evict(record: EvictionRecord, pod: LivePod, found: NodeView, by: Method['kind']): Promise<void> {
    let means = by;
    // Pods wait for their turn, and rules change: what is forbidden by now is not marked either.
    const rules = await this.#deps.rules(this.#partition.ref.cluster, found.stored?.guardRevision);
    if (rules !== found.rules) {
      const view = { ...found, rules, verdict: judge(found.stored, found.look, rules) };
      const verdict = await this.#verdict(view, record, pod);
      if (verdict.kind !== 'evict') return this.#settle(record, pod, view);
      means = verdict.by;
    }
    let shown: LivePod | undefined = pod;
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      try {
        // Before the delete, or a Job's podFailurePolicy counts the pod as failed (KEP-3329).
        if (means === 'delete' && !shown.disrupted) {
          const marked = await this.#mark(record, shown, found);
          // By the rules of now it may be forbidden.
          if (!marked) return await this.#handle(record, shown, found);
          shown = marked;
        }
        const view = await this.#look();
        const verdict = await this.#verdict(view, record, shown);
        if (verdict.kind !== 'evict') return await this.#settle(record, shown, view);
        // Its node went down meanwhile, say; then it is to be marked first.
        if (verdict.by !== means) {
          means = verdict.by;
          continue;
        }
        const notAfter = view.answeredAt + LOOK_MAX_AGE_MS;
        return await this.#end(record, shown, { means, notAfter, lease: verdict.lease });
      } catch (error) {
        // Nothing was sent: the node is to be looked at once more.
        if (error instanceof LateCallError) continue;
        // A webhook may refuse by any status.
        if (!(error instanceof ApiError) || refuserOf(error) !== 'other') throw error;
        if (![404, 409].includes(error.status)) throw error;
        // 404, or a precondition failed: another pod has its name, or the pod changed since it was judged.
        shown = error.status === 404 && means === 'delete' ? undefined : await this.#api.getPod(record);
        if (shown?.uid !== record.uid) return this.#ended(record, { outcome: 'gone' });
      }
    }
    this.failed.set(record.uid, `the pod or its node changed ${MAX_LOOKS} times while it was to be deleted`);
  }

  /**
   * Marks a pod; `undefined`: its turn came when the rules allowed that no more, or it could not be sent then. Marks wait for seconds where a
   * server is slow, and must not go on after a stop. The look at the node may grow old: the mark deletes nothing, and before the delete
   * there is another look. Other writes of a pass are asked for by no rules: Events tell of what was done already.
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

  /** Until when a mark may be sent whose turn it is. Rejects with `LateCallError` where the rules of now do not let the pod be deleted. */
  async #markedBy(record: EvictionRecord, pod: LivePod, found: NodeView): Promise<EpochMs> {
    const now = this.#deps.clock.now();
    const rules = await this.#deps.rules(this.#partition.ref.cluster, found.stored?.guardRevision);
    if (rules !== found.rules) {
      const verdict = judge(found.stored, found.look, rules)(record, pod);
      if (verdict.kind !== 'evict' || verdict.by !== 'delete')
        throw new LateCallError('the rules have changed while the mark waited for its turn');
    }
    return now + MARK_MAX_AGE_MS;
  }

  async #end(
    record: EvictionRecord,
    { uid, resourceVersion, moving }: LivePod,
    { means, notAfter, lease }: Leave,
  ): Promise<void> {
    const judged = { uid, resourceVersion };
    switch (means) {
      case 'delete':
        await this.#api.deletePod(record, judged, notAfter);
        return this.#deleted(record, lease);
      case 'evict': {
        const answer = await this.#api.evictPod(record, judged, notAfter);
        if (answer.kind === 'evicted') return this.#deleted(record, lease);
        const by = answer.by === 'admission' ? { by: answer.by } : {};
        const reason = moving ? `${BEING_MOVED} ${answer.reason}` : answer.reason;
        this.blocked.set(uid, { ...by, reason });
        return;
      }
      default:
        means satisfies never;
    }
  }

  /**
   * A look at the node that begins no earlier than now; one look serves all who ask before it begins. What is stored of
   * the node is read with it, unless it was `loaded` just now: since the pass began, a delta may have told that a taint
   * came back, or that a node that is gone had lost its taints before.
   */
  #look(loaded?: Partition, foreseen?: Promise<NodeLife | undefined>): Promise<NodeView> {
    const { store, clock } = this.#deps;
    const { ref } = this.#partition;
    return this.#looks.run(ref.node, async () => {
      const at = clock.now();
      const answering = this.#api.getNode(ref.node).then((live) => ({ live, answeredAt: clock.now() }));
      const loading = loaded ?? store.load(ref, at, []);
      const asking = foreseen ?? (this.#lease && this.#life().catch(() => undefined));
      const [{ live, answeredAt }, { node: stored }, life] = await Promise.all([answering, loading, asking]);
      const { taints, taintsStamp, zone } = live ?? {};
      const look = { node: ref.node, at, taints, taintsStamp, zone, life };
      // Asked for last: a server may take longer than rules are good for.
      const rules = await this.#deps.rules(ref.cluster, stored?.guardRevision);
      return { look, stored, answeredAt, rules, verdict: judge(stored, look, rules) };
    });
  }

  /**
   * Reads the node's Lease beside the node where it is likely to decide: a pod was to go because the node is called unreachable.
   * What goes wrong is met again by whoever needs it.
   */
  async #foreseenLife(due: readonly EvictionRecord[]): Promise<NodeLife | undefined> {
    const isUnreachable = ({ reasons }: EvictionRecord) =>
      reasons.some(({ taint }) => taint.key === NODE_UNREACHABLE);
    if (!due.some(isUnreachable)) return undefined;
    try {
      const rules = await this.#deps.rules(this.#partition.ref.cluster);
      const isAsked = asksLease(rules) && !wholeBrake(rules, this.#deps.clock.now());
      return isAsked ? await this.#life() : undefined;
    } catch {
      return undefined;
    }
  }

  /** The view with what the node's Lease says, if that decides one of the pods that are due and can be read. */
  async #withLife(
    view: NodeView,
    due: readonly EvictionRecord[],
    pods: ReadonlyMap<PodUid, LivePod>,
  ): Promise<NodeView> {
    if (!due.some((record) => isUnread(view.verdict(record, pods.get(record.uid))))) return view;
    const life = await this.#life().catch(() => undefined);
    return life ? lookedAgain(view, { life }) : view;
  }

  /** Decides a pod, once the node's Lease was read where that decides. Rejects with `ApiError` where it cannot be read. */
  async #verdict(view: NodeView, record: EvictionRecord, pod: LivePod | undefined): Promise<Verdict> {
    const verdict = view.verdict(record, pod);
    if (!isUnread(verdict)) return verdict;
    const later = lookedAgain(view, { life: await this.#life() }).verdict(record, pod);
    return isUnread(later) ? { kind: 'behind' } : later;
  }

  /** What the node's Lease says: read once, and again in a pass that takes long. Rejects with `ApiError`. */
  #life(): Promise<NodeLife> {
    const { clock } = this.#deps;
    const askedAt = clock.now();
    if (this.#lease && askedAt - this.#lease.askedAt <= LEASE_MAX_AGE_MS) return this.#lease.life;
    const life = this.#api.getNodeLease(this.#partition.ref.node).then(
      (lease) => nodeLife(lease, clock.now()),
      (error: unknown): NodeLife => {
        // Without the right, pods go as they did before anybody asked.
        if (error instanceof ApiError && error.status === 403) return { kind: 'lapsed', because: 'hidden' };
        throw error;
      },
    );
    this.#lease = { askedAt, life };
    return life;
  }

  #deleted(record: EvictionRecord, lease: Lapse | 'unread' | undefined): void {
    const { clock, metrics, log } = this.#deps;
    const lateMs = Math.max(0, clock.now() - record.fireAt);
    this.ends.push(ending(record, { outcome: 'done', lateMs }, record.version));
    this.events.push(markingForDeletion(record));
    metrics.podDeleted(this.#partition.ref.cluster, lateMs / 1000);
    const why = lease === undefined || lease === 'unread' ? {} : { lease };
    log.info('eviction.done', { ...evictionRef(this.#partition.ref, record), lateMs, ...why });
  }

  #ended(
    record: EvictionRecord,
    { outcome, deleted }: Pick<Extract<Verdict, { kind: 'end' }>, 'outcome' | 'deleted'>,
  ): void {
    this.ends.push(ending(record, { outcome, ...(deleted ? { deleted } : {}) }, record.version));
    const event = outcome === 'would-have' ? 'eviction.would-have' : 'eviction.gone';
    this.#deps.log.info(event, evictionRef(this.#partition.ref, record));
  }
}

/** Whether a pod goes only if the node's Lease has expired, and nobody knows that. */
const isUnread = (verdict: Verdict): boolean => verdict.kind === 'evict' && verdict.lease === 'unread';

/** A view with more of the look. */
function lookedAgain(view: NodeView, more: Pick<NodeLook, 'life'>): NodeView {
  const look = { ...view.look, ...more };
  return { ...view, look, verdict: judge(view.stored, look, view.rules) };
}
