import type { DeadlineCause } from '#shared/eviction/records.ts';

/**
 * How the start of a taint's countdown is known: the relay saw the taint being added, or found it on the node when the relay
 * began to look.
 */
export type TaintOrigin = 'added' | 'preexisting';

/** Why a pod must be evicted, and by when, by one taint. */
export interface Cause extends Omit<DeadlineCause, 'known'> {
  readonly known: TaintOrigin;
}

/** The origin of a taint, as programs and people read it. */
export const originOf = (known: DeadlineCause['known']): TaintOrigin =>
  known === 'found' ? 'preexisting' : 'added';

/** The present names of policy settings that records name by the former ones. */
const SETTINGS: Readonly<Record<string, string>> = {
  tolerationSeconds: 'tolerationSecondsOverrides',
  virtualKeys: 'treatAsNoExecute',
};

/** The policy setting that changed how long a taint is tolerated, or `takeover`. */
export const settingOf = (policy: NonNullable<DeadlineCause['policy']>): string => SETTINGS[policy] ?? policy;

/** Causes of an eviction, from the reasons of its record. */
export const causesOf = (reasons: readonly DeadlineCause[]): readonly Cause[] =>
  reasons.map((reason) => ({
    ...reason,
    known: originOf(reason.known),
    ...(reason.policy === undefined ? {} : { policy: settingOf(reason.policy) }),
  }));
