import { type ClusterName, type NodeRef, nodeKey, type PodUid } from '#shared/eviction/identity.ts';
import type { Method } from '#shared/eviction/policy.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { Commit, Store } from '#shared/state/store.ts';
import type { LogFields } from '#shared/telemetry/log.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { GuardJudge } from './guard-judge.ts';
import type { Accuse, Bench } from './judge.ts';
import { LimitJudge } from './limit-judge.ts';
import { type LiveCluster, zoneOf } from './live-cluster.ts';
import { type EvictedPod, NaiveRules, OUT_OF_SERVICE, policyOf } from './naive-rules.ts';
import { type Paced, PaceJudge } from './pace-judge.ts';
import type { NodeObservation, Sent } from './simulated-api.ts';
import { DOWN_KEYS, type Freedom } from './truth.ts';

/** The maximum age of rules when a mark or a deletion is sent. */
const RULES_AGE_MS = 1_000;
/** The time before a pod's deadline within which a release may come too late: rules read before the release may hold the pod. */
const JUST_BEFORE_MS = 5_000;
/** The time after which a relay notices a release, and sends it a second time to functions that were just holding the pod. */
const RELEASE_MS = 9_000;

/** The time for which turns under a rate are reserved in advance. A pod without a turn asks again afterwards. */
const TURNS_MS = 60_000;
/** The factor for unused turns: the turn of a pod that is held by then evicts no pod. */
const RATED = 3;
/**
 * The factor for unused permits of released pods: turns come each second, and where API servers are slow, the next pass begins
 * before this one has evicted its pods, and takes permits for them, too.
 */
const RELEASED = 2;
/**
 * The factor for earlier evictions of a workload: each takes a window, plus the time for which a permit lasts beyond the window.
 */
const PERMITTED = 1.5;
/** The intervals after which a blocking budget is tried again: normally, and at most after a long failure. */
const BUDGET_MS = 60_000;
const RETRY_MS = 6 * 60_000;

/** P9, by the rules written for each cluster. */
export class PolicyJudge {
  readonly #bench: Bench;
  readonly #accuse: Accuse;
  readonly #guard: GuardJudge;
  readonly #rules: NaiveRules | undefined;
  readonly #pace: PaceJudge;
  readonly #limits: LimitJudge;
  /** The first and the last time when each pod was blocked by a budget. */
  readonly #blocks = new Map<PodUid, { readonly first: EpochMs; readonly last: EpochMs }>();
  /** The deadline of each scheduled pod, by its record. */
  readonly #dueAt = new Map<PodUid, EpochMs>();
  /** The number of answered commits of each node. */
  readonly #commits = new Map<string, number>();
  /** The number of changes of each pod's deadline. */
  readonly #moves = new Map<PodUid, number>();
  /** The pods that are held in an observed cluster and not reported yet. */
  readonly #observed = new Set<PodUid>();
  /** The evictions that were reported in an observed cluster. */
  readonly #wouldHave = new Set<string>();

  constructor(bench: Bench, guard: GuardJudge, accuse: Accuse) {
    this.#bench = bench;
    this.#guard = guard;
    this.#accuse = accuse;
    this.#rules = bench.rulesStore && new NaiveRules(bench.rulesStore);
    this.#pace = new PaceJudge(bench, this.#rules, accuse);
    this.#limits = new LimitJudge(bench, this.#rules, accuse);
  }

  /** The evictions under the rates of clusters, and the cases in which pods may be evicted faster. */
  get paced(): Paced {
    return this.#pace.paced;
  }

  /** Deletions of pods whose workload had a limit. */
  get limited(): number {
    return this.#limits.judged;
  }

  /** Judges a mark. The pod waits for a free slot, so its node may have been observed long ago. */
  mark(cluster: LiveCluster, pod: LivePod, sent: Sent): void {
    const reads = sent.reads.filter(({ node }) => node === pod.node);
    const keysIn = ({ node, state, begunAt }: NodeObservation) =>
      state === undefined ? [] : cluster.truth.keysBy(node, state, begunAt);
    this.#judge('marked', cluster, pod, sent, reads, keysIn);
    this.#judgeMeans('marked', cluster, pod, sent, reads, keysIn);
  }

  /** Notes that a disruption budget blocks a pod's eviction. */
  blocked(uid: PodUid): void {
    const last = this.#bench.clock.now();
    this.#blocks.set(uid, { first: this.#blocks.get(uid)?.first ?? last, last });
  }

  /** `looks`: the observations that the decision may be based on. */
  deletion(cluster: LiveCluster, pod: LivePod, sent: Sent, reads: readonly NodeObservation[]): void {
    const dueBy = ({ node, state, begunAt }: NodeObservation) => {
      if (state === undefined) return [];
      const mayGo = (key: string) => cluster.truth.mayGo(pod.uid, state, begunAt, key) ?? Infinity;
      return cluster.truth.keysBy(node, state, begunAt).filter((key) => mayGo(key) <= sent.sentAt);
    };
    this.#judge('deleted', cluster, pod, sent, reads, dueBy);
    this.#judgeMeans('deleted', cluster, pod, sent, reads, dueBy);
    const evicted = reads.flatMap((read) =>
      dueBy(read).map((key) => evictedPod(cluster, pod, read.state ?? 0, key)),
    );
    this.#pace.deletion(cluster, pod, sent, evicted);
    this.#limits.deletion(cluster, pod, sent, evicted);
  }

  /** Judges the method of an eviction: the policy's method, but pods of out-of-service nodes are always deleted. */
  #judgeMeans(
    what: string,
    { name, truth }: LiveCluster,
    { uid }: LivePod,
    { sentAt, means }: Sent,
    reads: readonly NodeObservation[],
    keysOf: (read: NodeObservation) => readonly string[],
  ): void {
    const methods = this.#rules?.policies(name, sentAt - RULES_AGE_MS, sentAt).map(({ method }) => method);
    if (!methods || reads.length === 0) return;
    if (means === 'evict') {
      if (methods.every(({ kind }) => kind === 'delete'))
        this.#accuse(`P9: the budgets of ${uid} were asked although policy says otherwise`);
      return;
    }
    const runs = reads.every(
      (read) =>
        truth.readingOf(read.node, read.state ?? 0).there &&
        !keysOf(read).some((key) => DOWN_KEYS.includes(key) || key === OUT_OF_SERVICE),
    );
    const { first = Infinity } = this.#blocks.get(uid) ?? {};
    const isOver = (method: Method & { readonly kind: 'evict' }) =>
      method.onTimeout === 'delete' && sentAt - first >= method.timeoutMs;
    const evictedBy = methods.every((method) => method.kind === 'evict' && !isOver(method));
    if (runs && evictedBy) this.#accuse(`P9: ${uid} was ${what} and its budgets were not asked`);
  }

  #judge(
    what: string,
    cluster: LiveCluster,
    pod: LivePod,
    { sentAt }: Sent,
    reads: readonly NodeObservation[],
    keysOf: (read: NodeObservation) => readonly string[],
  ): void {
    const rules = this.#rules;
    if (!rules) return;
    const { name } = cluster;
    this.#bench.tried('P9');
    const cases = reads.flatMap((read) =>
      keysOf(read).map((key) => {
        const podThen = evictedPod(cluster, pod, read.state ?? 0, key);
        return (
          rules.forbidsThroughout(name, podThen, sentAt - RULES_AGE_MS, sentAt) ||
          this.#guard.forbids(name, podThen, read.state ?? 0, sentAt)
        );
      }),
    );
    if (cases.length > 0 && cases.every((forbidden) => forbidden))
      this.#accuse(`P9: ${pod.uid} was ${what} although that was forbidden`);
  }

  /** Returns a function that gives the time by which a pod must be released after rules forbade its eviction. */
  freedom(cluster: LiveCluster, pod: LivePod): Freedom {
    const rules = this.#rules;
    const { name, truth } = cluster;
    if (!rules || pod.node === undefined) return () => undefined;
    const state = truth.stateOf(pod.node) ?? 0;
    const now = this.#bench.clock.now();
    return (key, dueAt, changedAt) => {
      const podThen = evictedPod(cluster, pod, state, key);
      const forbidden = rules.lastForbidden(name, podThen, dueAt - JUST_BEFORE_MS, now);
      if (forbidden === Infinity) return forbidden;
      const policies = rules.policies(name, forbidden ?? dueAt - JUST_BEFORE_MS, now);
      const blocked = this.#blocks.get(pod.uid)?.last;
      const isNever = policies.some(({ method }) => method.kind === 'evict' && method.onTimeout === 'fail');
      const retriedAt = blocked === undefined ? undefined : blocked + (isNever ? RETRY_MS : BUDGET_MS);
      const evictionRate = Math.min(...policies.map((policy) => policy.evictionRate ?? Infinity));
      const limits = policies.map(({ maxEvictionsPerWorkload: limit }) => limit?.windowMs ?? 0);
      const limitMs = cluster.mostPods * Math.max(...limits) * PERMITTED;
      if (forbidden === undefined && retriedAt === undefined && evictionRate === Infinity && limitMs === 0)
        return undefined;
      const releaseRate = Math.min(...policies.map((policy) => policy.releaseRate));
      const drainMs = forbidden === undefined ? 0 : ((RELEASED * cluster.mostPods) / releaseRate) * 1000;
      const rateMs =
        evictionRate === Infinity ? 0 : 2 * TURNS_MS + ((RATED * cluster.mostPods) / evictionRate) * 1000;
      const last = Math.max(forbidden ?? dueAt, retriedAt ?? dueAt, changedAt);
      return this.#bench.disturbances.excusedUntil(name, last) + RELEASE_MS + drainMs + rateMs + limitMs;
    };
  }

  /** Returns a store that checks that held pods keep their deadlines. */
  watch(store: Store): Store {
    return {
      load: (...args) => store.load(...args),
      commit: async (ref, revision, change, now) => {
        // The result of a commit may remain unknown.
        const before = change.schedule.map(({ uid }) => [uid, this.#dueAt.get(uid)] as const);
        for (const { uid } of [...change.schedule, ...change.end]) this.#dueAt.delete(uid);
        const key = nodeKey(ref);
        const commits = this.#commits.get(key) ?? 0;
        const answer = await store.commit(ref, revision, change, now);
        // Newer commits by other processes supersede a late answer.
        if ((this.#commits.get(key) ?? 0) !== commits) {
          for (const { uid } of change.schedule) this.#dueAt.delete(uid);
          return answer;
        }
        for (const [uid, dueAt] of before) if (dueAt !== undefined) this.#dueAt.set(uid, dueAt);
        if (answer === 'committed') {
          this.#commits.set(key, commits + 1);
          this.#committed(ref, change);
        }
        return answer;
      },
      end: async (ref, pods, now) => {
        await store.end(ref, pods, now);
        for (const { uid } of pods) this.#dueAt.delete(uid);
      },
      taintedNodes: (cluster) => store.taintedNodes(cluster),
    };
  }

  #committed(ref: NodeRef, { schedule, end }: Commit): void {
    for (const { uid } of end) this.#pace.ended(uid);
    for (const { uid, dueAt, held, notBefore } of schedule) {
      if (held) this.#pace.held(uid, held.by);
      if (held?.by.kind === 'observe') this.#observed.add(uid);
      const before = this.#dueAt.get(uid);
      const waits = held !== undefined || notBefore !== undefined;
      if (waits && before !== undefined && before !== dueAt) {
        this.#accuse(`P9: the deadline of ${uid} on ${nodeKey(ref)} was moved while it was held`);
      }
      if (before !== dueAt) this.#moves.set(uid, (this.#moves.get(uid) ?? 0) + 1);
      this.#dueAt.set(uid, dueAt);
    }
  }

  /** Judges that a prevented eviction is reported once for each deadline, while the cluster is observed. */
  logged(event: string, fields: LogFields): void {
    if (event !== 'eviction.would-evict') return;
    const uid = String(fields['uid']) as PodUid;
    const cluster = String(fields['cluster']) as ClusterName;
    const there = this.#bench.clusters.find(({ name }) => name === cluster);
    const pod = [...(there?.livePods.values() ?? [])].find((each) => each.uid === uid);
    // If the pod was deleted meanwhile, each process that notices this, or that just held the pod, may report it.
    if (pod === undefined || pod.terminating) return;
    if (!this.#observed.delete(uid)) return;
    // A process that read the rules just before observation ended may hold a released pod once more.
    if (!this.#isObserved(cluster)) return;
    const key = `${uid} ${this.#moves.get(uid)} ${this.#observations(cluster)}`;
    if (this.#wouldHave.has(key)) this.#accuse(`P9: it was told twice that ${uid} would have gone`);
    this.#wouldHave.add(key);
  }

  #isObserved(cluster: ClusterName): boolean {
    const storedRules = this.#bench.rulesStore?.now(cluster);
    return storedRules !== undefined && policyOf(storedRules).mode === 'observe';
  }

  /** Returns the number of times that observation of a cluster started. */
  #observations(cluster: ClusterName): number {
    const history = this.#bench.rulesStore?.history(cluster) ?? [];
    const modes = history.map(({ storedRules }) => storedRules.orders.policy?.read.mode);
    return modes.filter((mode, index) => mode === 'observe' && modes[index - 1] !== mode).length;
  }
}

function evictedPod({ truth }: LiveCluster, pod: LivePod, state: number, key: string): EvictedPod {
  if (pod.node === undefined) throw new Error(`${pod.uid} is on no node`);
  const { there, downSince } = truth.readingOf(pod.node, state);
  return {
    pod,
    node: pod.node,
    zone: there ? zoneOf(pod.node) : undefined,
    downSince,
    key,
  };
}
