import { defined } from '#shared/defined.ts';
import { type TripReport, tripText } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Stop } from '#shared/eviction/policy.ts';
import type { EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import { overdueFrom } from '#shared/eviction/retry.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import type { ServiceClusterView } from '#shared/operations/fleet/service-view.ts';
import { FAULT_TYPES, type Fault, type FaultType } from '#shared/state/fault.ts';
import { DISCONNECTED_AFTER_MS, LEASE_TTL_MS } from '#shared/state/lease.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';

/** The stop of all clusters. */
export interface FleetStop extends Stop {
  /** Clusters that were resumed alone. Absent: none. */
  readonly resumed?: readonly ClusterName[];
}

/** Delay from which an eviction counts as delayed, if nothing holds it. */
const LATE_MS = 60_000;

/** Most urgent first. */
const KINDS = [
  'unreadable',
  'not-running',
  'not-responding',
  'access-denied',
  'guard-tripped',
  'lease-expired',
  'disconnected',
  ...FAULT_TYPES,
  'api-server-unreachable',
  'delayed',
  'failed',
  'dead-letters',
  'stuck-terminating',
  'stopped',
] as const;

/** A problem that requires an action. */
export interface Issue {
  readonly type: (typeof KINDS)[number];
  /** Absent: the fleet. */
  readonly cluster?: ClusterName;
  /** With type `guard-tripped`: the scope, as {@link scopeText} names it. */
  readonly scope?: string;
  /** With type `stopped`: the ID of the cluster's stop. */
  readonly stop?: string;
  readonly since?: EpochMs;
  /** A sentence without the name of the cluster. */
  readonly message: string;
  /** The command that resolves the issue, as a sentence. */
  readonly remediation?: string;
}

/** `stale`: recent contact, but no relay reports at present. */
export type ConnectionStatus = 'connected' | 'stale' | 'disconnected' | 'never-connected';

export interface ClusterFacts {
  readonly cluster: ClusterName;
  /** Error that makes the cluster unreadable. If present, nothing else is known. */
  readonly error?: string;
  readonly service?: ServiceClusterView;
  /** Holder of its lease. Absent: none. */
  readonly holder?: string;
  readonly lastContactAt?: EpochMs;
  readonly connection?: ConnectionStatus;
  /** Time of the last lease renewal. Absent: there never was a lease. */
  readonly renewedAt?: EpochMs;
  /** Faults that the lease holder reports. Absent: not known. */
  readonly faults?: readonly Fault[];
  /** True while the relay suspends requests for some seconds, because its API server doesn't respond. */
  readonly breakerOpen?: boolean;
  readonly trips?: readonly TripReport[];
  readonly failed?: number;
  readonly stuck?: number;
  readonly delayMs?: number;
  /** Why the eviction with that delay fails; absent: not known. */
  readonly delayCause?: string;
  /** The stop in force that ends last: its own, or that of all clusters unless this cluster was resumed alone. */
  readonly stop?: Stop;
  /** Number of its own stops, if it has several. */
  readonly stops?: number;
}

export interface FleetFacts {
  readonly at: EpochMs;
  readonly clusters: readonly ClusterFacts[];
  /** State of the process of the whole service. Absent: the fleet has none. */
  readonly process?: 'responding' | 'not-responding' | 'not-running';
  readonly stop?: FleetStop;
  readonly deadLetters?: Readonly<Record<string, number>>;
}

/** Returns the issues of a fleet, most urgent first. */
export function issuesOf({ at, process, clusters, stop, deadLetters = {} }: FleetFacts): readonly Issue[] {
  const down = process && processIssue(process, clusters, at);
  const dead = Object.entries(deadLetters).filter(([, count]) => count > 0);
  return [
    ...(down ?? []),
    // The last report of a process that is down no longer applies.
    ...clusters.flatMap((each) => clusterIssues(each, at, down === undefined)),
    ...dead.map(
      ([queue, count]): Issue => ({
        type: 'dead-letters',
        message: `${count === 1 ? '1 dead-letter message' : `${count} dead-letter messages`} of ${queue}.`,
        remediation:
          'For the cause, run taintward dead-letters list. To send them again, run taintward dead-letters redrive.',
      }),
    ),
    ...(stop
      ? [
          {
            type: 'stopped' as const,
            since: stop.at,
            message: `All clusters${stop.resumed ? ` except ${stop.resumed.join(', ')}` : ''} are stopped by ${stop.actor}: ${stop.reason}.`,
            remediation: "To resume, run taintward resume --all --reason 'REASON'.",
          },
        ]
      : []),
  ].sort((a, b) => KINDS.indexOf(a.type) - KINDS.indexOf(b.type));
}

/** `undefined`: it responds, or renewed a lease recently. */
function processIssue(
  process: NonNullable<FleetFacts['process']>,
  clusters: readonly ClusterFacts[],
  at: EpochMs,
): readonly Issue[] | undefined {
  const since = Math.max(0, ...clusters.map(({ renewedAt = 0 }) => renewedAt));
  const renewed = since === 0 ? {} : { since };
  const ago = since === 0 ? '' : ` Its last lease renewal was ${durationText(at - since)} ago.`;
  if (process === 'not-running') {
    return [
      {
        type: 'not-running',
        ...renewed,
        message: `No npm start runs on this state directory: changes of nodes and pods are missed, and no pods are evicted.${ago}`,
        remediation: 'Start it again. Deadlines are kept.',
      },
    ];
  }
  if (process === 'responding' || isRenewed(since, at)) return undefined;
  return [
    {
      type: 'not-responding',
      ...renewed,
      message: `The running npm start does not respond: it is frozen, overloaded, or just starting.${ago}`,
      remediation: 'Check whether the process is suspended (to continue it, run kill -CONT), or restart it.',
    },
  ];
}

function clusterIssues(facts: ClusterFacts, at: EpochMs, isReported: boolean): readonly Issue[] {
  const { cluster, error, service, trips = [], failed = 0, stuck = 0, delayMs = 0, stop, stops = 1 } = facts;
  const issues: Issue[] = [];
  const need = (
    kind: Issue['type'],
    text: string,
    more: Pick<Issue, 'scope' | 'stop' | 'since' | 'remediation'>,
  ) => void issues.push({ type: kind, cluster, message: text, ...more });
  if (error !== undefined) {
    need('unreadable', `Its state is unreadable: ${error}`, {
      remediation: `For details, run taintward doctor ${cluster}.`,
    });
    return issues;
  }
  if (service?.state === 'access-denied') {
    need('access-denied', `Access denied: ${service.why ?? 'see the log'}`, {});
  } else if (isReported) {
    const twin = facts.faults?.filter(({ type }) => type === 'same-cluster') ?? [];
    if (service?.state !== 'syncing' && twin.length === 0) issues.push(...connectionIssues(facts, at));
    issues.push(...faultIssues(twin.length > 0 ? { ...facts, faults: twin } : facts));
  }
  for (const trip of trips) {
    const scope = scopeText(trip);
    need(
      'guard-tripped',
      `The guard tripped with ${tripText(trip)}, and holds evictions. ${resetText(trip)}`,
      {
        scope,
        since: trip.trippedAt,
        remediation: `If these evictions are intended, run taintward release guard ${cluster} --scope ${scope} --reason 'REASON'.`,
      },
    );
  }
  if (delayMs >= LATE_MS) {
    const why = facts.delayCause?.replace(/[.…]?$/, '.');
    const what = why ? `fails: ${why}` : 'nothing holds it.';
    need('delayed', `An eviction is overdue by ${durationText(delayMs)}, and ${what}`, {
      since: at - delayMs,
      remediation: `To find it, run taintward pending ${cluster}.${why ? '' : ` For the cause, run taintward doctor ${cluster}.`}`,
    });
  }
  if (failed > 0) {
    need('failed', `${failed === 1 ? '1 eviction' : `${failed} evictions`} failed.`, {
      remediation: `Fix the cause that taintward pending ${cluster} shows, then run taintward retry ${cluster}.`,
    });
  }
  if (stuck > 0) {
    need(
      'stuck-terminating',
      `${stuck === 1 ? '1 evicted pod is' : `${stuck} evicted pods are`} stuck terminating.`,
      {
        remediation: `For advice, run taintward pending ${cluster} --stuck.`,
      },
    );
  }
  if (stop?.scope === 'cluster') {
    need(
      'stopped',
      `Stopped${stop.until === undefined ? '' : ` until ${timeText(stop.until)}`} by ${stop.actor}: ${stop.reason}${stops > 1 ? `, the longest of ${stops} stops` : ''}.`,
      {
        ...defined({ stop: stop.id }),
        since: stop.at,
        remediation: `To resume, run taintward resume ${cluster}${stops > 1 ? ` --id ${stop.id}` : ''} --reason 'REASON'.`,
      },
    );
  }
  return issues;
}

function resetText({ scope, affectedNow, resetsBelow, resetsAt }: TripReport): string {
  if (affectedNow === undefined)
    return 'It resets 5 minutes after fewer than half as many nodes as its limit are affected.';
  const [are, have] =
    affectedNow === 1
      ? ['1 node is', '1 node has']
      : [`${affectedNow} nodes are`, `${affectedNow} nodes have`];
  const now = scope === 'customTaints' ? `${have} custom taints now.` : `${are} down now.`;
  return resetsAt === undefined
    ? `${now} It resets 5 minutes after they are fewer than ${resetsBelow}.`
    : `${now} It resets at ${timeText(resetsAt)} if they stay fewer than ${resetsBelow}.`;
}

function connectionIssues(facts: ClusterFacts, at: EpochMs): readonly Issue[] {
  const { cluster, connection, lastContactAt, renewedAt, holder } = facts;
  if (connection === undefined) return [];
  if (connection === 'connected') {
    const text = 'Its API server does not respond. Requests are retried every few seconds.';
    return isOutOfReach(facts)
      ? [{ type: 'api-server-unreachable', cluster, message: text, remediation: CHECK_SERVER }]
      : [];
  }
  if (connection === 'stale' || holder === undefined || !isRenewed(renewedAt, at)) {
    const ago = renewedAt === undefined ? '' : ` for ${durationText(Math.max(0, at - renewedAt))}`;
    const text =
      holder === undefined
        ? `No relay has held its lease${ago}: changes of nodes and pods are missed.`
        : `${holder} has not renewed its lease${ago}: the relay is down, frozen, or cut off. Changes of nodes and pods are missed.`;
    const since = renewedAt === undefined ? {} : { since: renewedAt };
    return [{ type: 'lease-expired', cluster, message: text, ...since, remediation: CHECK_RELAY }];
  }
  const text =
    connection === 'never-connected'
      ? `${holder} holds its lease, but has never connected to the cluster.`
      : `${holder} holds its lease, but is disconnected from the cluster: changes of nodes and pods are missed.`;
  const since = lastContactAt === undefined ? {} : { since: lastContactAt };
  const remediation = connection === 'never-connected' ? CHECK_START : CHECK_RELAY;
  return [{ type: 'disconnected', cluster, message: text, ...since, remediation }];
}

const CHECK_SERVER = 'Check its API server, and the network to it. Deadlines are kept.';
const CHECK_RELAY =
  'Check that a relay runs, and look for relay.watch-failed in its log. Deadlines are kept.';
const CHECK_START = CHECK_RELAY.replace('relay.', 'cluster.unreachable or relay.');
const GRANT = 'Grant the missing permissions to its credentials. To list them, run taintward doctor.';

const isOutOfReach = ({ service, breakerOpen = service?.breakerOpen }: ClusterFacts): boolean =>
  breakerOpen === true;

/** An API server that doesn't respond is reported only once. */
function faultIssues(facts: ClusterFacts): readonly Issue[] {
  const { cluster, faults = [] } = facts;
  return faults
    .filter(({ type, status }) => status !== undefined || !isUnread(type) || !isOutOfReach(facts))
    .map((fault): Issue => {
      const { type, since } = fault;
      return { type, cluster, since, ...faultTexts(fault, cluster) };
    });
}

const isUnread = (type: FaultType): boolean => type === 'list-failing' || type === 'watch-failing';

function faultTexts({ type, error, resource, status, count }: Fault, cluster: ClusterName) {
  const because = error.replace(/[.…]?$/, '.');
  const read = resource ?? 'cluster';
  switch (type) {
    case 'same-cluster':
      return {
        message: because,
        remediation: `Until then, no pods are evicted as ${cluster}. Start without its context, or run taintward clusters remove ${cluster}.`,
      };
    case 'list-failing':
    case 'watch-failing': {
      const remediation = status === 401 || status === 403 ? GRANT : CHECK_SERVER;
      return {
        message: `Its ${read} cannot be ${type === 'list-failing' ? 'listed' : 'watched'}: ${because}`,
        remediation,
      };
    }
    case 'store-failing':
      return {
        message: `Decisions cannot be stored: ${because}`,
        remediation: 'Fix the store. Until then, no pods are evicted.',
      };
    case 'queue-failing':
      return {
        message: `Changes cannot be sent: ${because}`,
        remediation: 'Check the queues, and the permissions for them.',
      };
    case 'guard-unsaved':
      return {
        message: `The state of the guard cannot be saved: ${because}`,
        remediation: 'Check the store, and the permissions for it.',
      };
    case 'heartbeat-suspended':
      return {
        message: `The takeover heartbeat is suspended, so the built-in controller is about to evict: ${because}`,
        remediation: `For details, run taintward takeover status ${cluster}.`,
      };
    case 'no-eviction-controller':
      return {
        message: `No controller evicts pods: ${because}`,
        remediation: 'Unless this is intended, apply a policy with mode enforce.',
      };
    case 'built-in-evicts':
      return {
        message: `${because}${count === undefined ? '' : ` So far: ${count}.`}`,
        remediation: `Disable the built-in controller. If you cannot, run taintward takeover apply ${cluster}.`,
      };
    case 'conflicting-installation':
      return { message: because };
    case 'clocks-differ':
      return {
        message: because,
        remediation: 'Synchronize both clocks, for example with NTP. Deadlines are kept.',
      };
    case 'taint-time-in-future':
      return {
        message: because,
        remediation:
          'Synchronize the clocks of the control plane. If a user wrote that time, remove the taint and add it again.',
      };
    default:
      return type satisfies never;
  }
}

/** Reports whether an issue concerns the relay of a cluster, not the cluster's evictions. */
export const isOfRelay = (kind: Issue['type']): boolean => OF_RELAY.includes(kind);

const OF_RELAY: readonly Issue['type'][] = [
  ...(['access-denied', 'lease-expired', 'disconnected', 'api-server-unreachable'] as const),
  ...FAULT_TYPES,
];

/** Reports whether an issue means that changes in a cluster may go unnoticed. */
export const isBlind = (kind: Issue['type']): boolean => BLIND.includes(kind);

const BLIND: readonly Issue['type'][] = [
  ...([
    'not-running',
    'not-responding',
    'access-denied',
    'lease-expired',
    'disconnected',
    'api-server-unreachable',
  ] as const),
  ...(['list-failing', 'watch-failing', 'store-failing', 'queue-failing'] as const),
];

/** Reports whether a lease with this last renewal is held at `at`. */
export const isRenewed = (renewedAt: EpochMs | undefined, at: EpochMs): boolean =>
  renewedAt !== undefined && at - renewedAt <= LEASE_TTL_MS;

/** Returns the connection status at `at`, from the time of the last contact. */
export const connectionStatusOf = (lastContactAt: EpochMs | undefined, at: EpochMs): ConnectionStatus =>
  lastContactAt === undefined
    ? 'never-connected'
    : at - lastContactAt > DISCONNECTED_AFTER_MS
      ? 'disconnected'
      : 'connected';

/** Returns the longest delay of an eviction that nothing holds, in milliseconds. 0: none is delayed. */
export const latenessOf = (pending: readonly PendingOn[], at: EpochMs): number =>
  pending.reduce((most, { record, state }) => Math.max(most, at - (overdueFrom(record, state) ?? at)), 0);

export interface PendingOn {
  readonly record: EvictionRecord;
  readonly state: NodeState | undefined;
}
