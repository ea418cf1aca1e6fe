import { Collection } from './collection.ts';
import { type NodeState, nodeNameOf, nodeObject, type Taint } from './node-object.ts';
import { type PodState, podObject } from './pod-object.ts';

export interface ClusterSize {
  readonly nodes: number;
  readonly podsPerNode: number;
}

/** The versions of initial objects are below this. */
const FIRST_VERSION = 10_000_000;
const CREATED_AT = '2026-11-01T10:00:00Z';
/** The interval at which kubelets report at least. */
const HEARTBEAT_SECONDS = 300;
const TICK_MS = 20;
/** The shares of pod events: a pod is deleted, or a deleted pod is created again; otherwise a pod changes. */
const GOES = 0.25;
const COMES = 0.5;

/** Returns a time in the API's format, truncated to the second. */
const apiTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

/** The objects of one cluster and their changes. */
export class SyntheticCluster {
  readonly nodes: Collection<NodeState>;
  readonly pods: Collection<PodState>;
  readonly #size: ClusterSize;
  readonly #numbers: ReadonlyMap<string, number>;
  readonly #vacant: number[] = [];
  #version = FIRST_VERSION;
  #churn: NodeJS.Timeout | undefined;

  constructor(size: ClusterSize) {
    this.#size = size;
    this.#numbers = new Map(Array.from({ length: size.nodes }, (_, node) => [nodeNameOf(node), node]));
    this.nodes = new Collection<NodeState>(
      {
        name: 'Node',
        places: size.nodes,
        initial: (place) => ({ version: 1000 + place, taints: [], heartbeatAt: CREATED_AT }),
        object: nodeObject,
        nodeOf: (place) => place,
      },
      FIRST_VERSION,
    );
    this.pods = new Collection<PodState>(
      {
        name: 'Pod',
        places: size.nodes * size.podsPerNode,
        initial: (place) => ({
          version: 1_000_000 + place,
          incarnation: 0,
          present: true,
          createdAt: CREATED_AT,
          changedAt: CREATED_AT,
        }),
        object: (place, state) => podObject(place, size.nodes, state),
        nodeOf: (place) => place % size.nodes,
      },
      FIRST_VERSION,
    );
    every(size.nodes / HEARTBEAT_SECONDS, () => this.#heartbeat());
  }

  /** The version of the last change in the cluster. */
  get version(): number {
    return this.#version;
  }

  /** Returns the number of a node by its name. */
  nodeNumber(name: string): number | undefined {
    return this.#numbers.get(name);
  }

  /** Writes the taints of nodes immediately, one after the other. */
  taint(nodes: readonly number[], taints: readonly Omit<Taint, 'timeAdded'>[]): void {
    const now = apiTime(Date.now());
    const written = taints.map((taint) => ({ ...taint, timeAdded: now }));
    for (const node of nodes) {
      const { heartbeatAt } = this.nodes.state(node);
      const state = { version: this.#next(), taints: written, taintedAt: now, heartbeatAt };
      this.nodes.put(node, state, 'MODIFIED');
    }
  }

  /** Creates, deletes, or changes this many pods per second from now on, anywhere. */
  churn(perSecond: number): void {
    clearInterval(this.#churn);
    this.#churn = every(perSecond, () => this.#podEvent());
  }

  /** Makes nodes report `count` times, as fast as possible. */
  heartbeats(count: number): void {
    for (let done = 0; done < count; done += 1) this.#heartbeat();
  }

  /** Forgets the history: a watch that resumes is answered with 410. */
  forget(): void {
    const version = this.#next();
    this.nodes.forget(version);
    this.pods.forget(version);
  }

  #next(): number {
    this.#version += 1;
    return this.#version;
  }

  #heartbeat(): void {
    const node = randomBelow(this.#size.nodes);
    const heartbeatAt = apiTime(Date.now());
    this.nodes.put(node, { ...this.nodes.state(node), version: this.#next(), heartbeatAt }, 'MODIFIED');
  }

  #podEvent(): void {
    const chance = Math.random();
    const vacant = chance < COMES && chance >= GOES ? this.#vacant.shift() : undefined;
    const place = vacant ?? randomBelow(this.pods.kind.places);
    const pod = this.pods.state(place);
    const now = apiTime(Date.now());
    const version = this.#next();
    if (vacant !== undefined) {
      const incarnation = pod.incarnation + 1;
      const state = { version, incarnation, present: true, createdAt: now, changedAt: now };
      this.pods.put(place, state, 'ADDED');
    } else if (pod.present && chance < GOES) {
      this.#vacant.push(place);
      this.pods.put(place, { ...pod, version, present: false }, 'DELETED');
    } else if (pod.present) {
      this.pods.put(place, { ...pod, version, changedAt: now }, 'MODIFIED');
    }
  }
}

const randomBelow = (limit: number): number => Math.floor(Math.random() * limit);

/** Calls `work` a number of times per second, evenly. */
function every(perSecond: number, work: () => void): NodeJS.Timeout | undefined {
  if (perSecond <= 0) return undefined;
  let last = performance.now();
  let owed = 0;
  return setInterval(() => {
    const now = performance.now();
    owed += ((now - last) / 1000) * perSecond;
    last = now;
    for (; owed >= 1; owed -= 1) work();
  }, TICK_MS);
}
