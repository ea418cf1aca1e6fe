import { mock } from 'node:test';
import { Controllers } from '#simulator/controllers/controllers.ts';
import type { PodObject } from '#simulator/objects/kinds.ts';
import type { ObjectStore } from '#simulator/objects/store.ts';
import { aNode, aStore, NOW } from '../builders.ts';

export const SECOND_MS = 1000;

/** Three nodes and all controllers, on a clock that advances only on request. */
export class RunningCluster {
  readonly store: ObjectStore;
  readonly #controllers: Controllers;

  constructor() {
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW });
    this.store = aStore({ clock: { now: () => Date.now() } });
    for (const name of ['node-1', 'node-2', 'node-3']) this.store.create('nodes', '', aNode(name));
    this.#controllers = new Controllers(this.store, {
      error: (_, { error }) => {
        throw error;
      },
    });
    this.#controllers.start();
  }

  stop(): void {
    this.#controllers.stop();
    mock.timers.reset();
  }

  /** Advances the time second by second, because timers set in one second may fire in the next. */
  pass(ms: number): void {
    for (let passed = 0; passed < ms; passed += SECOND_MS) mock.timers.tick(SECOND_MS);
  }

  pods(prefix = ''): readonly PodObject[] {
    return this.store.all('pods').filter(({ metadata }) => metadata.name.startsWith(prefix));
  }

  reasons(): readonly unknown[] {
    return this.store.all('events').map(({ reason }) => reason);
  }
}
