declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** The name a cluster is registered under; unique in the fleet. Never contains `#`. */
export type ClusterName = Branded<'ClusterName'>;
/** `Node.metadata.name`; unique in its cluster only. */
export type NodeName = Branded<'NodeName'>;
/** `Pod.metadata.uid`; a pod recreated under the same name has another one. */
export type PodUid = Branded<'PodUid'>;

export const clusterName = (text: string): ClusterName => text as ClusterName;
export const nodeName = (text: string): NodeName => text as NodeName;
export const podUid = (text: string): PodUid => text as PodUid;

/** One node of one cluster: the unit of sharding, of locking and of timers. */
export interface NodeRef {
  readonly cluster: ClusterName;
  readonly node: NodeName;
}

/** Returns a node's key within the fleet. A node's name has no `#`, so the last one separates. */
export const nodeKey = (ref: NodeRef): string => `${ref.cluster}#${ref.node}`;

/** The inverse of {@link nodeKey}. */
export function parseNodeKey(key: string): NodeRef {
  const at = key.lastIndexOf('#');
  return { cluster: clusterName(key.slice(0, at)), node: nodeName(key.slice(at + 1)) };
}

export interface ClusterUids {
  /** The UID of the namespace `kube-system`. */
  readonly system?: string;
  /** The UIDs of the first nodes by name. */
  readonly nodes: readonly string[];
}

/** Reports whether UIDs identify a cluster. A cluster without nodes may have none that can be read. */
export const identifies = (uids: ClusterUids | undefined): uids is ClusterUids => isSameCluster(uids, uids);

/** Reports whether two reads were of one cluster. Nodes decide where one of the reads has no `system`. */
export const isSameCluster = (one: ClusterUids | undefined, other: ClusterUids | undefined): boolean =>
  one?.system !== undefined && other?.system !== undefined
    ? one.system === other.system
    : one?.nodes.some((uid) => other?.nodes.includes(uid)) === true;

export const sameClusterText = (name: string, other: string): string =>
  `${name} and ${other} are the same cluster, which is managed as ${other}: name only one of the two.`;

export interface PodRef {
  readonly namespace: string;
  readonly name: string;
}
