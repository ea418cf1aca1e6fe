import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Delta } from './facts.ts';
import { type ClusterName, type NodeRef, nodeName, podUid } from './identity.ts';
import { MAX_SKEW_MS } from './skew.ts';

/**
 * No Node's name has an underscore, so partition and Node don't exist. A probe is an ordinary delta and an ordinary due
 * message: releases without probes read both, find nothing to do, and complete them.
 */
export const PROBE_NODE = nodeName('taintward_probe');

const [PLAIN, TRACED] = [podUid('probe'), podUid('probe-traced')];

/** A message that a relay sends the whole way of an eviction, to prove that evictions work. */
export interface Probe {
  /** By the relay's clock. The time identifies the probe, so no other clock has to agree. */
  readonly sentAt: EpochMs;
  /** A number that no other probe of the process has. */
  readonly sequence: number;
  /** Records that the delta function forwarded the probe: a write, requested only where probes don't come back. */
  readonly isTraced: boolean;
}

/**
 * A probe's timer fires immediately, even if the relay's clock is ahead. With clocks further apart than `MAX_SKEW_MS`,
 * evictions are held, and no probe has to come back.
 */
export const probeTimerAt = (sentAt: EpochMs): EpochMs => sentAt - MAX_SKEW_MS;

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

export function probeOf(delta: Delta): Probe | undefined {
  if (delta.kind !== 'pod-gone' || !isProbed(delta.ref)) return undefined;
  if (delta.uid !== PLAIN && delta.uid !== TRACED) return undefined;
  const { observedAt: sentAt, version, uid } = delta;
  return { sentAt, sequence: version.sequence, isTraced: uid === TRACED };
}
