import type { NodeName } from '#shared/eviction/identity.ts';
import type { LiveNode } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';

/** Maximum memory for the nodes of one cluster: 5,000 nodes need 2 MiB, 100,000 some 40 MiB. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Memory for a node besides its strings. */
const NODE_BYTES = 256;

/**
 * Limits how much of a relay's memory the nodes of one cluster take, so that no cluster takes the memory of the others.
 */
export class NodeRoom {
  readonly #nodes = new Map<NodeName, number>();
  #bytes = 0;

  /** Counts a node, perhaps in place of its earlier state. Throws `ApiError` if there is no room for it. */
  keep(node: LiveNode): void {
    const bytes = bytesOf(node) + this.#bytes - (this.#nodes.get(node.name) ?? 0);
    assertFits(bytes);
    this.#bytes = bytes;
    this.#nodes.set(node.name, bytesOf(node));
  }

  forget(name: NodeName): void {
    this.#bytes -= this.#nodes.get(name) ?? 0;
    this.#nodes.delete(name);
  }

  /** Counts a complete list of nodes. */
  replace(nodes: readonly LiveNode[]): void {
    this.#nodes.clear();
    this.#bytes = 0;
    for (const node of nodes) this.keep(node);
  }
}

/** A list of nodes that grows up to the maximum memory. */
export class NodeList {
  readonly nodes: LiveNode[] = [];
  #bytes = 0;

  /** Adds a node. Throws `ApiError` if there is no room for it. */
  push(node: LiveNode): void {
    this.#bytes += bytesOf(node);
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

const bytesOf = ({ name, resourceVersion, zone = '', taintsStamp = '', taints }: LiveNode): number =>
  taints.reduce(
    (sum, { key, value = '', effect }) => sum + key.length + value.length + effect.length,
    NODE_BYTES + name.length + resourceVersion.length + zone.length + taintsStamp.length,
  );
