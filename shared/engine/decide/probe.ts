import type { NodeRef } from '#shared/eviction/identity.ts';
import { type Probe, probeTimerAt } from '#shared/eviction/probe.ts';
import type { ProofStore } from '#shared/state/proofs.ts';
import type { ApplyDeltasDeps } from './apply-deltas.ts';

export interface ProbeDeps extends ApplyDeltasDeps {
  /** Absent: no probe leaves a trace. */
  readonly trace?: Pick<ProofStore, 'notedDelta'>;
}

/**
 * Forwards a probe to the evictor by a timer, after reading lease and partition as for any delta. Never rejects: the
 * next probe comes soon, and one that is retried until it is a dead letter proves nothing.
 */
export async function passProbeOn(ref: NodeRef, probe: Probe, deps: ProbeDeps): Promise<void> {
  const { leaseEpoch, store, timers, trace, clock, log } = deps;
  try {
    await Promise.all([leaseEpoch(ref.cluster), store.load(ref, clock.now(), [])]);
    await timers.arm(ref, [probeTimerAt(probe.sentAt)]);
    if (probe.isTraced) await trace?.notedDelta(ref.cluster, probe.sentAt, clock.now());
  } catch (error) {
    log.warn('takeover.probe-failed', { cluster: ref.cluster, error });
  }
}
