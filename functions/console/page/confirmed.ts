import type { Preview } from '#shared/console/api.ts';

interface Evicting {
  readonly pods: Pick<Preview['pods'], 'evictedNow'>;
}

/** Reports whether an act evicts no more pods than the preview that the operator confirmed. */
export const isConfirmed = (shown: Evicting | undefined, current: Evicting): boolean =>
  shown !== undefined && current.pods.evictedNow <= shown.pods.evictedNow;
