import { isOn } from '#shared/eviction/gate.ts';
import type { Stop } from '#shared/eviction/policy.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { parseAppliedPolicy } from './policy-document.ts';
import type { AuditEntry, OperatorControls } from './rules-store.ts';

/**
 * Returns the operator controls after a new policy document is applied, and the audit entry for it. Throws
 * `PolicyError`.
 */
export function policyOrders(found: OperatorControls, text: string, now: EpochMs) {
  const orders = current(found, now);
  const read = parseAppliedPolicy(text);
  const before = orders.policy?.text;
  const entry = {
    kind: 'policy',
    what: `applied a policy: ${read.mode}`,
    ...(before === undefined ? {} : { before }),
    after: text,
  } as const;
  return { next: { ...orders, policy: { text, read, revision: found.revision + 1 } }, entry };
}

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
  { policy, stop, holds }: Omit<OperatorControls, 'revision'>,
): OperatorControls => ({
  revision: revision + 1,
  ...(policy ? { policy } : {}),
  ...(stop ? { stop } : {}),
  holds,
});
