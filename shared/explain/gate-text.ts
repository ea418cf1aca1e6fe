import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { HoldTarget, OperatorAction, Rules, Trip } from '#shared/eviction/policy.ts';
import type { CancelReason } from '#shared/eviction/records.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** What is told of one kind of brake; the one place that names it for people. */
interface GateWords<By extends EvictionGate> {
  /** The state of a pod, in a table or after "is due and": "on hold". */
  readonly label: string;
  /** The origin of the gate: the policy in general, or an incident (a hold, a stop, a tripped guard). */
  readonly from: 'policy' | 'incident';
  /** The gate's name, after "held by": "hold h3f9a2c1d". */
  name(by: By): string;
  /** The command that opens the gate; `undefined`: none does. */
  release(by: By, cluster: ClusterName): string | undefined;
  /** The rules after that command. */
  without(rules: Rules, by: By): Rules;
}

/** Types and durations are all that this file imports, because the console's page, which has no build, is served it as it is. */
const GATES: { readonly [Kind in EvictionGate['kind']]: GateWords<Extract<EvictionGate, { kind: Kind }>> } = {
  observe: {
    label: 'observe mode',
    from: 'policy',
    name: () => 'the policy (observe mode)',
    release: (_, cluster) => applyPolicy(cluster),
    without: (rules) => withPolicy(rules, { mode: 'enforce' }),
  },
  stopped: {
    label: 'stopped',
    from: 'incident',
    name: ({ scope }) => `the stop of ${scope === 'fleet' ? 'all clusters' : 'the cluster'}`,
    release: ({ scope, id }, cluster) =>
      `taintward resume ${scope === 'fleet' ? '--all' : cluster}${id === undefined ? '' : ` --id ${id}`} --reason 'REASON'`,
    without: (rules, by) => ({
      ...rules,
      stops: rules.stops.filter(({ scope, id }) => scope !== by.scope || id !== (by.id ?? id)),
    }),
  },
  hold: {
    label: 'on hold',
    from: 'incident',
    name: ({ id }) => `hold ${id}`,
    release: ({ id }) => `taintward release ${id} --reason 'REASON'`,
    without: (rules, by) => ({ ...rules, holds: rules.holds.filter(({ id }) => id !== by.id) }),
  },
  excluded: {
    label: 'excluded by policy',
    from: 'policy',
    name: () => 'the policy (excluded)',
    release: (_, cluster) => applyPolicy(cluster),
    without: (rules) => withPolicy(rules, { exclude: [], include: [] }),
  },
  guard: {
    label: 'held by the guard',
    from: 'incident',
    name: () => 'the guard',
    release: (by, cluster) => `taintward release guard ${cluster} --scope ${scopeText(by)} --reason 'REASON'`,
    without: (rules) => ({ ...rules, trips: [] }),
  },
  'node-alive': {
    label: 'on a live node',
    from: 'incident',
    name: () => 'its node, which is alive',
    release: (_, cluster) => applyPolicy(cluster),
    without: (rules) => withPolicy(rules, { requireExpiredLease: false }),
  },
  'workload-limit': {
    label: 'over the limit of its workload',
    from: 'policy',
    name: (by) => `the limit of its workload (${limitText(by)})`,
    release: (_, cluster) => applyPolicy(cluster),
    // It counts under the policy by which it was said.
    without: (rules) => ({ ...rules, policyRevision: rules.policyRevision + 1 }),
  },
  recreated: {
    label: 'recreated by the kubelet',
    from: 'policy',
    name: () => 'the kubelet, which recreates it',
    release: () => undefined,
    without: (rules) => rules,
  },
};

const limitText = ({
  workload,
  count,
  windowMs,
}: Extract<EvictionGate, { kind: 'workload-limit' }>): string =>
  count === undefined
    ? `the replicas of ${workload} can't be read: grant cdk/rbac/replicas`
    : `${count} of ${workload} in ${durationText(windowMs)}`;

const applyPolicy = (cluster: ClusterName): string => `taintward policy apply -f policy.yaml ${cluster}`;

const withPolicy = (rules: Rules, policy: Partial<Rules['policy']>): Rules => ({
  ...rules,
  policy: { ...rules.policy, ...policy },
});

export const GATE_KINDS = Object.keys(GATES) as readonly EvictionGate['kind'][];

/** The words for a brake, or for all of its kind. */
export const wordsOf = ({ kind }: { readonly kind: EvictionGate['kind'] }): GateWords<EvictionGate> =>
  GATES[kind];

/** Why an eviction was canceled. */
export const CANCELED: Readonly<Record<CancelReason, string>> = {
  'taint-removed': 'taint removed',
  'tolerated-forever': 'taint tolerated indefinitely',
  'pod-gone': 'pod already gone',
};

/** A reason that keeps pods for an unknown time. */
export type KeptBy = EvictionGate['kind'] | 'blocked' | 'rejected' | 'retrying' | 'failed';

const OTHERS = {
  blocked: 'kept by a disruption budget',
  rejected: 'rejected by admission',
  retrying: 'retrying',
  failed: 'failed',
};

/** Returns the state of a pod, as in a table: "on hold", "rejected by admission". */
export const keptLabel = (keeper: KeptBy): string =>
  keeper in OTHERS ? OTHERS[keeper as keyof typeof OTHERS] : GATES[keeper as EvictionGate['kind']].label;

/** Describes a gate, after "held by": "hold h3f9a2c1d (anna: is being debugged) until …". */
export function gateText({ by: gate, act, trip }: GateAccount, moment: (at: EpochMs) => string): string {
  const why = act ? `${act.actor}: ${act.reason}` : trip && `tripped by ${trip}`;
  const text = `${wordsOf(gate).name(gate)}${why === undefined ? '' : ` (${why})`}`;
  if (gate.kind === 'node-alive')
    return `${text}: its Lease was renewed at ${moment(gate.renewedAt)}, and is read again when it expires`;
  return 'until' in gate && gate.until !== undefined ? `${text} until ${moment(gate.until)}` : text;
}

/** A gate of a pod, and the operator or trip behind it. */
export interface GateAccount {
  readonly by: EvictionGate;
  /** With a stop or a hold that still exists: the operator's action. */
  readonly act?: OperatorAction;
  /** With a hold: its target. */
  readonly target?: HoldTarget;
  /** With the guard: a description of the trip for users. */
  readonly trip?: string;
}

/** Returns a scope as operators name it: cluster, customTaints, or zone/NAME. */
export const scopeText = ({ scope, zone }: Pick<Trip, 'scope' | 'zone'>): string =>
  zone === undefined ? scope : `${scope}/${zone}`;
