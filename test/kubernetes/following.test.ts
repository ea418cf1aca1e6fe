import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as passes } from 'node:timers/promises';
import pMap from 'p-map';
import { Registry } from 'prom-client';
import { ClusterFaults } from '#shared/engine/watch/cluster-faults.ts';
import { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { ClusterWatch } from '#shared/engine/watch/cluster-watch.ts';
import { PodFollowLimits } from '#shared/engine/watch/follow-pods.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName, type NodeName } from '#shared/eviction/identity.ts';
import type { ListOptions, LivePod, Resource, WatchOptions } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { type LogFields, logTo } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { Gate } from '#test/cluster/rig/gate.ts';
import { runName, TestCluster } from '#test/cluster/rig/test-cluster.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { SeededRandom } from '#test/simulation/seeded-random.ts';
import { DeltaReplica } from '#test/world/delta-replica.ts';
import { enforced } from '#test/world/enforced-rules.ts';

/** `FOLLOWING_SEED=<number>` repeats one history, as far as a real server permits. */
const SEED = Number(process.env['FOLLOWING_SEED'] ?? Math.floor(Math.random() * 1_000_000));

/** Enough nodes that a storm exceeds the 100 that have watches of their own. */
const NODES = 130;
const PODS = 300;
const STORMS = 3;
/** The steps after a storm of taints, and again after a storm of untaints. */
const STEPS = 60;
const MAX_STEP_MS = 250;
/** A busy machine performs fewer steps instead of taking longer. */
const HISTORY_WITHIN_MS = 60_000;
/** The number of concurrent requests of a storm. */
const PARALLEL = 24;
/** The share of the pods that are created or deleted in a storm. */
const PODS_IN_STORM = 0.5;
const LATE_LISTS = 0.3;
/** Longer than the time after which the relay lists all pods together. */
const LATEST_LIST_MS = 800;
const DISTURBED_MS = 1_000;

test('the view matches a real cluster after a history of storms and broken connections', async (context) => {
  context.diagnostic(`replay with FOLLOWING_SEED=${SEED}`);
  const cluster = await TestCluster.open('KUBECONFIG', runName());
  const gate = await Gate.open(cluster.connection);
  const history = new History(cluster, gate, new SeededRandom(SEED));
  try {
    await history.play(context);
  } catch (error) {
    context.diagnostic(history.story.join('\n'));
    throw error;
  } finally {
    await history.end();
    await gate.close();
    await cluster.close();
  }
});

/**
 * The pods of a cluster, with a record of the requests for them, by node or for all. Lists may have a long transit
 * time, so a watch's events in the meantime are newer.
 */
class NotedPods implements Resource<LivePod> {
  readonly listed: (NodeName | undefined)[] = [];
  readonly watched: (NodeName | undefined)[] = [];
  /** The active watches. */
  readonly present = new Map<object, NodeName | undefined>();
  readonly #pods: Resource<LivePod>;
  readonly #random: SeededRandom;

  constructor(pods: Resource<LivePod>, random: SeededRandom) {
    this.#pods = pods;
    this.#random = random;
  }

  get requests(): readonly (NodeName | undefined)[] {
    return [...this.listed, ...this.watched];
  }

  async list(options: ListOptions) {
    this.listed.push(options.onNode);
    const page = await this.#pods.list(options);
    if (this.#random.chance(LATE_LISTS)) await passes(this.#random.between(0, LATEST_LIST_MS));
    return page;
  }

  async *watch(options: WatchOptions) {
    this.watched.push(options.onNode);
    const me = {};
    this.present.set(me, options.onNode);
    try {
      yield* this.#pods.watch(options);
    } finally {
      this.present.delete(me);
    }
  }
}

class History {
  readonly story: string[] = [];
  readonly #cluster: TestCluster;
  readonly #gate: Gate;
  readonly #random: SeededRandom;
  /** A separate random source, because the numbers of connections and requests are not part of the history. */
  readonly #weather: SeededRandom;
  readonly #api: RestApi;
  /** The API without the gate, which shows the actual state. */
  readonly #direct: RestApi;
  readonly #pods: NotedPods;
  readonly #view = new ClusterView(clusterName('c'), 1);
  readonly #replica = new DeltaReplica(this.#view);
  readonly #watch: ClusterWatch;
  readonly #nodes = Array.from({ length: NODES }, (_, index) => `n${index}`);
  readonly #podNames = Array.from({ length: PODS }, (_, index) => `p${index}`);
  readonly #everTainted = new Set<string>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #startedAt = Date.now();
  #failure: unknown;

  constructor(cluster: TestCluster, gate: Gate, random: SeededRandom) {
    this.#cluster = cluster;
    this.#gate = gate;
    this.#random = random;
    this.#weather = new SeededRandom(random.between(0, 1_000_000));
    this.#api = new RestApi(gate.connection);
    this.#direct = new RestApi(cluster.connection);
    this.#pods = new NotedPods(this.#api.pods, this.#weather);
    this.#watch = new ClusterWatch(
      clusterName('c'),
      { nodes: this.#api.nodes, pods: this.#pods, skews: [] },
      this.#view,
      {
        store: { async *taintedNodes() {} },
        limits: new PodFollowLimits(),
        clock: systemClock,
        log: logTo((_, { event, fields }) => {
          const { error = '' } = fields as LogFields;
          this.#note(`${event} ${error}`);
        }),
        metrics: relayMetrics(new Registry()),
        faults: new ClusterFaults(systemClock),
        rules: enforced({ comparisonOperators: false }),
        claim: async () => undefined,
        counted: () => undefined,
        deleted: () => undefined,
        gone: () => undefined,
        mark: (subjects) => this.#replica.apply(subjects),
      },
    );
  }

  async play(context: TestContext): Promise<void> {
    await pMap(this.#nodes, (node) => this.#cluster.addNode(node), { concurrency: PARALLEL });
    await pMap(
      this.#podNames.filter(() => this.#random.chance(0.6)),
      (pod) => this.#createPod(pod, this.#randomNode(), true),
      { concurrency: PARALLEL },
    );
    this.#watch.start();
    await this.#untilKnown();
    await this.#untouched();

    const endAt = Date.now() + HISTORY_WITHIN_MS;
    for (let storm = 0; storm < STORMS; storm++) {
      for (const tainted of [true, false]) {
        this.#storm(tainted);
        await this.#steps(endAt);
        await Promise.all(this.#underWay);
        const quietAt = Date.now();
        this.#note('quiet');
        await this.#untilKnown();
        const counts = this.#view.counts;
        context.diagnostic(
          `after ${Date.now() - quietAt} ms of quiet ${counts.tainted} of ${counts.nodes} nodes are known to be tainted, with ${counts.pods} pods`,
        );
      }
    }
    const { listed, watched, requests } = this.#pods;
    context.diagnostic(`${listed.length} lists and ${watched.length} watches of pods`);
    assert.ok(watched.includes(undefined), 'there was a watch of all pods');
    const wrong = requests.filter((node) => node !== undefined && !this.#everTainted.has(node));
    assert.deepEqual(wrong, [], 'no pods were asked for of nodes that were never tainted');

    this.#note('no taints');
    await this.#cluster.api.remove(this.#podsPath, { gracePeriodSeconds: 0 });
    const untaint = (node: string) => this.#missed(this.#taintNow(node, []));
    await pMap(this.#nodes, untaint, { concurrency: PARALLEL });
    await this.#untilKnown();
    await this.#untouched();
    if (this.#failure) throw this.#failure;
    this.#cluster.check();
  }

  async end(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#underWay);
    await this.#watch.stop();
    this.#api.close();
    this.#direct.close();
  }

  /** Asserts that no pods are requested while no node is tainted, regardless of changes to pods. */
  async #untouched(): Promise<void> {
    const { requests } = this.#pods;
    for (const name of this.#podNames.slice(0, PARALLEL)) {
      this.#start(() => this.#createPod(name, this.#randomNode(), true));
    }
    this.#gate.cut(() => true);
    const node = await this.#cluster.addNode(`beyond-${requests.length}`);
    await this.#untilKnown();
    await this.#cluster.deleteNode(node);
    await Promise.all(this.#underWay);
    await this.#untilKnown();
    assert.equal(
      this.#pods.requests.length,
      requests.length,
      'no pods are asked for while no node is tainted',
    );
  }

  async #steps(endAt: number): Promise<void> {
    for (let step = 0; step < STEPS && Date.now() < endAt; step++) {
      this.#happen();
      await passes(this.#random.between(0, MAX_STEP_MS));
    }
  }

  #happen(): void {
    const random = this.#random;
    const what = random.next();
    const node = this.#randomNode();
    const pod = random.pick(this.#podNames) ?? '';
    if (what < 0.15) this.#setTaints(node, this.#randomKeys());
    else if (what < 0.25) this.#setTaints(node, []);
    else if (what < 0.3) this.#removeNode(node);
    else if (what < 0.4) this.#addNode(node, random.chance(0.5) ? this.#randomKeys() : []);
    else if (what < 0.6) this.#createPodSoon(pod, node);
    else if (what < 0.7) this.#removePod(pod);
    else if (what < 0.75) this.#changePod(pod);
    else if (what < 0.93) this.#chase(node, pod);
    else this.#disturb();
  }

  /** Taints a node, and simultaneously creates or deletes a pod on it. */
  #chase(node: string, pod: string): void {
    if (this.#random.chance(0.5)) {
      this.#setTaints(node, this.#randomKeys());
      this.#createPodSoon(pod, node);
    } else {
      this.#createPodSoon(pod, node);
      this.#setTaints(node, this.#randomKeys());
    }
    if (this.#random.chance(0.4)) this.#removePod(pod);
    if (this.#random.chance(0.2)) this.#setTaints(node, []);
  }

  #storm(tainted: boolean): void {
    const share = tainted ? 0.9 : this.#random.pick([0.3, 0.7, 1]);
    const nodes = this.#nodes.filter(() => this.#random.chance(share));
    const keys = tainted ? this.#randomKeys() : [];
    this.#note(`${nodes.length} nodes get ${keys.join(' and ') || 'no taints'}`);
    this.#start(async () => {
      await pMap(nodes, (node) => this.#missed(this.#taintNow(node, keys)), { concurrency: PARALLEL });
    });
    const changed = this.#podNames.filter(() => this.#random.chance(PODS_IN_STORM));
    const changes = changed.map((pod) => this.#podChange(pod));
    this.#start(async () => {
      await pMap(changes, (change) => this.#missed(change()), { concurrency: PARALLEL });
    });
  }

  /** Returns a change of a pod that is created or deleted while its node is listed. */
  #podChange(pod: string): () => Promise<void> {
    const [node, bound] = [this.#randomNode(), this.#random.chance(0.5)];
    const options = { gracePeriodSeconds: 0 };
    return this.#random.chance(0.6)
      ? () => this.#createPod(pod, node, bound)
      : () => this.#cluster.api.remove(this.#cluster.podPath(pod), options);
  }

  #disturb(): void {
    const share = this.#random.pick([0.3, 1]);
    const chosen = () => this.#weather.chance(share);
    const what = this.#random.pick(['cut', 'stalled', 'refused']);
    this.#note(`connections are ${what}`);
    if (what === 'cut') this.#gate.cut(chosen);
    else {
      const mend = what === 'stalled' ? this.#gate.stall(chosen) : this.#gate.shut();
      this.#start(async () => {
        await passes(DISTURBED_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
        mend();
      });
    }
  }

  #setTaints(node: string, keys: readonly string[]): void {
    this.#note(`${node} gets ${keys.join(' and ') || 'no taints'}`);
    this.#start(() => this.#taintNow(node, keys));
  }

  #taintNow(node: string, keys: readonly string[]): Promise<void> {
    const name = this.#cluster.nodeName(node);
    if (keys.length > 0) this.#everTainted.add(name);
    return this.#cluster.setTaints(
      name,
      keys.map((key) => ({ key })),
    );
  }

  #removeNode(node: string): void {
    this.#note(`${node} is deleted`);
    const name = this.#cluster.nodeName(node);
    this.#cluster.kubelet.removeNode(name);
    this.#start(() => this.#cluster.api.remove(`/api/v1/nodes/${name}`));
  }

  #addNode(node: string, keys: readonly string[]): void {
    this.#note(`${node} is created, unless it is there, with ${keys.join(' and ') || 'no taints'}`);
    if (keys.length > 0) this.#everTainted.add(this.#cluster.nodeName(node));
    this.#start(async () => {
      await this.#cluster.addNode(
        node,
        keys.map((key) => ({ key, effect: 'NoExecute' })),
      );
    });
  }

  #createPodSoon(pod: string, node: string): void {
    const bound = this.#random.chance(0.5);
    this.#note(`${pod} is created ${bound ? 'on' : 'and bound to'} ${node}`);
    this.#start(() => this.#createPod(pod, node, bound));
  }

  /** Creates a pod, and deletes its predecessor if there is one. `bound`: the pod is bound from its creation on. */
  async #createPod(name: string, node: string, bound: boolean): Promise<void> {
    const on = this.#cluster.nodeName(node);
    const tolerations = [tolerates('a', name.length)];
    await this.#cluster.api.remove(this.#cluster.podPath(name), { gracePeriodSeconds: 0 });
    await this.#cluster.createPod(name, { tolerations, ...(bound ? { node: on } : {}) });
    if (!bound) await this.#cluster.bindPod(name, on);
  }

  #removePod(pod: string): void {
    const options = this.#random.chance(0.6) ? { gracePeriodSeconds: 0 } : {};
    this.#note(`${pod} is deleted`);
    this.#start(() => this.#cluster.api.remove(this.#cluster.podPath(pod), options));
  }

  #changePod(name: string): void {
    const more = tolerates(this.#random.pick(['a', 'b']), this.#random.between(4, 9));
    this.#note(`${name} tolerates ${more.key} for ${more.tolerationSeconds} s`);
    this.#start(() => this.#cluster.tolerate({ name }, (present) => [...present, more]));
  }

  #randomNode(): string {
    return this.#random.pick(this.#nodes) ?? '';
  }

  #randomKeys(): readonly string[] {
    return this.#random.pick([['a'], ['b'], ['a', 'b']]);
  }

  /** Starts work that runs beside the next steps. */
  #start(work: () => Promise<void>): void {
    const done = this.#missed(work())
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  /** Ignores errors for objects that do not exist, exist already, or are being deleted. */
  async #missed(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!(error instanceof ApiError && [404, 409].includes(error.status))) throw error;
    }
  }

  async #untilKnown(): Promise<void> {
    let faults: readonly string[] = ['nothing was looked at'];
    await until('the cluster is known', async () => {
      faults = await this.#faults();
      return faults.length === 0;
    }).catch((error: unknown) => {
      if (faults.length === 0) throw error;
    });
    assert.deepEqual(faults, []);
  }

  async #faults(): Promise<readonly string[]> {
    const { kind } = this.#watch.connectionState;
    if (kind !== 'live') return [`the cluster is ${kind}`];
    const { signal } = this.#stopping;
    // These lists are consistent.
    const [{ items: nodes }, { items: pods }] = await Promise.all([
      this.#direct.nodes.list({ signal }),
      this.#direct.pods.list({ signal }),
    ]);
    const live = new Set(nodes.map(({ name }) => name));
    const gone = this.#view.followed().filter((node) => !live.has(node));
    const known = this.#view.counts.nodes - gone.length;
    return [
      ...(known === nodes.length ? [] : [`${known} nodes are known, but there are ${nodes.length}`]),
      ...this.#replica.faults({ nodes, pods, podWatches: [...this.#pods.present.values()] }),
    ];
  }

  get #podsPath(): string {
    return `/api/v1/namespaces/${this.#cluster.namespace}/pods`;
  }

  #note(what: string): void {
    this.story.push(`${Date.now() - this.#startedAt} ms: ${what}`);
  }
}
