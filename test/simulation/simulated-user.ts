import { type NodeName, nodeName } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { type LiveTaint, NODE_NOT_READY, NODE_UNREACHABLE, type Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { Blackouts } from './blackouts.ts';
import type { LiveCluster, PodSpec } from './live-cluster.ts';
import type { Scene } from './scene.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { Episode } from './weather.ts';

export const TAINT_KEYS = ['a', 'b', NODE_NOT_READY, NODE_UNREACHABLE] as const;
/** Keys of the node controllers, which record when they set a taint. */
const TIMED_KEYS: readonly string[] = [NODE_NOT_READY, NODE_UNREACHABLE];
/** The seconds for which taints are tolerated; beyond 900 a timer needs a schedule. */
export const SECONDS = [0, 1, 5, 20, 60, 120, 300, 1000, 2500] as const;
/** The number of nodes with individual changes; further nodes are only tainted and untainted all at once. */
const ACTIVE_NODES = 2;
/** A number of tolerations that fits into a pod, but does not fit unchanged into a message with all other pods of its node. */
const HOG_TOLERATIONS = 3_000;
const HOG_CHANCE = 0.03;

/** A node that is never tainted: nothing is ever sent or stored about it. */
export const IDLE_NODE = nodeName('idle');

/** A user, and the cluster's own controllers: taints, nodes, pods and tolerations are added and removed. */
export class SimulatedUser {
  readonly #scene: Scene;
  readonly #cluster: LiveCluster;
  readonly #nodes: readonly NodeName[];
  readonly #active: readonly [NodeName, ...NodeName[]];
  #pods = 0;

  constructor(cluster: LiveCluster, nodes: number, scene: Scene) {
    this.#cluster = cluster;
    this.#scene = scene;
    const first = nodeName('n1');
    this.#nodes = [first, ...Array.from({ length: nodes - 1 }, (_, index) => nodeName(`n${index + 2}`))];
    this.#active = [first, ...this.#nodes.slice(1, ACTIVE_NODES)];
    for (const node of [...this.#nodes, IDLE_NODE]) cluster.setNode(node, [], 'kubelet');
    this.#createPods();
    for (const episode of scene.weather.episodes) this.#planEpisode(episode);
    new Blackouts(cluster, this.#nodes, scene);
    cluster.onGone = (spec) => this.#replace(spec);
  }

  #createPods(): void {
    const { random, weather } = this.#scene;
    const { mostPods } = weather.climate;
    // The pods of full nodes share few lists of tolerations, as the pods of a Deployment do.
    const few = Array.from({ length: 3 }, () => this.#tolerations());
    const many = mostPods > 8;
    for (const node of this.#nodes) {
      const pods = many ? random.between(mostPods / 2, mostPods) : random.between(1, 3);
      for (let count = 0; count < pods; count++) this.#createPod(node, many ? random.pick(few) : undefined);
    }
    this.#createPod(IDLE_NODE);
  }

  #planEpisode({ from, to }: Episode): void {
    const { plans, random, weather } = this.#scene;
    for (let acts = 0; acts < weather.climate.acts; acts++) {
      plans.add(random.between(from, to), () => this.#act(to));
    }
    if (this.#nodes.length > ACTIVE_NODES && weather.climate.blackouts === 0) this.#planSweep(from, to);
  }

  /** Plans that all nodes are tainted, and untainted long after. */
  #planSweep(from: EpochMs, to: EpochMs): void {
    const { plans, random, weather } = this.#scene;
    const outageMs = weather.climate.outageMs;
    const at = random.between(from, to);
    plans.add(at, () => {
      for (const node of this.#nodes) this.#setTaints(node, [{ key: 'a', effect: 'NoExecute' }], 'kubectl');
    });
    if (!outageMs) return;
    const lasting = random.between(...outageMs);
    weather.addOutage({
      cluster: this.#cluster.name,
      from: at + random.between(0, 60_000),
      to: at + lasting,
      silenceMs: random.pick([5, 3_000, 10_000]),
    });
  }

  #act(until: EpochMs): void {
    const { random } = this.#scene;
    const act = random.pick([
      () => this.#taint(until),
      () => this.#taint(until),
      () => this.#untaint(),
      () => this.#flap(),
      () => this.#createPod(random.pick(this.#active)),
      () => this.#changeTolerations(),
      () => this.#changeTolerations(),
      () => this.#deletePod(),
      () => this.#deleteOrCreateNode(),
      () => this.#cordon(),
    ]);
    act();
  }

  #taint(until: EpochMs): void {
    const { clock, random } = this.#scene;
    const name = random.pick(this.#active);
    const key = random.pick(TAINT_KEYS);
    const value = random.chance(0.3) ? 'v' : '';
    const others = this.#taintsOf(name).filter((taint) => taint.key !== key);
    const timeAdded = Math.floor(clock.now() / 1000) * 1000;
    const taint = { key, value, effect: 'NoExecute', ...(TIMED_KEYS.includes(key) ? { timeAdded } : {}) };
    this.#setTaints(name, [...others, taint], writerOf(key));
    if (random.chance(0.4)) this.#changeInTheNick(name, key, until);
  }

  /** Changes something near the deadline of pods that tolerate the taint for a common duration. */
  #changeInTheNick(name: NodeName, key: string, until: EpochMs): void {
    const { clock, random } = this.#scene;
    const afterMs = Math.max(0, random.pick(SECONDS) * 1000 + random.between(-2_000, 2_000));
    const at = clock.now() + afterMs;
    if (at >= until) return;
    const change = random.pick([
      () => this.#removeTaint(name, key, false),
      () => this.#removeTaint(name, key, true),
      () => this.#tolerateForEver(name),
    ]);
    clock.setAlarm(at, change);
  }

  /** `bringBack`: the taint is set again shortly after. */
  #removeTaint(name: NodeName, key: string, bringBack: boolean): void {
    const { clock, random } = this.#scene;
    const taints = this.#taintsOf(name);
    const kept = taints.filter((taint) => taint.key !== key);
    if (kept.length === taints.length) return;
    this.#setTaints(name, kept, writerOf(key));
    if (!bringBack) return;
    clock.setAlarm(clock.now() + random.between(50, 3_000), () => {
      if (this.#cluster.liveNodes.has(name)) this.#setTaints(name, taints, writerOf(key));
    });
  }

  #tolerateForEver(name: NodeName): void {
    const tolerations = [{ operator: 'Exists' }];
    for (const pod of [...this.#cluster.livePods.values()]) {
      if (pod.node === name && !pod.terminating && this.#scene.random.chance(0.5)) {
        this.#cluster.changeTolerations(pod, tolerations);
      }
    }
  }

  #untaint(): void {
    const { random } = this.#scene;
    const name = random.pick(this.#active);
    const taints = this.#taintsOf(name);
    if (taints.length > 0) this.#setTaints(name, random.chance(0.5) ? [] : taints.slice(1), 'kubectl');
  }

  /** Removes all taints of a node, and sets them again soon. */
  #flap(): void {
    const { clock, random } = this.#scene;
    const name = random.pick(this.#active);
    const taints = this.#taintsOf(name);
    if (taints.length === 0) return;
    this.#setTaints(name, [], 'kubectl');
    clock.setAlarm(clock.now() + random.between(100, 30_000), () => this.#setTaints(name, taints, 'kubectl'));
  }

  /** Adds or removes a taint that evicts no pods. */
  #cordon(): void {
    const name = this.#scene.random.pick(this.#active);
    if (!this.#cluster.liveNodes.has(name)) return;
    const taints = this.#taintsOf(name);
    const kept = taints.filter(({ effect }) => effect === 'NoExecute');
    const cordon = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
    this.#setTaints(name, kept.length < taints.length ? kept : [...taints, cordon], 'kubectl');
  }

  #deleteOrCreateNode(): void {
    const { random } = this.#scene;
    const name = random.pick(this.#active);
    if (this.#cluster.liveNodes.has(name)) this.#cluster.removeNode(name);
    else this.#setTaints(name, random.chance(0.5) ? [] : [{ key: 'a', effect: 'NoExecute' }], 'kubelet');
  }

  #setTaints(name: NodeName, taints: readonly LiveTaint[], manager: string): void {
    this.#cluster.setNode(name, taints, manager);
  }

  #createPod(node: NodeName, tolerations = this.#tolerations()): void {
    const { random, weather } = this.#scene;
    if (this.#cluster.livePods.size >= weather.climate.mostPods * this.#nodes.length) return;
    this.#pods += 1;
    this.#cluster.createPod({
      namespace: this.#pods % 3 === 0 ? 'other' : 'default',
      name: `p${this.#pods}`,
      app: this.#pods % 2 === 0 ? 'web' : 'batch',
      ...(this.#pods % 4 === 0 ? {} : { owner: { kind: 'ReplicaSet', name: `r${this.#pods % 5}` } }),
      node,
      tolerations,
      graceMs: random.pick([0, 500, 5_000, 30_000]),
    });
  }

  /** Creates a StatefulSet's pod again under its name. */
  #replace(spec: PodSpec): void {
    const { clock, random, weather } = this.#scene;
    if (weather.calm || random.chance(0.5)) return;
    clock.setAlarm(clock.now() + random.between(0, 3_000), () => {
      if (this.#cluster.livePods.has(`${spec.namespace}/${spec.name}`)) return;
      this.#cluster.createPod({ ...spec, node: random.pick(this.#active) });
    });
  }

  #changeTolerations(): void {
    const pod = this.#anyPod();
    if (pod) this.#cluster.changeTolerations(pod, this.#tolerations());
  }

  #deletePod(): void {
    const pod = this.#anyPod();
    if (pod) this.#cluster.terminate(pod);
  }

  #anyPod(): LivePod | undefined {
    const pods = [...this.#cluster.livePods.values()].filter(({ terminating }) => !terminating);
    return this.#scene.random.pick(pods);
  }

  #tolerations(): readonly Toleration[] {
    const { random, weather } = this.#scene;
    if (weather.climate.motley) return motleyTolerations(random);
    const deciding = TAINT_KEYS.flatMap((key): readonly Toleration[] => {
      if (random.chance(0.15)) return [];
      const toleration = { key, operator: 'Exists', effect: 'NoExecute' };
      if (random.chance(0.2)) return [toleration];
      return [{ ...toleration, tolerationSeconds: BigInt(random.pick(SECONDS)) }];
    });
    return random.chance(HOG_CHANCE) ? [...HOG, ...deciding] : deciding;
  }

  #taintsOf(name: NodeName): readonly LiveTaint[] {
    return this.#cluster.liveNodes.get(name)?.taints ?? [];
  }
}

/** Returns tolerations of all kinds, meaningful or not; API servers would accept most of them. The first matching one applies. */
const motleyTolerations = (random: SeededRandom): readonly Toleration[] =>
  Array.from({ length: random.between(0, 5) }, (): Toleration => {
    const key = random.pick(['', ...TAINT_KEYS]);
    const operator = key === '' ? 'Exists' : random.pick(['', 'Equal', 'Exists', 'Exists', 'exists', 'Gt']);
    const seconds = random.pick([undefined, -5n, 0n, 1n, 5n, 20n, 60n, 90n]);
    return {
      ...(key === '' && random.chance(0.5) ? {} : { key }),
      operator,
      ...(operator === 'Exists' ? {} : { value: random.pick(['', 'v', 'V']) }),
      ...(random.chance(0.3) ? {} : { effect: random.chance(0.8) ? 'NoExecute' : 'NoSchedule' }),
      ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
    };
  });

/** Tolerations of taints that no node has, with names as long as the API server allows. */
const HOG: readonly Toleration[] = Array.from({ length: HOG_TOLERATIONS }, (_, index) => ({
  key: `${'x'.repeat(250)}/${String(index).padStart(63, 'k')}`,
  operator: 'Exists',
  effect: 'NoExecute',
}));

/** Returns the writer that sets and removes the taints of a key; the API server records it. */
const writerOf = (key: string): string => (TIMED_KEYS.includes(key) ? 'kube-controller-manager' : 'kubectl');
