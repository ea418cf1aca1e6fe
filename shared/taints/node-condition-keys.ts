/** The taint the node controller sets when a node's `Ready` condition is `False`. */
export const NODE_NOT_READY = 'node.kubernetes.io/not-ready';
/** The taint the node controller sets when a node's `Ready` condition is `Unknown`. */
export const NODE_UNREACHABLE = 'node.kubernetes.io/unreachable';
