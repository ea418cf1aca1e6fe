import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';

/** An RFC 1123 subdomain. */
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Objects of one kind in memory, under the rules of a real API server. */
export class FakeObjects implements Objects {
  readonly #objects = new Map<string, KubernetesObject>();
  #version = 0;
  /** The number of writes that changed an object. */
  writes = 0;

  async get(name: string): Promise<unknown> {
    return structuredClone(this.#objects.get(name));
  }

  async *list(labels: Readonly<Record<string, string>> = {}): AsyncIterable<unknown> {
    const found = [...this.#objects.values()].filter(({ metadata }) =>
      Object.entries(labels).every(([key, value]) => metadata.labels?.[key] === value),
    );
    for (const object of found) yield structuredClone(object);
  }

  async create(object: KubernetesObject): Promise<unknown> {
    const { name } = object.metadata;
    if (!NAME.test(name) || name.length > 253) throw new ApiError(`${name} is no name.`, 422, 'Invalid');
    if (this.#objects.has(name)) return undefined;
    return this.#store(object);
  }

  async replace(object: KubernetesObject): Promise<unknown> {
    const stored = this.#objects.get(object.metadata.name);
    if (stored?.metadata.resourceVersion !== object.metadata.resourceVersion) return undefined;
    // The real API server writes nothing then, and responds as if it had.
    return isDeepStrictEqual(stored, JSON.parse(JSON.stringify(object))) ? stored : this.#store(object);
  }

  async remove(name: string, resourceVersion: string): Promise<void> {
    if (this.#objects.get(name)?.metadata.resourceVersion === resourceVersion) this.#objects.delete(name);
  }

  #store(object: KubernetesObject): KubernetesObject {
    this.writes += 1;
    this.#version += 1;
    const plain: KubernetesObject = JSON.parse(JSON.stringify(object));
    const stored = { ...plain, metadata: { ...plain.metadata, resourceVersion: `${this.#version}` } };
    this.#objects.set(stored.metadata.name, stored);
    return structuredClone(stored);
  }
}
