import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Delta } from './facts.ts';
import { type ClusterName, type NodeRef, nodeName, podUid } from './identity.ts';
import { MAX_SKEW_MS } from './skew.ts';

/**
 * The node of probes. The underscore is not allowed in the name of a Node, so the node's partition is empty, and the
 * API server has no such Node. A probe is an ordinary delta and an ordinary due message. A release without probes
 * reads both, finds nothing to do, and completes them.
 */
export const PROBE_NODE = nodeName('taintward_probe');

const [PLAIN, TRACED] = [podUid('probe'), podUid('probe-traced')];

/** A message that a relay sends the whole way of an eviction, to prove that evictions work. */
export interface Probe {
  /** By the relay's clock. The time identifies the probe, so no other clock has to agree. */
  readonly sentAt: EpochMs;
  /** A number that no other probe of the process has. */
  readonly sequence: number;
  /**
   * Makes the delta function record that it forwarded the probe. Each record is a write, so it is requested only
   * where probes don't come back.
   */
  readonly isTraced: boolean;
}

/**
 * Returns when the timer of a probe fires that was sent at `sentAt`, by the relay's clock: immediately, even if that
 * clock is ahead. If clocks differ by more than `MAX_SKEW_MS`, evictions are held, and no probe has to come back.
 */
export const probeTimerAt = (sentAt: EpochMs): EpochMs => sentAt - MAX_SKEW_MS;

/** Returns when a probe was sent whose timer fires at `timerAt`. */
export const probeSentAt = (timerAt: EpochMs): EpochMs => timerAt + MAX_SKEW_MS;

export const probeRef = (cluster: ClusterName): NodeRef => ({ cluster, node: PROBE_NODE });

/** Reports whether a due message about this node is a probe. */
export const isProbed = ({ node }: Pick<NodeRef, 'node'>): boolean => node === PROBE_NODE;

/** Returns a probe as a delta. No lease has epoch 0, so the delta decides nothing anywhere. */
export const probeDelta = (cluster: ClusterName, { sentAt, sequence, isTraced }: Probe): Delta => ({
  kind: 'pod-gone',
  ref: probeRef(cluster),
  uid: isTraced ? TRACED : PLAIN,
  version: { epoch: 0, sequence },
  observedAt: sentAt,
  taints: [],
});

/** Returns the probe that a delta carries; `undefined`: the delta is no probe. */
export function probeOf(delta: Delta): Probe | undefined {
  if (delta.kind !== 'pod-gone' || !isProbed(delta.ref)) return undefined;
  if (delta.uid !== PLAIN && delta.uid !== TRACED) return undefined;
  const { observedAt: sentAt, version, uid } = delta;
  return { sentAt, sequence: version.sequence, isTraced: uid === TRACED };
}
