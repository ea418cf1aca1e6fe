import { isOn } from '#shared/eviction/gate.ts';
import type { Stop } from '#shared/eviction/policy.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { AuditEntry, OperatorControls } from './rules-store.ts';

/** Returns the audit entry for a new stop of all clusters. */
export function fleetStopEntry({ who, at, why, ...stop }: Stop): AuditEntry {
  return { who, at, kind: 'stop', what: `stopped evictions in all clusters${untilText(stop)}`, why };
}

/** Returns the operator controls without expired stops and holds. */
export function current({ stop, holds, ...orders }: OperatorControls, now: EpochMs): OperatorControls {
  return {
    ...orders,
    ...(stop && isOn(stop.until, now) ? { stop } : {}),
    holds: holds.filter(({ until }) => isOn(until, now)),
  };
}

export const untilText = ({ until }: { readonly until?: EpochMs }): string =>
  until === undefined ? '' : ` until ${new Date(until).toISOString()}`;

/** Returns the operator controls that replace those that were `found`. */
export const nextOrders = (
  { revision }: OperatorControls,
  { policy, stop, resumedFrom, holds }: Omit<OperatorControls, 'revision'>,
): OperatorControls => ({
  revision: revision + 1,
  ...(policy ? { policy } : {}),
  ...(stop ? { stop } : {}),
  ...(resumedFrom ? { resumedFrom } : {}),
  holds,
});
