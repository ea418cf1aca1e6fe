import { defined } from '#shared/defined.ts';
import { isOn } from '#shared/eviction/gate.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { OperatorControls } from './rules-store.ts';

export function current({ stops, holds, ...orders }: OperatorControls, now: EpochMs): OperatorControls {
  return {
    ...orders,
    stops: stops.filter(({ until }) => isOn(until, now)),
    holds: holds.filter(({ until }) => isOn(until, now)),
  };
}

export const untilText = ({ until }: { readonly until?: EpochMs }): string =>
  until === undefined ? '' : ` until ${new Date(until).toISOString()}`;

export const nextOrders = (
  { revision }: OperatorControls,
  { policy, stops, resumedFrom, holds }: Omit<OperatorControls, 'revision'>,
): OperatorControls => ({
  revision: revision + 1,
  ...defined({ policy, resumedFrom }),
  stops,
  holds,
});
