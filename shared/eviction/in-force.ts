import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Mode, Policy } from './policy.ts';

/** Reports whether something that ends at `until` is still in force at `now`. An absent `until` never ends. */
export const isOn = (until: EpochMs | undefined, now: EpochMs): boolean => until === undefined || now < until;

/** Returns the mode of a policy at `now`. Once a pause is over, the mode is `enforce`. */
export const modeOf = ({ mode, pausedUntil }: Pick<Policy, 'mode' | 'pausedUntil'>, now: EpochMs): Mode =>
  mode === 'paused' && !isOn(pausedUntil, now) ? 'enforce' : mode;
