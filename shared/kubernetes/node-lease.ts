import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { fieldsOf, textOf } from './http/api-json.ts';

/** The namespace in which every node has a Lease with its name. */
export const NODE_LEASE_NAMESPACE = 'kube-node-lease';

/** Returns a Lease's JSON as a {@link NodeLease}, as of a time of the API server's clock. */
export function projectNodeLease(json: unknown, asOf: EpochMs): NodeLease {
  const { renewTime, leaseDurationSeconds: seconds } = fieldsOf(fieldsOf(json)['spec']);
  const renewedAt = Date.parse(textOf(renewTime));
  return {
    asOf,
    ...(renewedAt >= 0 ? { renewedAt } : {}),
    ...(typeof seconds === 'number' && seconds > 0 ? { durationMs: seconds * 1000 } : {}),
  };
}
