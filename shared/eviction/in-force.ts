import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Mode, Policy } from './policy.ts';

/** Whether what ends at `until` counts at `now`; absent: it never ends. */
export const isOn = (until: EpochMs | undefined, now: EpochMs): boolean => until === undefined || now < until;

/** The mode that a policy has at `now`: once a pause is over, it is `enforce`. */
export const modeOf = ({ mode, pausedUntil }: Pick<Policy, 'mode' | 'pausedUntil'>, now: EpochMs): Mode =>
  mode === 'paused' && !isOn(pausedUntil, now) ? 'enforce' : mode;
