/** Location of a fleet, as the operator specifies it. */
export interface FleetChoice {
  /** State directory of an `npm start`. Takes precedence over `table`. */
  readonly stateDir?: string;
  /** Table of a deployment. If `stateDir` is absent, too, the state directory in this directory is used. */
  readonly table?: string;
  /** Context of a cluster that holds all state. Takes precedence over both. */
  readonly inClusterContext?: string;
  /** Namespace of the state in that cluster. Absent: the default namespace. */
  readonly inClusterNamespace?: string;
}

/** A fleet, and the kubeconfig context by which its cluster is read, instead of the service's access. */
export interface LiveChoice extends FleetChoice {
  readonly context?: string;
  /** Kubeconfig file of the context. Absent: the files that kubectl reads. */
  readonly kubeconfig?: string;
}
