import pMap from 'p-map';
import { NotHereError } from '#test/bench/scenario.ts';
import type { ProcessUsage } from '#test/cluster/rig/process-usage.ts';
import { runName, type Span, TestCluster } from '#test/cluster/rig/test-cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { WatchedToleration } from '#test/cluster/rig/watched.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';
import type { Contender } from './contender.ts';

/** Concurrent requests while nodes and pods are created, and nodes tainted. */
const PARALLEL = 48;
const SETTLED_WITHIN_MS = 300_000;
/** Events arrive after the deletions that they report; the last one has arrived when none came for this long. */
const EVENTS_QUIET_MS = 3_000;
const TAINT = { key: 'bench' };

/** The pods on each node. */
export interface Shape {
  readonly nodes: number;
  readonly podsPerNode: number;
  /** Returns the tolerations of a node's pod, by its number; absent: none. */
  readonly tolerations?: (pod: number) => readonly WatchedToleration[];
}

/** A pod that was evicted, and the time at which its node was tainted. */
export type Evicted = PodLife & { readonly number: number; readonly tainted: Span };

/** The result of a contender with a population whose nodes were all tainted simultaneously. */
export interface Eviction {
  /** The pods that were evicted within the given time. */
  readonly pods: readonly Evicted[];
  /** The time from the first observed taint to the last observed eviction. */
  readonly tookMs: number;
  /** The number of pods with at least one Event. */
  readonly announced: number;
  /** The usage just before the taints, and after the last eviction. */
  readonly before: ProcessUsage | undefined;
  readonly after: ProcessUsage | undefined;
}

/** Nodes and their pods on the cluster of `KUBECONFIG`, which are evicted and re-created. */
export class Population {
  readonly #cluster: TestCluster;
  readonly #shape: Shape;
  readonly #nodes: readonly string[];
  /** Pods by node and number. */
  readonly #pods = new Map<string, PodLife & { readonly number: number }>();
  #made = 0;

  private constructor(cluster: TestCluster, shape: Shape, nodes: readonly string[]) {
    this.#cluster = cluster;
    this.#shape = shape;
    this.#nodes = nodes;
  }

  /** Creates the nodes. Throws `NotHereError` without a cluster. */
  static async on(shape: Shape): Promise<Population> {
    if (!process.env['KUBECONFIG'] || !process.env['KCM_BIN']) {
      throw new NotHereError(
        'KUBECONFIG is to name a disposable cluster without the taint-eviction-controller, and KCM_BIN a kube-controller-manager of Kubernetes 1.36; `.ci/bench` has both.',
      );
    }
    const cluster = await TestCluster.open('KUBECONFIG', runName());
    const numbers = Array.from({ length: shape.nodes }, (_, index) => index);
    const nodes = await pMap(numbers, (index) => cluster.addNode(`${index}`), { concurrency: PARALLEL });
    // The node controller does not run, so no heartbeats are needed.
    for (const node of nodes) cluster.kubelet.removeNode(node);
    return new Population(cluster, shape, nodes);
  }

  /** The number of pods before any eviction. */
  get size(): number {
    return this.#nodes.length * this.#shape.podsPerNode;
  }

  /**
   * Creates all missing pods, waits until they run, and lets a contender evict them for at most `withinMs`. The
   * contender ends afterwards.
   */
  async evictedBy(contender: Contender, withinMs: number): Promise<Eviction> {
    await this.#fill();
    const { witness } = this.#cluster;
    const eventsBefore = witness.taintManagerEvents().length;
    const evictor = await contender();
    try {
      const before = evictor.usage();
      const tainting = pMap(this.#nodes, (node) => this.#cluster.taint(node, TAINT), {
        concurrency: PARALLEL,
      });
      const spans = new Map((await tainting).map((span, index) => [this.#nodes[index] ?? '', span]));
      const firstAt = Math.min(...[...spans.values()].map(({ seenAt }) => seenAt));
      const pods = [...this.#pods.values()];
      const inTime = ({ evictedAt = Infinity }: PodLife) => evictedAt - firstAt <= withinMs;
      await until(
        'pods are evicted',
        () => {
          const over = Date.now() - firstAt > withinMs;
          return over || pods.every(({ evictedAt }) => evictedAt !== undefined);
        },
        withinMs + SETTLED_WITHIN_MS,
      );
      const complete = pods.every(inTime);
      if (complete) await this.#eventsEnd();
      const after = evictor.usage();
      const evicted = pods
        .filter(inTime)
        .map((pod) => ({ ...pod, tainted: spans.get(pod.node) ?? { requestedAt: 0, seenAt: 0 } }));
      const lastAt = Math.max(...evicted.map(({ evictedAt = 0 }) => evictedAt));
      const events = witness.taintManagerEvents().slice(eventsBefore);
      const announced = new Set(events.map(({ involvedObject }) => involvedObject['name'])).size;
      return { pods: evicted, tookMs: lastAt - firstAt, announced, before, after };
    } finally {
      await evictor.stop();
      await pMap(this.#nodes, (node) => this.#cluster.untaint(node), { concurrency: PARALLEL });
      await this.#evictedGo();
      this.#cluster.check();
    }
  }

  /** Taints one node, waits until its pods are evicted, and re-creates them, `times` times. */
  async evictedOneByOne(contender: Contender, times: number, withinMs: number): Promise<readonly Evicted[]> {
    await this.#fill();
    const [node = ''] = this.#nodes;
    const evictor = await contender();
    const evicted: Evicted[] = [];
    try {
      for (let time = 0; time < times; time++) {
        await this.#fill();
        const pods = [...this.#pods.values()];
        const tainted = await this.#cluster.taint(node, TAINT);
        await until(
          'the pod is evicted',
          () => pods.every(({ evictedAt }) => evictedAt !== undefined),
          withinMs,
        );
        evicted.push(...pods.map((pod) => ({ ...pod, tainted })));
        await this.#cluster.untaint(node);
        await this.#evictedGo();
      }
    } finally {
      await evictor.stop();
    }
    this.#cluster.check();
    return evicted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster.close();
  }

  async #fill(): Promise<void> {
    const { podsPerNode, tolerations } = this.#shape;
    const places = this.#nodes.flatMap((node) =>
      Array.from({ length: podsPerNode }, (_, number) => ({ node, number })),
    );
    const missing = places.filter(({ node, number }) => !this.#pods.has(`${node}/${number}`));
    await pMap(
      missing,
      async ({ node, number }) => {
        const pod = await this.#cluster.addPod(node, `bench-${this.#made++}`, {
          tolerations: tolerations?.(number) ?? [],
        });
        this.#pods.set(`${node}/${number}`, Object.assign(pod, { number }));
      },
      { concurrency: PARALLEL },
    );
  }

  async #evictedGo(): Promise<void> {
    const evicted = [...this.#pods].filter(([, { evictedAt }]) => evictedAt !== undefined);
    await until(
      'what was evicted is gone',
      () => evicted.every(([, { removedAt }]) => removedAt !== undefined),
      SETTLED_WITHIN_MS,
    );
    for (const [place] of evicted) this.#pods.delete(place);
  }

  async #eventsEnd(): Promise<void> {
    const { witness } = this.#cluster;
    let [count, at] = [witness.taintManagerEvents().length, Date.now()];
    await until(
      'no more Events come',
      () => {
        const now = witness.taintManagerEvents().length;
        if (now !== count) [count, at] = [now, Date.now()];
        return Date.now() - at > EVENTS_QUIET_MS;
      },
      SETTLED_WITHIN_MS,
    );
  }
}
