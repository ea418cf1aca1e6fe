import type { DeadlineCause } from '#shared/eviction/records.ts';

/** The relay saw the taint being added, or found it on the node when it connected. */
export type TaintOrigin = 'added' | 'preexisting';

/** A cause of a pod's deadline: one taint. */
export interface Cause extends Omit<DeadlineCause, 'known'> {
  readonly known: TaintOrigin;
}

export const originOf = (known: DeadlineCause['known']): TaintOrigin =>
  known === 'found' ? 'preexisting' : 'added';

export const causesOf = (reasons: readonly DeadlineCause[]): readonly Cause[] =>
  reasons.map((reason) => ({ ...reason, known: originOf(reason.known) }));
