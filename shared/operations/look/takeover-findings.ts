import type { Mode, Policy } from '#shared/eviction/policy.ts';
import { renewalBlocker, watchesDownNodes } from '#shared/eviction/renewal-blocker.ts';
import { isInForce } from '#shared/kubernetes/takeover.ts';
import { durationText } from '#shared/time/duration.ts';
import type { TakeoverState } from '../takeover/state.ts';
import { bad, ok, type Told, warn } from './finding.ts';

/** The mode and policy that the cluster's owner set. */
export interface Wanted {
  readonly mode: Mode;
  readonly policy: Policy;
}

/** Checks the takeovers of a cluster, if there are any. `wanted`: absent if only the cluster is known. */
export const takeoverFindings = (state: TakeoverState, wanted: Wanted | undefined): readonly Told[] => [
  ...nodeFindings(state, wanted),
  ...podFindings(state, wanted),
];

function nodeFindings({ nodes, alarms, now }: TakeoverState, wanted: Wanted | undefined): readonly Told[] {
  if (!nodes) return [];
  const wrong = alarms.nodes.map((alarm) =>
    bad(
      'takeover',
      `Node level: ${alarm}`,
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
        `Node level: the heartbeat is suspended because ${withheld}.`,
        'Apply a policy that meets the requirements in docs/how-to/replace-built-in-controller.md.',
      ),
    );
  }
  if (wrong.length > 0 || !nodes.live || !isInForce(nodes.live, now)) return wrong;
  return [
    ok(
      'takeover',
      'The node-level takeover is active: the built-in controller does not evict for its taints.',
    ),
  ];
}

/** Returns the reason why the policy prevents a relay from renewing the heartbeat. */
const whyWithheld = (keys: readonly string[], { mode, policy }: Wanted): string | undefined =>
  renewalBlocker({
    ...{ mode, keys, guarded: watchesDownNodes(policy.guard), virtualKeys: policy.virtualKeys },
    ...{ connectionState: 'live', holdsLease: true, skewMs: 0 },
  });

function podFindings({ pods, alarms }: TakeoverState, wanted: Wanted | undefined): readonly Told[] {
  if (!pods) return [];
  const { by, spec, namespaces, taken, open } = pods;
  const longer = durationText(spec.fallbackSeconds * 1000);
  const found = alarms.pods.map((alarm) =>
    bad(
      'takeover',
      `Pod level: ${alarm}`,
      'Run taintward takeover apply --level pod, or taintward takeover release --level pod.',
    ),
  );
  if (namespaces.length === 0) {
    found.push(
      warn(
        'takeover',
        'Pod level: no namespace is selected, so no pods are taken over.',
        'kubectl label namespace NAME taintward.dev/takeover=enabled, or the selector that the takeover was applied with.',
      ),
    );
  }
  if (open > 0) {
    found.push(
      warn(
        'takeover',
        `Pod level: ${countText(open, 'pod')} existed before the takeover, so the built-in controller evicts them without delay.`,
        'Run taintward takeover adopt.',
      ),
    );
  }
  if (wanted && wanted.mode !== 'enforce' && taken > 0) {
    found.push(
      warn(
        'takeover',
        `Pod level: the policy mode is ${wanted.mode}, and the built-in controller waits ${longer} longer. Until then, no controller evicts ${countText(taken, 'pod')}.`,
        'Apply a policy with mode enforce, or run taintward takeover release --level pod.',
      ),
    );
  }
  if (found.length > 0) return found;
  const where = `${countText(taken, 'pod')} in ${countText(namespaces.length, 'namespace')}`;
  return [
    ok(
      'takeover',
      `Pod level: ${where} taken over by ${by}; the built-in controller waits ${longer} longer.`,
    ),
  ];
}

const countText = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
