import type { ClusterName } from '#shared/eviction/identity.ts';

/** What was looked at, what is so, and what to do about it. */
export interface Finding {
  /** Absent: the fleet. */
  readonly cluster?: ClusterName;
  readonly check:
    | 'store'
    | 'registry'
    | 'process'
    | 'versions'
    | 'identity'
    | 'queues'
    | 'dead letters'
    | 'quotas'
    | 'alarms'
    | 'connection'
    | 'permissions'
    | 'clocks'
    | 'relay'
    | 'built-in'
    | 'takeover';
  readonly verdict: 'ok' | 'warn' | 'bad';
  /** One sentence. */
  readonly message: string;
  /** One sentence; absent: nothing is to be done. */
  readonly remediation?: string;
}

/** A finding before it is said of which cluster it is, if of one. */
export type Told = Omit<Finding, 'cluster'>;

export const ok = (check: Told['check'], message: string): Told => ({ check, verdict: 'ok', message });
export const warn = (check: Told['check'], message: string, remediation: string): Told => ({
  ...{ check, verdict: 'warn', message, remediation },
});
export const bad = (check: Told['check'], message: string, remediation: string): Told => ({
  ...{ check, verdict: 'bad', message, remediation },
});
