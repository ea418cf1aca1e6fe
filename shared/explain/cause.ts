import type { DeadlineCause } from '#shared/eviction/records.ts';

/**
 * Evidence for the start of a taint's countdown: the relay saw the taint being added, or found it on the node when
 * the relay connected.
 */
export type TaintOrigin = 'added' | 'preexisting';

/** A cause of a pod's deadline: one taint. */
export interface Cause extends Omit<DeadlineCause, 'known'> {
  readonly known: TaintOrigin;
}

/** Returns the origin of a taint, as programs and users read it. */
export const originOf = (known: DeadlineCause['known']): TaintOrigin =>
  known === 'found' ? 'preexisting' : 'added';

/** Current names of policy settings that records store under former names. */
const SETTINGS: Readonly<Record<string, string>> = {
  tolerationSeconds: 'tolerationSecondsOverrides',
  virtualKeys: 'treatAsNoExecute',
};

/** Returns the policy setting that changed how long a taint is tolerated, or `takeover`. */
export const settingOf = (policy: NonNullable<DeadlineCause['policy']>): string => SETTINGS[policy] ?? policy;

/** Returns the causes of an eviction, from the reasons of its record. */
export const causesOf = (reasons: readonly DeadlineCause[]): readonly Cause[] =>
  reasons.map((reason) => ({
    ...reason,
    known: originOf(reason.known),
    ...(reason.policy === undefined ? {} : { policy: settingOf(reason.policy) }),
  }));
