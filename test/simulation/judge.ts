import { NODE_MAX_AGE_MS } from '#shared/engine/evict/evict-pod.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { Permits } from '#shared/state/permits.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import type { OutgoingMessage } from '#shared/state/sender.ts';
import type { Store } from '#shared/state/store.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import type { LogFields } from '#shared/telemetry/log.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { GuardJudge } from './guard-judge.ts';
import { LeaseJudge } from './lease-judge.ts';
import type { LiveCluster } from './live-cluster.ts';
import { MessageJudge } from './message-judge.ts';
import { type Compared, NaiveJudge } from './naive-judge.ts';
import { policyOf } from './naive-rules.ts';
import type { Paced } from './pace-judge.ts';
import { PolicyJudge } from './policy-judge.ts';
import type { Surroundings } from './process.ts';
import { type PromiseName, type Tried, untried } from './promises.ts';
import { RecordJudge } from './record-judge.ts';
import type { Queues } from './scene.ts';
import type { Sent } from './simulated-api.ts';
import type { Ruling, SimulatedRulesStore } from './simulated-rules-store.ts';
import type { SimulatedStorage } from './simulated-storage.ts';
import type { Freedom } from './truth.ts';

/** The objects that a judge observes. */
export interface Bench extends Surroundings {
  readonly storage: SimulatedStorage;
  readonly queues: Queues;
  readonly clusters: readonly LiveCluster[];
  readonly rulesStore: SimulatedRulesStore | undefined;
  /** Called when a promise is tested. */
  readonly tried: (promise: PromiseName) => void;
}

/** Notes a broken promise. */
export type Accuse = (what: string) => void;

const AUDIT_MS = 10 * 60_000;
/** Events are rare in quiet times. */
const QUIET_AUDIT_MS = 60 * 60_000;

/** Compares the service with its promises (P1 to P9 of the design), by the actual events. */
export class Judge {
  readonly faults: string[] = [];
  readonly tried: Tried = untried();
  /** Called with each broken promise when it is noticed. */
  onAccused: (what: string) => void = () => undefined;
  readonly #bench: Bench;
  readonly #records: RecordJudge;
  readonly #messages: MessageJudge;
  readonly #guard: GuardJudge;
  readonly #policy: PolicyJudge;
  readonly #naive: NaiveJudge;
  readonly #leases: LeaseJudge;
  readonly #evicted = new Set<PodUid>();
  readonly #overdue = new Set<PodUid>();

  constructor(surroundings: Omit<Bench, 'tried'>) {
    const bench: Bench = {
      ...surroundings,
      tried: (promise) => {
        this.tried[promise] += 1;
      },
    };
    this.#bench = bench;
    const accuse = (what: string) => this.#accuse(what);
    this.#records = new RecordJudge(bench, accuse);
    this.#messages = new MessageJudge(bench, this.#records, accuse);
    this.#guard = new GuardJudge(bench, accuse);
    this.#policy = new PolicyJudge(bench, this.#guard, accuse);
    this.#naive = new NaiveJudge(bench, this.#records, accuse);
    this.#leases = new LeaseJudge(bench, accuse);
    if (bench.rulesStore) bench.rulesStore.onWritten = (...written) => this.#ruled(...written);
    const audit = async () => {
      await this.audit();
      const { clock, weather } = bench;
      const busy = weather.busyWithin(AUDIT_MS);
      clock.setAlarm(clock.now() + (busy ? AUDIT_MS : QUIET_AUDIT_MS), () => void audit());
    };
    bench.clock.setAlarm(bench.clock.now() + AUDIT_MS, () => void audit());
  }

  #ruled(name: ClusterName, ruling: Ruling, before: StoredRules): void {
    const { truth } = this.#bench.clusters.find((each) => each.name === name) ?? {};
    truth?.termsAre(ruling.at, policyOf(ruling.storedRules).tolerationSecondsOverrides);
    this.#guard.written(name, ruling, before);
  }

  get evicted(): number {
    return this.#evicted.size;
  }

  /** The comparison with the naive model. */
  get compared(): Compared {
    return this.#naive.compared;
  }

  /** The evictions under the rates of clusters, and the cases in which pods may be evicted faster. */
  get paced(): Paced {
    return this.#policy.paced;
  }

  /** Deletions of pods whose workload had a limit. */
  get limited(): number {
    return this.#policy.limited;
  }

  /** Returns a watched store. */
  watchStore(store: Store, user: string): Store {
    return this.#policy.watch(this.#records.watch(store, user));
  }

  /** Returns watched permits. */
  watchPermits(permits: Permits): Permits {
    return this.#records.watchPermits(permits);
  }

  /** A relay acquired a cluster's lease. */
  leaseTaken(cluster: ClusterName, epoch: number): void {
    this.#records.leaseTaken(cluster, epoch);
    this.#bench.clusters.find(({ name }) => name === cluster)?.truth.knowledge.leaseTaken(epoch);
  }

  /** A relay sends a delta. */
  sent(message: OutgoingMessage): void {
    this.#messages.sent(message);
  }

  /** P7: a process reads the pods of a node; `undefined`: of all nodes. */
  podsRead(cluster: ClusterName, node: NodeName | undefined): void {
    this.#messages.podsRead(cluster, node);
  }

  /** Notes the state of a node; `taints`: `undefined` = the node was deleted. */
  nodeIs(cluster: ClusterName, node: NodeName, taints: readonly LiveTaint[] | undefined): void {
    this.#guard.nodeIs(cluster, node, taints);
    this.#naive.nodeIs(cluster, node, taints);
  }

  /** Notes the state of a pod. */
  podIs(cluster: ClusterName, pod: LivePod): void {
    this.#naive.podIs(cluster, pod);
  }

  /** P1: a pod is marked after a look that showed a taint. P9: not forbidden. */
  mark(cluster: LiveCluster, pod: LivePod, sent: Sent): void {
    const shown = sent.reads.flatMap(({ node, state, begunAt }) =>
      node !== pod.node || state === undefined ? [] : cluster.truth.keysBy(node, state, begunAt),
    );
    if (shown.length === 0) this.#accuse(`P1: ${pod.uid} was marked, and no look had shown a taint`);
    this.#policy.mark(cluster, pod, sent);
  }

  /** A disruption budget blocks a pod's eviction. */
  blocked(uid: PodUid): void {
    this.#policy.blocked(uid);
  }

  /** The service logs something. */
  logged(event: string, fields: LogFields): void {
    this.#policy.logged(event, fields);
  }

  /** P1: not early, not another pod, and not without a reason. P2: in time. P9: not forbidden. */
  deletion(cluster: LiveCluster, pod: LivePod, meant: PodUid, sent: Sent): void {
    const { clock } = this.#bench;
    if (pod.uid !== meant) this.#accuse(`P1: ${meant} was meant and ${pod.uid} deleted`);
    if (pod.terminating) return;
    this.#evicted.add(pod.uid);
    this.#count(cluster, pod);
    this.#records.deleted(cluster.name, pod.uid);
    this.#naive.deletion(cluster, pod);
    const { sentAt } = sent;
    const reads = sent.reads.filter(
      ({ node, answeredAt }) => node === pod.node && sentAt - answeredAt <= NODE_MAX_AGE_MS,
    );
    if (reads.length === 0) this.#accuse(`P1: ${pod.uid} was deleted by a look that is too old`);
    const moments = reads.flatMap(({ state, begunAt }) =>
      state === undefined ? [] : [cluster.truth.mayGo(pod.uid, state, begunAt)],
    );
    const earliest = moments.reduce<EpochMs>((least, moment = Infinity) => Math.min(least, moment), Infinity);
    if (reads.length > 0 && earliest === Infinity)
      this.#accuse(`P1: ${pod.uid} was deleted without a reason`);
    else if (reads.length > 0 && earliest > sentAt) {
      this.#accuse(`P1: ${pod.uid} was deleted ${earliest - sentAt} ms early`);
    }
    this.#policy.deletion(cluster, pod, sent, reads);
    this.#leases.deletion(cluster, pod, sentAt, reads);
    const latest = cluster.truth.mustGo(pod.uid, this.#freedom(cluster, pod)) ?? Infinity;
    if (clock.now() > latest) this.#accuse(`P2: ${pod.uid} was deleted ${clock.now() - latest} ms late`);
  }

  #freedom(cluster: LiveCluster, pod: LivePod): Freedom {
    return this.#leases.freedom(cluster, pod, this.#policy.freedom(cluster, pod));
  }

  /** Counts the promises that the deletion of a pod tests. */
  #count({ name }: LiveCluster, { uid }: LivePod): void {
    const { clock, clusters, disturbances, tried, weather } = this.#bench;
    tried('P1');
    tried('P2');
    const scheduledAt = this.#records.scheduledAt(uid);
    if (scheduledAt !== undefined && disturbances.wasReplaced(name, scheduledAt, clock.now())) tried('P4');
    if (clusters.some((other) => other.name !== name && weather.outageOf(other.name))) tried('P8');
  }

  /** Compares the current state with the promises. */
  async audit(): Promise<void> {
    for (const cluster of this.#bench.clusters) this.#auditPods(cluster);
    await this.#records.audit();
    this.#messages.audit();
    this.#guard.audit();
  }

  #auditPods(cluster: LiveCluster): void {
    const { name, livePods, truth } = cluster;
    const now = this.#bench.clock.now();
    for (const pod of livePods.values()) {
      const { uid, terminating } = pod;
      if (terminating || this.#overdue.has(uid) || this.#records.isGivenUp(uid)) continue;
      const latest = truth.mustGo(uid, this.#freedom(cluster, pod)) ?? Infinity;
      if (now <= latest) continue;
      this.#overdue.add(uid);
      this.#accuse(`P2: ${uid} of ${name} should have gone ${now - latest} ms ago`);
    }
  }

  /** Judges the end of the history, after a long calm time. */
  async judgeEnd(): Promise<void> {
    await this.audit();
    await this.#records.judgeEnd();
    this.#messages.judgeEnd();
    this.#naive.judgeEnd();
  }

  #accuse(what: string): void {
    this.faults.push(what);
    this.onAccused(what);
  }
}
