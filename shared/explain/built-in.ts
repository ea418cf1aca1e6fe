import { podDeadlines } from '#shared/eviction/pod-deadline.ts';
import { DEFAULT_POLICY, type Rules } from '#shared/eviction/policy.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { AskedPod, NodeForecast } from './forecast.ts';

/** Whether the controller that is built into Kubernetes evicts in a cluster, and by which evidence. */
export interface BuiltIn {
  readonly state: 'on' | 'off' | 'unknown';
  readonly evidence: string;
}

/**
 * When the built-in controller evicts a pod, where it runs: by NoExecute taints alone and by the tolerations as they stand,
 * whatever our policies and notes say. A node that is gone it has forgotten. `undefined`: never.
 */
export function builtInDeadline(
  { taints, deletedAt }: Pick<NodeForecast, 'taints' | 'deletedAt'>,
  { tolerations }: Pick<AskedPod, 'tolerations'>,
  podSince: EpochMs,
  { matching }: Pick<Rules, 'matching'>,
): EpochMs | undefined {
  if (deletedAt !== undefined) return undefined;
  const executing = taints.filter(({ virtual }) => !virtual);
  const asGiven = tolerations.map(({ ownSeconds: _ownSeconds, ...toleration }) => toleration);
  return podDeadlines(executing, undefined, { matching, policy: DEFAULT_POLICY })(asGiven, podSince)?.at;
}
