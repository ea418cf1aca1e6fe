import type { ResourceName } from '../objects/kinds.ts';
import { OWNED } from '../objects/ownership.ts';
import type { ObjectStore } from '../objects/store.ts';
import { daemonSetController } from './daemonsets.ts';
import { deploymentController } from './deployments.ts';
import { disruptionController } from './disruption.ts';
import { eventExpiry } from './events.ts';
import { garbageCollector } from './garbage-collector.ts';
import { kubelet, podGarbageCollector } from './kubelet.ts';
import { type Controller, type ControllerLog, ReconcileLoop } from './reconcile-loop.ts';
import { replicaSetController } from './replicasets.ts';
import { scheduler } from './scheduler.ts';
import { statefulSetController } from './statefulsets.ts';

/** The components that act on the objects: kubelets, a scheduler, and the controllers of workloads. */
export class Controllers {
  readonly #store: ObjectStore;
  readonly #log: ControllerLog | undefined;
  readonly #loops: { readonly loop: ReconcileLoop; readonly watches: readonly ResourceName[] }[] = [];
  #unsubscribe = () => {};

  constructor(store: ObjectStore, log?: ControllerLog) {
    this.#store = store;
    this.#log = log;
    this.#add(kubelet(store), ['pods', 'nodes']);
    this.#add(scheduler(store), ['pods', 'nodes']);
    this.#add(podGarbageCollector(store), ['pods', 'nodes']);
    this.#add(eventExpiry(store), ['events']);
    // StatefulSets come first, so that the demo's database starts on the first node.
    this.#add(statefulSetController(store), ['statefulsets', 'pods']);
    this.#add(deploymentController(store), ['deployments', 'replicasets', 'pods']);
    this.#add(replicaSetController(store), ['replicasets', 'pods']);
    this.#add(daemonSetController(store), ['daemonsets', 'pods', 'nodes']);
    this.#add(disruptionController(store), [
      'poddisruptionbudgets',
      'pods',
      'deployments',
      'replicasets',
      'statefulsets',
    ]);
    this.#add(garbageCollector(store), ['deployments', 'statefulsets', 'daemonsets', ...OWNED]);
  }

  /** Reconciles all objects now and after every change. */
  start(): void {
    this.#unsubscribe = this.#store.subscribe(({ resource }) => {
      for (const { loop, watches } of this.#loops) if (watches.includes(resource)) loop.trigger();
    });
    for (const { loop } of this.#loops) loop.trigger();
  }

  /** Stops permanently; objects stay unchanged. */
  stop(): void {
    this.#unsubscribe();
    for (const { loop } of this.#loops) loop.stop();
  }

  #add(controller: Controller, watches: readonly ResourceName[]): void {
    const loop = new ReconcileLoop(controller, () => this.#store.now(), this.#log);
    this.#loops.push({ loop, watches });
  }
}
