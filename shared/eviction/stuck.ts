import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { NodeName, PodUid } from './identity.ts';

/** A pod that was evicted and whose grace period has been over for longer than a minute. */
export interface StuckPod {
  readonly node: NodeName;
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  /** When its grace period was over. */
  readonly overAt: EpochMs;
  /** What has to be done before it may go, by the names that are in its metadata. */
  readonly finalizers: readonly string[];
  /** Of its node: there, not reached by the node controller, or deleted. */
  readonly nodeState: 'there' | 'unreachable' | 'gone';
}
