/** What runs pods: the last of the controllers behind them. */
export interface Workload {
  readonly namespace: string;
  /** `Pod`: nothing runs it, and nobody makes it anew. */
  readonly kind: string;
  readonly name: string;
}

/** A workload's own name in a cluster. */
export const workloadText = ({ namespace, kind, name }: Workload): string => `${namespace}/${kind}/${name}`;
