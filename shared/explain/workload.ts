/** A workload: the last of the controllers behind pods. */
export interface Workload {
  readonly namespace: string;
  /** `Pod`: a pod without a controller, which nobody recreates. */
  readonly kind: string;
  readonly name: string;
}

/** Returns a workload's unique name in a cluster. */
export const workloadText = ({ namespace, kind, name }: Workload): string => `${namespace}/${kind}/${name}`;
