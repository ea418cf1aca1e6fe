import assert from 'node:assert/strict';
import type { Clock } from '#shared/time/clock.ts';
import { everything } from '#simulator/api/request.ts';
import { StatusError } from '#simulator/objects/status.ts';
import { ObjectStore, type ObjectStoreOptions } from '#simulator/objects/store.ts';

/** A whole second, because Kubernetes truncates times to seconds. */
export const NOW = Date.parse('2026-11-21T12:00:00Z');

export interface SettableClock extends Clock {
  at: number;
}

export const settableClock = (at = NOW): SettableClock => ({
  at,
  now() {
    return this.at;
  },
});

/** A store with the namespace `default` (version 1). */
export function aStore(options: Partial<ObjectStoreOptions> = {}): ObjectStore {
  const store = new ObjectStore({ clock: settableClock(), ...options });
  if (options.state === undefined) store.create('namespaces', '', { metadata: { name: 'default' } });
  return store;
}

export const aNode = (name: string, spec: object = {}): object => ({ metadata: { name }, spec });

export const aPod = (name: string, spec: object = {}, metadata: object = {}): object => ({
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'main', image: 'example.com/main:1' }], ...spec },
});

/** Selector and template of a workload with pods labeled `app=<app>`. */
export const podsOf = (app: string, spec: object = {}) => ({
  selector: { matchLabels: { app } },
  template: {
    metadata: { labels: { app } },
    spec: { containers: [{ name: 'main', image: 'example.com/main:1' }], ...spec },
  },
});

export const inDefault = (name: string) => ({ namespace: 'default', name });
export const unscoped = (name: string) => ({ namespace: '', name });
export const allOf = { namespace: '', selects: everything };

/** Returns the error with which the cluster refuses a request. */
export function refusalOf(request: () => unknown): StatusError {
  try {
    request();
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error));
    return error;
  }
  return assert.fail('was not refused');
}
