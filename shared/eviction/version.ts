/**
 * When a delta was true, as one total order per cluster: the epoch comes from the cluster's lease and grows
 * with every take-over, so whatever a relay that lost its lease still sends is older; the sequence is the
 * relay's own counter.
 */
export interface Version {
  readonly epoch: number;
  readonly sequence: number;
}

/** Negative when `a` is older than `b`, 0 when they are the same, positive when `a` is newer. */
export function compareVersions(a: Version, b: Version): number {
  return a.epoch - b.epoch || a.sequence - b.sequence;
}

/** The newer of two versions, or the one there is. */
export function newer(a: Version | undefined, b: Version | undefined): Version | undefined {
  if (!a || !b) return a ?? b;
  return compareVersions(a, b) < 0 ? b : a;
}
