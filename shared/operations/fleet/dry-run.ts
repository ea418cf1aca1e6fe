/** Options of a change that can be previewed. */
export interface DryRun {
  /** True: reject and count as the change would, and change nothing. */
  readonly dryRun?: boolean;
}
