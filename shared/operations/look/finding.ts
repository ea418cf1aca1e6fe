import type { Condition } from '#shared/conditions/conditions.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';

export interface Finding {
  /** Absent: the fleet. */
  readonly cluster?: ClusterName;
  readonly check:
    | Condition['check']
    | 'registry'
    | 'versions'
    | 'identity'
    | 'quotas'
    | 'alarms'
    | 'connection'
    | 'permissions'
    | 'clocks'
    | 'built-in'
    | 'takeover'
    | 'tolerations';
  readonly verdict: 'ok' | 'warn' | 'bad';
  /** One sentence. */
  readonly message: string;
  /** One sentence. Absent: no action is required. */
  readonly remediation?: string;
}

export type ClusterFinding = Omit<Finding, 'cluster'>;

export const ok = (check: ClusterFinding['check'], message: string): ClusterFinding => ({
  check,
  verdict: 'ok',
  message,
});

const withRemediation =
  (verdict: 'warn' | 'bad') =>
  (check: ClusterFinding['check'], message: string, remediation: string): ClusterFinding => ({
    check,
    verdict,
    message,
    remediation,
  });

export const warn = withRemediation('warn');
export const bad = withRemediation('bad');
