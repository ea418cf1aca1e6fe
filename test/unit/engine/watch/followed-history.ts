import { mock } from 'node:test';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import type { ClusterWatch } from '#shared/engine/watch/cluster-watch.ts';
import { PodFollowLimits } from '#shared/engine/watch/follow-pods.ts';
import { clusterName, type NodeName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { type LogFields, logTo } from '#shared/telemetry/log.ts';
import { SeededRandom } from '#test/simulation/seeded-random.ts';
import { tolerating } from '#test/unit/eviction/builders.ts';
import { DeltaReplica } from '#test/world/delta-replica.ts';
import type { DrivenTimers } from '#test/world/driven-timers.ts';
import { CALM, FakeApiServers, type Weather } from '#test/world/fake-api-servers.ts';
import { watchOf } from './watched-cluster.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/**
 * More than a silent watch, a timeout and a server that is behind take together, and less than the time to a
 * resync.
 */
const QUIET_MS = 5 * MINUTE;
/** The most lists at a time, without the list that starts the shared watch. */
const MAX_CONCURRENT_LISTS = 4;
const LEASE_WRITTEN_EVERY_MS = 10 * SECOND;
/**
 * A restore goes back at least this many versions, so that the few writes after it do not reach the versions
 * before.
 */
const MIN_RESTORED = 150;
const WRITES_AFTER_RESTORE = 40;
/** The minimum distance from the versions before the restore. */
const MARGIN = 100;

export interface FollowedHistory {
  /** The violations, in one sentence each. */
  readonly faults: readonly string[];
  /** The events, one line each. */
  readonly story: readonly string[];
}

/**
 * Plays random changes of the nodes and pods of one cluster while a relay's watch follows it through failing
 * servers. Returns where the view is wrong when the cluster is quiet. The same seed plays the same history.
 */
export async function followHistory(seed: number, time: DrivenTimers): Promise<FollowedHistory> {
  const random = new SeededRandom(seed);
  const jitter = mock.method(Math, 'random', random.next);
  const history = new History(random, time);
  try {
    return await history.play();
  } finally {
    await history.end();
    jitter.mock.restore();
  }
}

class History {
  readonly #random: SeededRandom;
  readonly #time: DrivenTimers;
  readonly #servers: FakeApiServers;
  readonly #view = new ClusterView(clusterName('c1'), 1);
  readonly #watch: ClusterWatch;
  readonly #nodes: readonly NodeName[];
  readonly #podNames: readonly string[];
  readonly #everTainted = new Set<NodeName | undefined>();
  readonly #replica = new DeltaReplica(this.#view);
  readonly #story: string[] = [];
  readonly #startedAt = Date.now();
  #leaseAt = Date.now();
  #uids = 0;

  constructor(random: SeededRandom, time: DrivenTimers) {
    this.#random = random;
    this.#time = time;
    const servers = random.between(1, 4);
    const version = random.pick([1, 90, 980, 99_900]);
    this.#servers = new FakeApiServers(random, { servers, streaming: random.between(0, servers), version });
    const crowded = random.chance(0.15);
    const count = crowded ? random.between(90, 140) : random.between(2, 8);
    this.#nodes = Array.from({ length: count }, (_, index) => nodeName(`n${index}`));
    this.#podNames = Array.from({ length: count * 3 }, (_, index) => `p${index}`);
    const limits = new PodFollowLimits();
    // Few nodes share a watch only where other clusters use nearly all watches.
    if (!crowded && random.chance(0.5))
      for (let left = 1_000; left > random.between(0, 3); left--) limits.takeWatch();
    this.#watch = watchOf(this.#servers, this.#view, {
      store: {
        async *taintedNodes() {
          if (random.chance(0.1)) throw new Error('the table is throttled');
          yield* [];
        },
      },
      limits,
      log: logTo((_, { event, fields }) => {
        const { error = '' } = fields as LogFields;
        this.#note(`${event} ${error}`);
      }),
      mark: (subjects) => this.#replica.apply(subjects),
    });
  }

  async play(): Promise<FollowedHistory> {
    const random = this.#random;
    const hasTaints = random.chance(0.95);
    for (const name of this.#nodes)
      if (random.chance(0.8)) this.#putNode(name, hasTaints && random.chance(0.3));
    for (const name of this.#podNames) if (random.chance(0.6)) this.#createPod(name);
    this.#servers.weather = this.#weather();
    this.#watch.start();
    for (let steps = random.between(20, 100); steps > 0; steps--) {
      this.#happen(hasTaints);
      await this.#pass(random.chance(0.5) ? random.between(0, 200) : random.between(0, 3_000));
      if (random.chance(0.01)) await this.#pass(random.between(1, 7) * MINUTE);
    }
    if (random.chance(0.2)) await this.#restore(hasTaints);
    this.#servers.weather = CALM;
    this.#note('quiet');
    await this.#pass(QUIET_MS);
    return { faults: this.#faults(), story: this.#story };
  }

  async end(): Promise<void> {
    this.#servers.close();
    await this.#watch.stop();
    // Requests in flight end.
    await this.#time.pass(5 * SECOND);
  }

  /** Advances the time, with regular renewals of leases. */
  async #pass(ms: number): Promise<void> {
    const until = Date.now() + ms;
    for (;;) {
      const next = this.#leaseAt + LEASE_WRITTEN_EVERY_MS;
      if (next > until) break;
      await this.#time.pass(Math.max(0, next - Date.now()));
      this.#servers.writeOther();
      this.#leaseAt = Date.now();
    }
    await this.#time.pass(Math.max(0, until - Date.now()));
  }

  #weather(): Weather {
    const random = this.#random;
    const some = (most: number) => (random.chance(0.5) ? 0 : random.next() * most);
    return {
      refused: some(0.5),
      cut: some(0.2),
      broken: some(0.2),
      silent: some(0.02),
      wayMs: random.pick([1, 100, 1_000]),
      lagMs: random.pick([1, 200, 1_000, 8_000]),
    };
  }

  #happen(hasTaints: boolean): void {
    if (this.#random.chance(0.03)) this.#storm(hasTaints);
    else this.#happenSlowly(hasTaints);
  }

  #happenSlowly(hasTaints: boolean): void {
    const random = this.#random;
    const what = random.next();
    const node = random.pick(this.#nodes) ?? nodeName('');
    const pod = random.pick(this.#podNames) ?? '';
    if (what < 0.2) this.#putNode(node, hasTaints && random.chance(0.6));
    else if (what < 0.25) this.#removeNode(node);
    else if (what < 0.45) this.#createPod(pod);
    else if (what < 0.6) this.#changePod(pod);
    else if (what < 0.8) this.#removePod(pod);
    else if (what < 0.85) this.#servers.writeOther();
    else if (what < 0.88) this.#restart();
    else if (what < 0.91) this.#compact();
    else if (what < 0.94) this.#servers.weather = this.#weather();
    else this.#chase(node, pod, hasTaints);
  }

  /** Taints a node while a pod on it is created or deleted. */
  #chase(node: NodeName, pod: string, hasTaints: boolean): void {
    const before = this.#random.chance(0.5);
    if (before) this.#createPod(pod, node);
    this.#putNode(node, hasTaints);
    if (!before) this.#createPod(pod, node);
    if (this.#random.chance(0.4)) this.#removePod(pod);
  }

  #storm(hasTaints: boolean): void {
    const tainted = hasTaints && this.#random.chance(0.6);
    for (const name of this.#nodes) if (this.#random.chance(0.9)) this.#putNode(name, tainted);
  }

  async #restore(hasTaints: boolean): Promise<void> {
    const { version } = this.#servers;
    const versionsAgo = this.#random.between(MIN_RESTORED, MIN_RESTORED * 2);
    this.#servers.restore(versionsAgo);
    this.#note(`restored, from version ${version} to ${this.#servers.version}`);
    // The cluster is quiet before its version approaches the versions before the restore.
    const enough = Math.min(this.#servers.version + WRITES_AFTER_RESTORE, version - MARGIN);
    while (this.#servers.version < enough) {
      this.#happenSlowly(hasTaints);
      await this.#pass(this.#random.between(0, 1_000));
    }
  }

  #putNode(name: NodeName, tainted: boolean): void {
    const keys = tainted ? this.#random.pick([['a'], ['a'], ['b'], ['a', 'b']]) : [];
    if (tainted) this.#everTainted.add(name).add(undefined);
    this.#servers.putNode({ name, taints: keys.map((key) => ({ key, effect: 'NoExecute' })) });
    this.#note(`${name} has ${keys.join(' and ') || 'no taint'}`);
  }

  #removeNode(name: NodeName): void {
    this.#servers.removeNode(name);
    this.#note(`${name} is deleted`);
  }

  /** A pod with the same name may have existed elsewhere. */
  #createPod(
    name: string,
    node = this.#random.chance(0.8) ? this.#random.pick(this.#nodes) : undefined,
  ): void {
    this.#servers.removePod(name);
    this.#uids += 1;
    this.#servers.putPod({
      uid: podUid(`u${this.#uids}`),
      namespace: 'd',
      name,
      node,
      tolerations: [tolerating(this.#random.pick(['a', 'b']), this.#random.between(1, 3))],
      podSince: Date.now(),
      terminating: false,
      disrupted: false,
    });
    this.#note(`${name} (u${this.#uids}) is created on ${node}`);
  }

  /** Binds the pod, or changes its tolerations. */
  #changePod(name: string): void {
    const pod = this.#livePod(name);
    if (!pod) return;
    const node = pod.node ?? this.#random.pick(this.#nodes);
    const tolerations = [tolerating(this.#random.pick(['a', 'b']), this.#random.between(4, 9))];
    this.#servers.putPod({ ...pod, node, ...(pod.node ? { tolerations } : {}) });
    this.#note(`${name} (${pod.uid}) on ${node} changes`);
  }

  #removePod(name: string): void {
    const pod = this.#livePod(name);
    if (!pod) return;
    const terminates = this.#random.chance(0.5) && !pod.terminating;
    if (terminates) this.#servers.putPod({ ...pod, terminating: true });
    else this.#servers.removePod(name);
    this.#note(`${name} (${pod.uid}) ${terminates ? 'terminates' : 'is deleted'}`);
  }

  #restart(): void {
    const index = this.#random.between(0, 3);
    this.#servers.restart(index);
    this.#note(`server ${index} restarts`);
  }

  #compact(): void {
    this.#servers.compact();
    this.#note('compacted');
  }

  #livePod(name: string): LivePod | undefined {
    return this.#servers.livePods.find((pod) => pod.name === name);
  }

  #faults(): readonly string[] {
    const { liveNodes, livePods, podWatches, podRequests, mostPodLists } = this.#servers;
    const faults: string[] = [];
    const { kind } = this.#watch.connectionState;
    if (kind !== 'live') faults.push(`the cluster is ${kind}`);
    faults.push(
      ...this.#replica.faults({ nodes: liveNodes, pods: livePods, podWatches: [...podWatches.values()] }),
    );
    for (const { onNode } of podRequests) {
      if (!this.#everTainted.has(onNode)) faults.push(`pods of ${onNode ?? 'all nodes'} were asked for`);
    }
    if (mostPodLists > MAX_CONCURRENT_LISTS + 1) {
      faults.push(`${mostPodLists} lists of pods were under way at a time`);
    }
    return faults;
  }

  #note(what: string): void {
    this.#story.push(`${Date.now() - this.#startedAt} ms, version ${this.#servers.version}: ${what}`);
  }
}
