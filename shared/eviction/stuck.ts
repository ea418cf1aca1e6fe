import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { NodeName, PodUid } from './identity.ts';

/** Time after its grace period from which a pod counts as stuck: kubelets take seconds. */
export const STUCK_AFTER_MS = 60_000;

/** An evicted pod whose grace period ended more than {@link STUCK_AFTER_MS} ago. */
export interface StuckPod {
  readonly node: NodeName;
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  /** When its grace period ended. */
  readonly gracePeriodEndedAt: EpochMs;
  /** The finalizers in the pod's metadata, which must be removed before the pod is. */
  readonly finalizers: readonly string[];
  /** The state of the pod's node: present, unreachable for the node controller, or deleted. */
  readonly nodeState: 'there' | 'unreachable' | 'gone';
}
