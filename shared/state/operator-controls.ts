import { defined } from '#shared/defined.ts';
import { isOn } from '#shared/eviction/gate.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { OperatorControls } from './rules-store.ts';

export function current({ stops, holds, ...orders }: OperatorControls, now: EpochMs): OperatorControls {
  return {
    ...orders,
    stops: stops.filter(({ until }) => isOn(until, now)),
    holds: holds.filter(({ until }) => isOn(until, now)),
  };
}

export const untilText = ({ until }: { readonly until?: EpochMs | undefined }): string =>
  until === undefined ? '' : ` until ${timeText(until)}`;

export const nextOrders = (
  { revision }: OperatorControls,
  { policy, stops, resumedFrom, holds }: Omit<OperatorControls, 'revision'>,
): OperatorControls => ({
  revision: revision + 1,
  ...defined({ policy, resumedFrom }),
  stops,
  holds,
});
