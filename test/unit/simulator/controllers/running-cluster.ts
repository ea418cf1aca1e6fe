import { afterEach, beforeEach, mock } from 'node:test';
import { Controllers } from '#simulator/controllers/controllers.ts';
import type { Objects, PodObject, ResourceName } from '#simulator/objects/kinds.ts';
import type { ObjectStore } from '#simulator/objects/store.ts';
import { aNode, aStore, inDefault, NOW, podsOf, unscoped } from '../builders.ts';

export type Workload = 'deployments' | 'statefulsets' | 'daemonsets';

/** A cluster with three nodes and all controllers, on a clock that advances only on request. */
export class RunningCluster {
  store: ObjectStore = aStore();
  #controllers: Controllers | undefined;

  begin(): void {
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW });
    this.store = aStore({ clock: { now: () => Date.now() } });
    for (const name of ['node-1', 'node-2', 'node-3']) this.store.create('nodes', '', aNode(name));
    this.start();
  }

  /** Starts controllers that know nothing of the cluster. */
  start(): void {
    const error = (_: string, { error: thrown }: { readonly error?: unknown }) => {
      throw thrown;
    };
    this.#controllers = new Controllers(this.store, { error });
    this.#controllers.start();
  }

  stop(): void {
    this.#controllers?.stop();
  }

  end(): void {
    this.stop();
    mock.timers.reset();
  }

  /** Advances the time second by second, because timers set in one second may fire in the next. */
  pass(seconds: number): void {
    for (let passed = 0; passed < seconds; passed += 1) mock.timers.tick(1000);
  }

  /** Creates a workload with pods labeled `app=<name>`. */
  run<W extends Workload>(resource: W, name: string, spec: object = {}): Objects[W] {
    const body = { metadata: { name }, spec: { ...podsOf(name), ...spec } };
    return this.store.create(resource, 'default', body);
  }

  /** Changes fields of a spec. */
  change<R extends ResourceName>(resource: R, name: string, spec: object): void {
    const ref = resource === 'nodes' ? unscoped(name) : inDefault(name);
    const changed = (current: Objects[R]) => ({ ...current, spec: { ...Object(current)['spec'], ...spec } });
    this.store.update(resource, ref, 'main', changed);
  }

  taint(node: string, ...taints: readonly object[]): void {
    this.change('nodes', node, { taints });
  }

  label(node: string, labels: Readonly<Record<string, string>>): void {
    this.store.update('nodes', unscoped(node), 'main', (current) => ({
      ...current,
      metadata: { ...current.metadata, labels },
    }));
  }

  pods(prefix = ''): readonly PodObject[] {
    return this.store.all('pods').filter(({ metadata }) => metadata.name.startsWith(prefix));
  }

  names(prefix = ''): readonly string[] {
    return this.pods(prefix)
      .map(({ metadata }) => metadata.name)
      .sort();
  }

  nodesOf(prefix: string): readonly string[] {
    return this.pods(prefix)
      .map(({ spec }) => spec.nodeName ?? '')
      .sort();
  }

  images(prefix: string): readonly (string | undefined)[] {
    return this.pods(prefix).map(({ spec }) => spec.containers[0]?.image);
  }

  /** Returns the number of Events with a reason. */
  countEvents(reason: string): number {
    return this.store.all('events').filter((event) => event.reason === reason).length;
  }
}

/** Runs a cluster during each test of a file. */
export function runningCluster(): RunningCluster {
  const cluster = new RunningCluster();
  beforeEach(() => cluster.begin());
  afterEach(() => cluster.end());
  return cluster;
}

/** The template of pods that run this image. */
export const templateOf = (app: string, image: string) =>
  podsOf(app, { containers: [{ name: 'main', image }] }).template;
