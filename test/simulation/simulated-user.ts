import { type EpochMs, type NodeName, nodeName } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE, type Taint, type Toleration } from '#shared/taints/taint.ts';
import type { LiveCluster, PodSpec } from './live-cluster.ts';
import type { Scene } from './scene.ts';

const NODES = [nodeName('n1'), nodeName('n2')] as const;
const KEYS = ['a', 'b', NODE_NOT_READY, NODE_UNREACHABLE] as const;
/** Tolerated for so many seconds; beyond 900 a timer needs a schedule. */
const SECONDS = [0, 1, 5, 20, 60, 120, 300, 1000, 2500] as const;
const ACTIONS = 30;
const MOST_PODS = 8;

/** Somebody, and the cluster's own controllers: taints come and go, nodes, pods and tolerations too. */
export class SimulatedUser {
  readonly #scene: Scene;
  readonly #cluster: LiveCluster;
  readonly #until: EpochMs;
  #pods = 0;

  constructor(scene: Scene, until: EpochMs) {
    this.#cluster = scene.cluster;
    this.#scene = scene;
    this.#until = until;
    const { clock, cluster, random } = scene;
    for (const node of NODES) cluster.setNode(node, []);
    for (let pods = random.between(1, 5); pods > 0; pods--) this.#createPod();
    for (let actions = 0; actions < ACTIONS; actions++) {
      clock.setAlarm(random.between(clock.now(), until), () => this.#act());
    }
    cluster.onGone = (spec) => this.#replace(spec);
  }

  #act(): void {
    const { random } = this.#scene;
    const act = random.pick([
      () => this.#taint(),
      () => this.#taint(),
      () => this.#untaint(),
      () => this.#flap(),
      () => this.#createPod(),
      () => this.#changeTolerations(),
      () => this.#changeTolerations(),
      () => this.#deletePod(),
      () => this.#deleteOrCreateNode(),
    ]);
    act();
  }

  #taint(): void {
    const { random } = this.#scene;
    const name = random.pick(NODES);
    const key = random.pick(KEYS);
    const value = random.chance(0.3) ? 'v' : '';
    const others = this.#taintsOf(name).filter((taint) => taint.key !== key);
    this.#cluster.setNode(name, [...others, { key, value, effect: 'NoExecute' }]);
    if (random.chance(0.4)) this.#untaintInTheNick(name, key);
  }

  /** Just about when pods have to go that tolerate the taint for as long as many do. */
  #untaintInTheNick(name: NodeName, key: string): void {
    const { clock, random } = this.#scene;
    const afterMs = Math.max(0, random.pick(SECONDS) * 1000 + random.between(-2_000, 2_000));
    clock.setAlarm(clock.now() + afterMs, () => {
      const taints = this.#taintsOf(name);
      const kept = taints.filter((taint) => taint.key !== key);
      if (kept.length < taints.length && clock.now() < this.#until) this.#cluster.setNode(name, kept);
    });
  }

  #untaint(): void {
    const { random } = this.#scene;
    const name = random.pick(NODES);
    const taints = this.#taintsOf(name);
    const kept = random.chance(0.5) ? [] : taints.slice(1);
    if (this.#cluster.liveNodes.has(name)) this.#cluster.setNode(name, kept);
  }

  /** All taints of a node go, and come back soon. */
  #flap(): void {
    const { clock, random } = this.#scene;
    const name = random.pick(NODES);
    const taints = this.#taintsOf(name);
    if (taints.length === 0) return;
    this.#cluster.setNode(name, []);
    clock.setAlarm(clock.now() + random.between(100, 30_000), () => this.#cluster.setNode(name, taints));
  }

  #deleteOrCreateNode(): void {
    const name = this.#scene.random.pick(NODES);
    if (this.#cluster.liveNodes.has(name)) this.#cluster.removeNode(name);
    else
      this.#cluster.setNode(name, this.#scene.random.chance(0.5) ? [] : [{ key: 'a', effect: 'NoExecute' }]);
  }

  #createPod(): void {
    const { random } = this.#scene;
    if (this.#cluster.livePods.size >= MOST_PODS) return;
    this.#pods += 1;
    this.#cluster.createPod({
      namespace: 'default',
      name: `p${this.#pods}`,
      node: random.pick(NODES),
      tolerations: this.#tolerations(),
      graceMs: random.pick([0, 500, 5_000, 30_000]),
    });
  }

  /** A StatefulSet's pod comes back under its name. */
  #replace(spec: PodSpec): void {
    const { clock, random, weather } = this.#scene;
    if (weather.calm || random.chance(0.5)) return;
    clock.setAlarm(clock.now() + random.between(0, 3_000), () => {
      if (this.#cluster.livePods.has(`${spec.namespace}/${spec.name}`)) return;
      this.#cluster.createPod({ ...spec, node: random.pick(NODES) });
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
    const { random } = this.#scene;
    return KEYS.flatMap((key): readonly Toleration[] => {
      if (random.chance(0.15)) return [];
      const toleration = { key, operator: 'Exists', effect: 'NoExecute' };
      if (random.chance(0.2)) return [toleration];
      return [{ ...toleration, tolerationSeconds: BigInt(random.pick(SECONDS)) }];
    });
  }

  #taintsOf(name: NodeName): readonly Taint[] {
    return this.#cluster.liveNodes.get(name)?.taints ?? [];
  }
}
