/** A taint's effect. Only `NoExecute` evicts; the others matter to the scheduler. */
export type Effect = 'NoExecute' | 'NoSchedule' | 'PreferNoSchedule';

/** `core/v1.Taint`. An absent `value` and `""` mean the same. `effect` is kept as sent, known or not. */
export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  /** A NoSchedule taint that the cluster's policy reads as NoExecute (see `evictingTaints`). */
  readonly virtual?: true;
}

/** Reports whether a taint evicts: by itself, or because policy reads it so. */
export const evicts = ({ effect, virtual }: Taint): boolean => effect === 'NoExecute' || virtual === true;

/** The taint the node controller sets when a node's `Ready` condition is `False`. */
export const NODE_NOT_READY = 'node.kubernetes.io/not-ready';
/** The taint the node controller sets when a node's `Ready` condition is `Unknown`. */
export const NODE_UNREACHABLE = 'node.kubernetes.io/unreachable';
/** The taint with which a person marks a node as shut down: its pods are detached from their volumes. */
export const NODE_OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
/** The taints with which the node controller marks a node as down. */
export const DOWN_KEYS: readonly string[] = [NODE_NOT_READY, NODE_UNREACHABLE];

export interface LiveTaint extends Taint {
  /** Epoch ms. Only the node controllers set it. */
  readonly timeAdded?: number;
}

/** `core/v1.Toleration`. An absent field and `""` mean the same. A double corrupts an int64 beyond 2^53. */
export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: bigint;
  /** Index in the pod's list, if the list was cut to the tolerations that decide. */
  readonly index?: number;
}

/** The API server's feature gates that affect matching. */
export interface MatchOptions {
  /** Gate `TaintTolerationComparisonOperators`: `Lt` and `Gt` can match (KEP-5471). */
  readonly comparisonOperators: boolean;
}

/** Returns a taint as kubectl prints it: `key=value:effect`, without `=` when it has no value. */
export function taintText(taint: Taint): string {
  return `${taint.key}${taint.value ? `=${taint.value}` : ''}:${taint.effect}`;
}
