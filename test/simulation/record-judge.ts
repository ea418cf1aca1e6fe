import { isDeepStrictEqual } from 'node:util';
import { QUEUES } from '#shared/aws/queue-set.ts';
import { RESYNC_MS, type Version } from '#shared/eviction/facts.ts';
import {
  type ClusterName,
  type NodeName,
  type NodeRef,
  nodeKey,
  type PodUid,
} from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import type { EvictionRecord, FinalRecord, NodeState } from '#shared/eviction/records.ts';
import { isAnnounced } from '#shared/eviction/records.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { Permits } from '#shared/state/permits.ts';
import { type Commit, ENDED_WINDOW_MS, type Store } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { instead } from './instead.ts';
import type { Accuse, Bench } from './judge.ts';
import type { LiveCluster } from './live-cluster.ts';
import { IDLE_NODE } from './simulated-user.ts';

/** The maximum age of an epoch when it is used, plus the time until the decision is stored. */
const EPOCH_AGE_MS = 7_000;
/** The time that a commit may take if the store fails or another process commits first: the timeout of the message. */
const MESSAGE_MS = 1_000 + QUEUES.nodeDeltas.functionTimeoutSeconds * 1000;
/** The maximum age of a list when its delta is handled. */
const LISTED_MS = 5 * 60_000;
/** The maximum age of a read, for two processes with one clock. */
const READ_AGE_MS = 60_000;

interface Announcement {
  readonly cluster: ClusterName;
  readonly uid: PodUid;
  readonly at: EpochMs;
  /** The beginning of the Event's key. */
  readonly event: string;
}

/** P3, P5 to P7, as far as the stored data shows them. */
export class RecordJudge {
  readonly #bench: Bench;
  readonly #accuse: Accuse;
  /** All records that were ever scheduled and have not ended yet. */
  readonly #scheduled = new Map<PodUid, NodeRef>();
  /** The time when each record was first scheduled. */
  readonly #scheduledAt = new Map<PodUid, EpochMs>();
  readonly #givenUp = new Set<PodUid>();
  readonly #epochs = new Map<ClusterName, { readonly epoch: number; readonly at: EpochMs }[]>();
  /** The Events that are expected. */
  #announced: Announcement[] = [];
  readonly #wrong = new Set<string>();
  /** The version of each scheduled record. */
  readonly #versions = new Map<PodUid, Version>();
  /** The decisions found in loads: a commit without an answer wrote them, if no other commit did. */
  readonly #stored = new Set<string>();
  readonly #turns = new Set<string>();
  /** The turns that pods got, until a message comes at that time. */
  readonly #givenTurns = new Set<string>();
  writes = 0;

  constructor(bench: Bench, accuse: Accuse) {
    this.#bench = bench;
    this.#accuse = accuse;
    bench.storage.onQueried(({ sk }) => {
      const [kind, moment] = sk?.S?.split('#') ?? [];
      const oldest = bench.clock.now() - ENDED_WINDOW_MS - READ_AGE_MS;
      if (kind === 'ENDED' && Number(moment) < oldest)
        this.#once(`a load read what ended long ago (${sk?.S})`);
    });
  }

  isGivenUp(uid: PodUid): boolean {
    return this.#givenUp.has(uid);
  }

  /** Returns the time when a pod's eviction was first scheduled. */
  scheduledAt(uid: PodUid): EpochMs | undefined {
    return this.#scheduledAt.get(uid);
  }

  /**
   * Reports whether a held pod was scheduled for eviction at that time. Concurrent passes may each reserve a turn for a
   * pod, and arm it before one of them stores its turn. Each turn that was given and not stored counts once.
   */
  isTurn(ref: NodeRef, at: EpochMs): boolean {
    const turn = turnOf(ref, at);
    const wasGiven = this.#givenTurns.delete(turn);
    return wasGiven || this.#turns.has(turn);
  }

  leaseTaken(cluster: ClusterName, epoch: number): void {
    const taken = this.#epochs.get(cluster) ?? [];
    this.#epochs.set(cluster, taken);
    taken.push({ epoch, at: this.#bench.clock.now() });
  }

  deleted(cluster: ClusterName, uid: PodUid): void {
    this.#announced.push({ cluster, uid, at: this.#bench.clock.now(), event: `${uid}/marking` });
  }

  watch(store: Store, user: string): Store {
    return {
      load: async (...args) => {
        const found = await store.load(...args);
        for (const { uid, version } of found.scheduled.values()) this.#stored.add(decisionOf(uid, version));
        return found;
      },
      commit: async (ref, revision, change, now) => {
        const answer = await store.commit(ref, revision, change, now);
        if (answer === 'committed') this.#committed(ref, change, user);
        return answer;
      },
      end: async (ref, pods, now) => {
        await store.end(ref, pods, now);
        for (const pod of pods) this.#ended(ref, pod);
      },
      taintedNodes: (cluster) => store.taintedNodes(cluster),
    };
  }

  watchPermits(permits: Permits): Permits {
    return instead(permits, {
      take: async (cluster, pods, limit, now) => {
        const turns = await permits.take(cluster, pods, limit, now);
        if ('workload' in limit) return turns;
        for (const [index, { uid }] of pods.entries()) {
          const { turnAt, notBefore = turnAt } = turns[index] ?? {};
          const ref = this.#scheduled.get(uid);
          if (ref && notBefore !== undefined) this.#givenTurns.add(turnOf(ref, notBefore));
        }
        return turns;
      },
    });
  }

  #committed(ref: NodeRef, { schedule, end }: Commit, user: string): void {
    this.writes += 1;
    if (ref.node === IDLE_NODE) this.#once(`P7: something was written about ${nodeKey(ref)}`);
    const decided = schedule.filter(
      ({ uid, version }) =>
        !isDeepStrictEqual(this.#versions.get(uid), version) && !this.#stored.has(decisionOf(uid, version)),
    );
    for (const record of schedule) {
      this.#scheduled.set(record.uid, ref);
      if (!this.#scheduledAt.has(record.uid)) this.#scheduledAt.set(record.uid, this.#bench.clock.now());
      this.#versions.set(record.uid, record.version);
      for (const turn of [record.notBefore, record.turnAt, record.blocked?.nextTryAt])
        if (turn !== undefined) this.#turns.add(turnOf(ref, turn));
      if (record.gaveUpAt === undefined) this.#givenUp.delete(record.uid);
      else if (!this.#givenUp.has(record.uid)) this.#gaveUp(ref, record.uid);
    }
    for (const pod of end) this.#ended(ref, pod);
    if (user === 'evictionsDue' || user === 'expiry') return;
    const { clock, disturbances } = this.#bench;
    const readAt = clock.now() - EPOCH_AGE_MS;
    const refused = disturbances.excusedUntil(ref.cluster, readAt, ['request']) > disturbances.inTime(readAt);
    const knownAt = refused ? clock.now() - MESSAGE_MS : readAt;
    const fenced = this.#epochs.get(ref.cluster)?.findLast(({ at }) => at < knownAt)?.epoch;
    const announced = [...decided, ...end.filter(({ outcome }) => outcome !== 'already-gone')];
    if (announced.some(({ version }) => version.epoch < (fenced ?? 0))) {
      this.#once(`P5: ${nodeKey(ref)} was decided by a relay that had lost its lease`);
    }
  }

  #ended(ref: NodeRef, ending: FinalRecord): void {
    const { clock } = this.#bench;
    const { uid, outcome } = ending;
    if (this.#scheduled.delete(uid)) this.#bench.tried('P6');
    if (outcome === 'canceled' && isAnnounced(ending, clock.now())) {
      const event = `${uid}/cancelling/`;
      this.#announced.push({ cluster: ref.cluster, uid, at: clock.now(), event });
    }
    if (outcome === 'unregistered') this.#givenUp.add(uid);
    if (outcome === 'canceled' && ending.cancelReason === 'pod-gone') this.#isGone(ref, ending);
  }

  /** P3: a pod that is reported as deleted is deleted. */
  #isGone({ cluster, node }: NodeRef, { uid }: FinalRecord): void {
    const { clock, clusters } = this.#bench;
    const there = clusters.find(({ name }) => name === cluster);
    const pod = there && [...there.livePods.values()].find((each) => each.uid === uid);
    const listedAt = clock.now() - LISTED_MS;
    // A younger pod may be missing in its relay's list, and no relay has data about pods of a deleted node.
    if (!pod || pod.terminating || pod.podSince > listedAt || !there.truth.wasThere(node, listedAt)) return;
    this.#once(`P3: the eviction of ${uid} was canceled as if it had gone`);
  }

  #gaveUp(ref: NodeRef, uid: PodUid): void {
    const { clock, disturbances, storage, queues } = this.#bench;
    this.#givenUp.add(uid);
    const copied = queues.evictionsDue.deadLetters.some(({ body }) => body.includes(uid));
    // Without queues, only the store shows failed evictions.
    if (!copied && !storage.sqlite) this.#once(`P6: ${uid} was given up and is no dead letter`);
    this.#announced.push({ cluster: ref.cluster, uid, at: clock.now(), event: `${uid}/gave-up` });
    const troubledMs = clock.now() - disturbances.troubledSince(ref.cluster, clock.now());
    if (troubledMs < DEFAULT_POLICY.giveUpAfterMs)
      this.#once(`P6: ${uid} was given up after ${troubledMs} ms`);
  }

  async audit(): Promise<void> {
    for (const cluster of this.#bench.clusters) {
      this.#auditEvents(cluster);
      await this.#auditNodes(cluster);
    }
  }

  async judgeEnd(): Promise<void> {
    for (const [uid, ref] of this.#scheduled) {
      const { scheduled, ended } = await this.#load(ref);
      // A process may have crashed between the end and its report.
      if (!scheduled.has(uid) && !ended.has(uid) && !(await this.#bench.storage.hasEnded(ref, uid))) {
        this.#once(`P6: the eviction of ${uid} was dropped in silence`);
      }
    }
  }

  #load(ref: NodeRef) {
    return this.#bench.storage.open.store.load(ref, this.#bench.clock.now());
  }

  #auditEvents({ name, events }: LiveCluster): void {
    const { clock, disturbances } = this.#bench;
    const left: Announcement[] = [];
    for (const announcement of this.#announced) {
      const { cluster, uid, at, event } = announcement;
      if (cluster !== name || disturbances.excusedUntil(cluster, at) > clock.now()) {
        left.push(announcement);
        continue;
      }
      // Events are best effort: after any failure, one may be missing.
      const troubled = disturbances.excusedUntil(cluster, at) > disturbances.inTime(at);
      if (!troubled) this.#bench.tried('P3');
      if (troubled || events.some(({ key }) => key.startsWith(event))) continue;
      this.#once(`P3: there is no Event ${event} of ${uid}`);
    }
    this.#announced = left;
  }

  async #auditNodes(cluster: LiveCluster): Promise<void> {
    const { clock, disturbances, storage } = this.#bench;
    const { name, truth } = cluster;
    const tainted = await Array.fromAsync(storage.open.store.taintedNodes(name));
    const states = new Map<NodeName, NodeState>(tainted.map(({ node, state }) => [node, state]));
    for (const node of truth.states().keys()) {
      const pods = [...cluster.livePods.values()].filter((pod) => pod.node === node && !pod.terminating);
      if (pods.length > 0 && pods.every(({ uid }) => truth.isLost(uid))) continue;
      const changedAt = truth.changedAt(node);
      if (disturbances.excusedUntil(name, changedAt) >= clock.now()) continue;
      this.#bench.tried('P5');
      this.#auditTaints(cluster, node, states.get(node));
      const { scheduled } = await this.#load({ cluster: name, node });
      await this.#auditRecords(cluster, node, pods, scheduled);
    }
  }

  #auditTaints({ name, truth }: LiveCluster, node: NodeName, stored: NodeState | undefined): void {
    const taintsText = (taints: readonly { key: string; value?: string }[]) =>
      taints
        .map(({ key, value = '' }) => `${key}=${value}`)
        .sort()
        .join(' ');
    const real = truth.taintsOf(node);
    if (real === undefined || taintsText(real) === taintsText(stored?.taints ?? [])) return;
    this.#once(
      `P5: ${node} of ${name} has [${taintsText(real)}] and is stored with [${taintsText(stored?.taints ?? [])}]`,
    );
  }

  async #auditRecords(
    { name, truth }: LiveCluster,
    node: NodeName,
    staying: readonly LivePod[],
    scheduled: ReadonlyMap<PodUid, EvictionRecord>,
  ): Promise<void> {
    const { clock, disturbances, storage } = this.#bench;
    const now = clock.now();
    for (const { uid } of staying) {
      const deadline = truth.deadline(uid);
      if (this.#givenUp.has(uid) || truth.isLost(uid)) continue;
      if (deadline === undefined && scheduled.has(uid)) this.#once(`P5: ${uid} is scheduled and may stay`);
      if (deadline !== undefined && deadline > now && !scheduled.has(uid)) {
        this.#once(`P5: ${uid} is to go and not scheduled`);
      }
    }
    // The deletion of a marked pod is not reported immediately, but by the next resync.
    if (disturbances.excusedUntil(name, truth.changedAt(node)) + RESYNC_MS > now) return;
    const uids = new Set(staying.map(({ uid }) => uid));
    for (const uid of scheduled.keys()) {
      // A crash may leave the record of a pod whose end was reported.
      if (uids.has(uid) || (await storage.hasEnded({ cluster: name, node }, uid))) continue;
      this.#once(`P5: ${uid} is scheduled and is gone`);
    }
  }

  #once(what: string): void {
    if (this.#wrong.has(what)) return;
    this.#wrong.add(what);
    this.#accuse(what);
  }
}

const decisionOf = (uid: PodUid, { epoch, sequence }: Version): string => `${uid} ${epoch}.${sequence}`;

const turnOf = (ref: NodeRef, at: EpochMs): string => `${nodeKey(ref)} ${at}`;
