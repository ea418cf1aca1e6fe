import type { Preview } from '#shared/console/api.ts';

type Shown = Pick<Preview, 'confirm'> & { readonly pods: Pick<Preview['pods'], 'evictedNow'> };

/** Reports whether an act evicts no more pods than in the confirmed preview, and changes tolerations of the same objects. */
export const isConfirmed = (kind: string, shown: Shown | undefined, current: Shown): boolean =>
  shown !== undefined &&
  current.pods.evictedNow <= shown.pods.evictedNow &&
  (kind !== 'change-tolerations' || current.confirm === shown.confirm);
