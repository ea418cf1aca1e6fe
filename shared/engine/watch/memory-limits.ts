import { getHeapStatistics } from 'node:v8';
import type { PodFacts } from '#shared/eviction/facts.ts';
import type { NodeName } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';

const HEAP_BYTES = getHeapStatistics().heap_size_limit;
/** Memory for the pods of one cluster: 150,000 pods, the Kubernetes limit, take some 75 MiB of a relay's 512 MiB. */
const MAX_KEPT_BYTES = HEAP_BYTES / 3;
/** Maximum memory for pods that were listed or received and wait for the rest of a list. */
const MAX_PASSING_BYTES = HEAP_BYTES / 6;
/** Memory for a pod besides its strings, and for a toleration. */
const POD_BYTES = 256;
const TOLERATION_BYTES = 16;

type Roomy = Pick<PodFacts, 'uid' | 'namespace' | 'name' | 'owner'> & {
  readonly tolerations?: PodFacts['tolerations'];
  readonly leaving?: { readonly finalizers: readonly string[] };
};

/**
 * Limits the memory of one cluster's pods, so that no cluster takes the memory of the others. Returns a function that
 * admits pods, perhaps in place of their earlier states, and throws `ApiError` if there is no room for them. `kept`:
 * returns all that is kept now. It is called only if the pods that came since could have filled the room.
 */
export function podRoom(kept: () => Iterable<Roomy>): (pods: readonly LivePod[]) => void {
  /** Upper bound: the kept pods when they were last counted, and all pods that came since. */
  let held = 0;
  return (pods) => {
    const bytes = sumOf(pods, bytesOf);
    if (held + bytes > MAX_KEPT_BYTES) {
      held = sumOf(kept(), bytesOf);
      if (held + bytes > MAX_KEPT_BYTES) throw tooMany(MAX_KEPT_BYTES, 'a third');
    }
    held += bytes;
  };
}

/** Limits the memory for one cluster's pods that were listed or received and wait for the rest of a list. */
export class PassingPods {
  #bytes = 0;

  /** Returns the bytes to give back for the pod; `undefined`: there is no room for it. */
  take(pod: LivePod): number | undefined {
    const bytes = passingBytes(pod);
    if (this.#bytes + bytes > MAX_PASSING_BYTES) return undefined;
    this.#bytes += bytes;
    return bytes;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

export const tooManyPassing = (): ApiError => tooMany(MAX_PASSING_BYTES, 'a sixth');

const tooMany = (most: number, part: string): ApiError =>
  new ApiError(
    `The pods of its tainted nodes exceed ${Math.floor(most / 2 ** 20)} MiB, ${part} of the heap. If the cluster really has so many pods, give this process more memory.`,
    0,
  );

const bytesOf = ({ uid, namespace, name, owner, tolerations = [], leaving }: Roomy): number =>
  POD_BYTES +
  uid.length +
  namespace.length +
  name.length +
  (owner ? owner.kind.length + owner.name.length : 0) +
  sumOf(
    tolerations,
    ({ key = '', operator = '', value = '', effect = '' }) =>
      TOLERATION_BYTES + key.length + operator.length + value.length + effect.length,
  ) +
  sumOf(leaving?.finalizers ?? [], ({ length }) => length);

/** Returns a pod's memory with its labels and annotations, which are kept until the pod is handled. */
const passingBytes = (pod: LivePod): number =>
  bytesOf(pod) + textBytes(pod.labels) + textBytes(pod.annotations);

const textBytes = (texts: LivePod['labels'] = {}): number =>
  sumOf(Object.entries(texts), ([key, value]) => key.length + value.length);

function sumOf<T>(all: Iterable<T>, sizeOf: (each: T) => number): number {
  let sum = 0;
  for (const each of all) sum += sizeOf(each);
  return sum;
}

/** Maximum memory for the nodes of one cluster: 5,000 nodes need 2 MiB, 100,000 some 40 MiB. */
export const MAX_BYTES = 64 * 1024 * 1024;

const NODE_BYTES = 256;

/** Limits the memory of one cluster's nodes, so that no cluster takes the memory of the others. */
export class NodeRoom {
  readonly #nodes = new Map<NodeName, number>();
  #bytes = 0;

  /** Counts a node, perhaps in place of its earlier state. Throws `ApiError` if there is no room for it. */
  keep(node: LiveNode): void {
    const bytes = nodeBytes(node) + this.#bytes - (this.#nodes.get(node.name) ?? 0);
    assertFits(bytes);
    this.#bytes = bytes;
    this.#nodes.set(node.name, nodeBytes(node));
  }

  forget(name: NodeName): void {
    this.#bytes -= this.#nodes.get(name) ?? 0;
    this.#nodes.delete(name);
  }

  replace(nodes: readonly LiveNode[]): void {
    this.#nodes.clear();
    this.#bytes = 0;
    for (const node of nodes) this.keep(node);
  }
}

export class NodeList {
  readonly nodes: LiveNode[] = [];
  #bytes = 0;

  /** Throws `ApiError` if there is no room. */
  push(node: LiveNode): void {
    this.#bytes += nodeBytes(node);
    assertFits(this.#bytes);
    this.nodes.push(node);
  }
}

function assertFits(bytes: number): void {
  if (bytes <= MAX_BYTES) return;
  throw new ApiError(
    `Its nodes take more than ${MAX_BYTES / 1024 / 1024} MiB, which no cluster needs: is it a Kubernetes API server?`,
    0,
  );
}

const nodeBytes = ({ name, resourceVersion, zone = '', taintsStamp = '', taints }: LiveNode): number =>
  taints.reduce(
    (sum, { key, value = '', effect }) => sum + key.length + value.length + effect.length,
    NODE_BYTES + name.length + resourceVersion.length + zone.length + taintsStamp.length,
  );
