import { podDeadlines } from '#shared/eviction/pod-deadline.ts';
import { DEFAULT_POLICY, type Rules } from '#shared/eviction/policy.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ForecastPod, NodeForecast } from './forecast.ts';

export interface BuiltIn {
  readonly state: 'on' | 'off' | 'unknown';
  readonly evidence: string;
}

/**
 * When the built-in controller, if enabled, evicts a pod; `undefined`: never. Our policies don't count, and it has no
 * timers for a deleted node.
 */
export function builtInDeadline(
  { taints, deletedAt }: Pick<NodeForecast, 'taints' | 'deletedAt'>,
  { tolerations }: Pick<ForecastPod, 'tolerations'>,
  podSince: EpochMs,
  { matching }: Pick<Rules, 'matching'>,
): EpochMs | undefined {
  if (deletedAt !== undefined) return undefined;
  const executing = taints.filter(({ virtual }) => !virtual);
  return podDeadlines(executing, undefined, { matching, policy: DEFAULT_POLICY })(tolerations, podSince)?.at;
}
