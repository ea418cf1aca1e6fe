import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Delta } from './facts.ts';
import { type ClusterName, type NodeRef, nodeName, podUid } from './identity.ts';
import { MAX_SKEW_MS } from './skew.ts';

/**
 * The node that probes are about. No node can have this name, by its underscore, so its partition is empty, and the API server knows no such
 * Node. A probe is an ordinary delta and an ordinary due message, so a release that knows no probes reads them, finds nothing to do, and ends them.
 */
export const PROBE_NODE = nodeName('taintward_probe');

const [PLAIN, TRACED] = [podUid('probe'), podUid('probe-traced')];

/** What a relay sends the whole way of an eviction, to prove that evictions work. */
export interface Probe {
  /** By the relay's clock. It names the probe, so no other clock has to agree. */
  readonly sentAt: EpochMs;
  /** Each probe of a process has another. */
  readonly sequence: number;
  /** Has the delta function note that it sent the probe on. That is a write, so it is asked for only where probes don't come back. */
  readonly isTraced: boolean;
}

/**
 * When the timer of a probe fires that was sent then by the relay's clock: immediately, although that clock may be ahead. Where clocks differ
 * by more, evictions are held, and no probe has to come back.
 */
export const probeTimerAt = (sentAt: EpochMs): EpochMs => sentAt - MAX_SKEW_MS;

/** When a probe was sent whose timer fires then. */
export const probeSentAt = (timerAt: EpochMs): EpochMs => timerAt + MAX_SKEW_MS;

export const probeRef = (cluster: ClusterName): NodeRef => ({ cluster, node: PROBE_NODE });

/** Reports whether a due message about this node is a probe. */
export const isProbed = ({ node }: Pick<NodeRef, 'node'>): boolean => node === PROBE_NODE;

/** A probe as a delta. No lease has epoch 0, so the delta decides nothing anywhere. */
export const probeDelta = (cluster: ClusterName, { sentAt, sequence, isTraced }: Probe): Delta => ({
  kind: 'pod-gone',
  ref: probeRef(cluster),
  uid: isTraced ? TRACED : PLAIN,
  version: { epoch: 0, sequence },
  observedAt: sentAt,
  taints: [],
});

/** The probe that a delta is; `undefined`: it is none. */
export function probeOf(delta: Delta): Probe | undefined {
  if (delta.kind !== 'pod-gone' || !isProbed(delta.ref)) return undefined;
  if (delta.uid !== PLAIN && delta.uid !== TRACED) return undefined;
  const { observedAt: sentAt, version, uid } = delta;
  return { sentAt, sequence: version.sequence, isTraced: uid === TRACED };
}
