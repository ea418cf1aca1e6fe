import type { GuardPolicy } from './policy.ts';

/** What a relay knows when it is to say that Taintward evicts in the built-in controller's place. */
export interface RenewalInputs {
  /** The policy's. While it is paused, nobody else is to evict either. */
  readonly mode: 'observe' | 'enforce' | 'paused';
  /** Whether policy's guard watches over nodes that are down, and does not only tell. */
  readonly guarded: boolean;
  /** How the relay hears the cluster. */
  readonly connectionState: 'syncing' | 'live' | 'disconnected';
  /** Whose NoExecute taints the takeover keeps out, and whose NoSchedule taints policy reads as NoExecute. */
  readonly keys: readonly string[];
  readonly virtualKeys: readonly string[];
  /** Whether the relay holds the cluster's lease, and renewed it lately. */
  readonly holdsLease: boolean;
  /** By how much the API server's clock is ahead of ours; `undefined`: not known well enough. */
  readonly skewMs: number | undefined;
  /** How the clocks of an API server and the relay differ, where by more than 30 s. */
  readonly clocksApart?: string | undefined;
}

/** Whether a guard watches over nodes that are down, and does not only tell. */
export const watchesDownNodes = ({ shadow, cluster, zone }: GuardPolicy): boolean =>
  !shadow && (cluster ?? zone) !== undefined;

const DISCONNECTED = 'the relay is disconnected from the cluster';
const UNSYNCED = "the relay hasn't listed the whole cluster yet";

/**
 * Why a relay may not say now that Taintward evicts in the built-in controller's place, in a few words; `undefined`: it
 * may, if evictions from nodes that are down proceed (`stallOf`). Whoever says so keeps that one from work, so everything must be as it ought to be.
 */
export function renewalBlocker(standing: RenewalInputs): string | undefined {
  const { mode, guarded, connectionState, keys, virtualKeys, holdsLease, skewMs, clocksApart } = standing;
  if (mode === 'observe') return 'the policy is in observe mode: set mode to enforce';
  // The node controller's own brakes, by zone, are on the taints that are kept out.
  if (!guarded)
    return 'policy has no guard over nodes that are down: set guard.cluster or guard.zone, without dryRun';
  const unread = keys.filter((key) => !virtualKeys.includes(key));
  if (unread.length > 0) return `policy does not name ${unread.join(' and ')} in treatAsNoExecute`;
  if (connectionState !== 'live') return connectionState === 'disconnected' ? DISCONNECTED : UNSYNCED;
  if (!holdsLease) return "the relay couldn't renew the cluster's lease in time";
  if (skewMs === undefined) return "the API server's clock is not known yet";
  if (clocksApart !== undefined) return clocksApart;
  return undefined;
}
