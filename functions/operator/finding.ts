import type { ClusterName } from '#shared/eviction/identity.ts';

/** What was looked at, what is so, and what to do about it. */
export interface Finding {
  /** Absent: the fleet. */
  readonly cluster?: ClusterName;
  readonly what:
    | 'store'
    | 'registry'
    | 'process'
    | 'versions'
    | 'identity'
    | 'queues'
    | 'dead letters'
    | 'quotas'
    | 'alarms'
    | 'reach'
    | 'rights'
    | 'clocks'
    | 'relay'
    | 'built-in'
    | 'takeover';
  readonly verdict: 'ok' | 'warn' | 'bad';
  /** One sentence. */
  readonly says: string;
  /** One sentence; absent: nothing is to be done. */
  readonly fix?: string;
}

/** A finding before it is said of which cluster it is, if of one. */
export type Told = Omit<Finding, 'cluster'>;

export const ok = (what: Told['what'], says: string): Told => ({ what, verdict: 'ok', says });
export const warn = (what: Told['what'], says: string, fix: string): Told => ({
  what,
  verdict: 'warn',
  says,
  fix,
});
export const bad = (what: Told['what'], says: string, fix: string): Told => ({
  what,
  verdict: 'bad',
  says,
  fix,
});
