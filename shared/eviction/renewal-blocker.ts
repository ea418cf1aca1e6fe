import type { GuardPolicy, Mode } from './policy.ts';

export interface RenewalInputs {
  /** The policy's mode. During a stop, the built-in controller must not evict either. */
  readonly mode: Mode;
  /** Policy's guard watches nodes that are down, and does not only log; see {@link watchesDownNodes}. */
  readonly guarded: boolean;
  readonly connectionState: 'syncing' | 'live' | 'disconnected';
  /** Keys of the NoExecute taints that the takeover keeps out, and of the NoSchedule taints that count as such. */
  readonly keys: readonly string[];
  readonly treatAsNoExecute: readonly string[];
  /** The relay holds the cluster's lease, and renewed it recently. */
  readonly holdsLease: boolean;
  /** By how much the API server's clock is ahead of ours; `undefined`: not known well enough. */
  readonly skewMs: number | undefined;
  /** The difference between the clocks of an API server and the relay, if it is more than 30 s. */
  readonly clocksApart?: string | undefined;
}

/** Reports whether a guard watches nodes that are down, and does not only log. */
export const watchesDownNodes = ({ dryRun, cluster, zone }: GuardPolicy): boolean =>
  !dryRun && (cluster ?? zone) !== undefined;

const DISCONNECTED = 'the relay is disconnected from the cluster';
const UNSYNCED = "the relay hasn't listed the whole cluster yet";

/**
 * Returns why a relay may not renew the heartbeat now, in a few words; `undefined`: it may, if evictions from down
 * nodes proceed (`stallOf`). All conditions must be met: the heartbeat keeps the built-in controller from evicting.
 */
export function renewalBlocker(inputs: RenewalInputs): string | undefined {
  const { mode, guarded, connectionState, keys, treatAsNoExecute, holdsLease, skewMs, clocksApart } = inputs;
  if (mode === 'observe') return 'the policy is in observe mode: set mode to enforce';
  // The node controller's own limits, by zone, apply to the taints that the takeover keeps out.
  if (!guarded)
    return 'policy has no guard over nodes that are down: set guard.cluster or guard.zone, without dryRun';
  const unread = keys.filter((key) => !treatAsNoExecute.includes(key));
  if (unread.length > 0) return `policy does not name ${unread.join(' and ')} in treatAsNoExecute`;
  if (connectionState !== 'live') return connectionState === 'disconnected' ? DISCONNECTED : UNSYNCED;
  if (!holdsLease) return "the relay couldn't renew the cluster's lease in time";
  if (skewMs === undefined) return "the API server's clock is not known yet";
  if (clocksApart !== undefined) return clocksApart;
  return undefined;
}
