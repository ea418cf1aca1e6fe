import type { Mode, Policy, Stop } from '#shared/eviction/policy.ts';
import { renewalBlocker, watchesDownNodes } from '#shared/eviction/renewal-blocker.ts';
import { isInForce } from '#shared/kubernetes/takeover.ts';
import type { TakeoverState } from '../takeover/state.ts';
import { bad, type ClusterFinding, ok } from './finding.ts';

/** The mode and policy that the cluster's owner set. */
export interface Wanted {
  readonly mode: Mode;
  readonly policy: Policy;
  /** The stop in force, if any. */
  readonly stop?: Stop;
}

/** Checks the takeover of a cluster, if there is one. `wanted`: absent if only the cluster is known. */
export function takeoverFindings(
  { nodes, alarms, now }: TakeoverState,
  wanted: Wanted | undefined,
): readonly ClusterFinding[] {
  if (!nodes) return [];
  const wrong = alarms.map((alarm) =>
    bad(
      'takeover',
      alarm,
      'For details, run taintward takeover status. For the cause, look for takeover.heartbeat-suspended in the log of the relay.',
    ),
  );
  // If the relay has written a reason, its alarm is more precise.
  const withheld =
    nodes.live?.withheld === undefined
      ? nodes.live && wanted && whyWithheld(nodes.live.keys, wanted)
      : undefined;
  if (withheld !== undefined) {
    wrong.push(
      bad(
        'takeover',
        `The heartbeat is suspended because ${withheld}.`,
        'Apply a policy that meets the requirements in docs/how-to/replace-built-in-controller.md.',
      ),
    );
  }
  if (wrong.length > 0 || !nodes.live || !isInForce(nodes.live, now)) return wrong;
  return [ok('takeover', 'The takeover is active: the built-in controller does not evict for its taints.')];
}

const whyWithheld = (keys: readonly string[], { mode, policy }: Wanted): string | undefined =>
  renewalBlocker({
    mode,
    keys,
    guarded: watchesDownNodes(policy.guard),
    treatAsNoExecute: policy.treatAsNoExecute,
    connectionState: 'live',
    holdsLease: true,
    skewMs: 0,
  });
