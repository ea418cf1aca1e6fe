/** Where a fleet is, as an operator says it. */
export interface FleetChoice {
  /** The state directory of an `npm start`; goes before `table`. */
  readonly state?: string;
  /** The table of a deployment. Absent, as `state` is: whichever is at hand. */
  readonly table?: string;
  /** The context of a cluster that all is kept in; goes before both. */
  readonly inClusterContext?: string;
  /** Of it, the namespace; absent: the one that it is deployed to by default. */
  readonly inClusterNamespace?: string;
}

/** And by which context of a kubeconfig a cluster is asked, in place of the way by which the service reaches it. */
export interface LiveChoice extends FleetChoice {
  readonly context?: string;
  /** The file it is in; absent: where kubectl looks. */
  readonly kubeconfig?: string;
}
