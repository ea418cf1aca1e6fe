import type { DeadlineCause } from '#shared/eviction/records.ts';

/** The relay saw the taint being added, or found it on the node when it connected. */
export type TaintOrigin = 'added' | 'preexisting';

/** A cause of a pod's deadline: one taint. */
export interface Cause extends Omit<DeadlineCause, 'known'> {
  readonly known: TaintOrigin;
}

export const originOf = (known: DeadlineCause['known']): TaintOrigin =>
  known === 'found' ? 'preexisting' : 'added';

/** Current names of policy settings that records store under former names. */
const SETTINGS: Readonly<Record<string, string>> = {
  tolerationSeconds: 'tolerationSecondsOverrides',
  virtualKeys: 'treatAsNoExecute',
};

export const settingOf = (policy: NonNullable<DeadlineCause['policy']>): string => SETTINGS[policy] ?? policy;

export const causesOf = (reasons: readonly DeadlineCause[]): readonly Cause[] =>
  reasons.map((reason) => ({
    ...reason,
    known: originOf(reason.known),
    ...(reason.policy === undefined ? {} : { policy: settingOf(reason.policy) }),
  }));
