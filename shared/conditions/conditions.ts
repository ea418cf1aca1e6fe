import { defined } from '#shared/defined.ts';
import { type TripReport, tripText } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Mode, Stop } from '#shared/eviction/policy.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import type { Fault, FaultType } from '#shared/state/fault.ts';
import { DISCONNECTED_AFTER_MS, LEASE_TTL_MS } from '#shared/state/lease.ts';
import { untilText } from '#shared/state/operator-controls.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';

/*
 * What may require an action, each condition declared once. `status`, `doctor`, `/readyz`, the console, and
 * docs/reference/conditions.md are made from it.
 */

/** Delay from which an eviction counts as delayed, if nothing holds it. */
export const LATE_MS = 60_000;
/** Number of messages in a queue from which they count as a backlog. */
const BACKLOG = 1_000;

/** The stop of all clusters. */
export interface FleetStop extends Stop {
  /** Clusters that were resumed alone. Absent: none. */
  readonly resumed?: readonly ClusterName[];
}

/** `stale`: recent contact, but no relay reports at present. */
export type ConnectionStatus = 'connected' | 'stale' | 'disconnected' | 'never-connected';

export interface ClusterFacts {
  readonly cluster: ClusterName;
  /** Error that makes the cluster unreadable. If present, nothing else is known. */
  readonly error?: string;
  /** State that only the relay's own process knows. */
  readonly service?: {
    readonly state: 'live' | 'syncing' | 'disconnected' | 'standby' | 'access-denied';
    readonly why?: string | undefined;
    readonly breakerOpen: boolean;
  };
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
  readonly mode?: Mode;
  /** Longest delay of an eviction that no rule holds, */
  readonly delayMs?: number;
  /** and why that eviction fails; absent: not known. */
  readonly delayCause?: string;
  /** Number of evictions that no rule holds, with a delay of a minute or more. */
  readonly delayed?: number;
  /** The stop in force that ends last: its own, or that of all clusters unless this cluster was resumed alone. */
  readonly stop?: Stop;
  /** The longest of its own stops, if the stop of all clusters lasts longer. */
  readonly ownStop?: Stop;
  /** Number of its own stops, if it has several. */
  readonly stops?: number;
}

export interface FleetFacts {
  readonly at: EpochMs;
  readonly clusters: readonly ClusterFacts[];
  /** Why the registered clusters are not known. */
  readonly registryError?: string;
  /** State of the process of the whole service. Absent: the fleet has none. */
  readonly process?: 'responding' | 'not-responding' | 'not-running';
  readonly stop?: FleetStop;
  /** Number of waiting messages, and of dead letters, by queue. Absent: not known. */
  readonly backlog?: Readonly<Record<string, number>>;
  readonly deadLetters?: Readonly<Record<string, number>>;
}

/** A condition that holds. */
interface Found {
  readonly since?: EpochMs;
  /** A sentence without the name of the cluster. */
  readonly message: string;
  /** The command that resolves it, as a sentence. */
  readonly remediation?: string;
  /** With type `guard-tripped`: the scope, as {@link scopeText} names it. */
  readonly scope?: string;
  /** With type `stopped`: the ID of the cluster's stop. */
  readonly stop?: string;
}

/** `false`: it doesn't hold. Several: it holds for several parts. */
type Judged = false | Found | readonly Found[];

export interface Condition {
  /** `critical`: pods are not evicted as they should be, or nobody would notice. */
  readonly severity: 'critical' | 'warning';
  /** The part with the problem, as `doctor` names it. */
  readonly check: 'process' | 'store' | 'relay' | 'guard' | 'evictions' | 'queues' | 'dead letters' | 'stops';
  /** What it means, for the page of conditions. */
  readonly meaning: string;
  /** Changes in a cluster may go unnoticed. */
  readonly isBlind?: true;
  /** Heading in docs/how-to/runbooks.md, which is also the name of the alarm. */
  readonly runbook?: string;
  readonly ofCluster?: (facts: ClusterFacts, at: EpochMs) => Judged;
  /** Words a fault of this type that the lease holder reports. */
  readonly ofFault?: (fault: Fault, cluster: ClusterName) => Pick<Found, 'message' | 'remediation'>;
  readonly ofFleet?: (facts: FleetFacts) => Judged;
}

export type ConditionType =
  | FaultType
  | 'unreadable'
  | 'not-running'
  | 'not-responding'
  | 'access-denied'
  | 'guard-tripped'
  | 'lease-expired'
  | 'disconnected'
  | 'api-server-unreachable'
  | 'delayed'
  | 'failed'
  | 'queue-backlog'
  | 'dead-letters'
  | 'stuck-terminating'
  | 'stopped';

/** A condition that holds, and requires an action. */
export interface Issue extends Found {
  readonly type: ConditionType;
  readonly severity: Condition['severity'];
  /** Absent: the fleet. */
  readonly cluster?: ClusterName;
}

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
const sentence = (text: string): string => text.replace(/[.…]?$/, '.');

const CHECK_SERVER = 'Check its API server, and the network to it. Deadlines are kept.';
const CHECK_RELAY =
  'Check that a relay runs, and look for relay.watch-failed in its log. Deadlines are kept.';
const GRANT = 'Grant the missing permissions to its credentials. To list them, run taintward doctor.';

/** Most conditions are those of a relay, and critical. */
const RELAY = { severity: 'critical', check: 'relay' } as const;
const BLIND_RELAY = { ...RELAY, isBlind: true } as const;

/** All conditions, the most urgent first. */
export const CONDITIONS: Readonly<Record<ConditionType, Condition>> = {
  unreadable: {
    severity: 'critical',
    check: 'store',
    meaning: 'The registered clusters, or the stored state of one of them, cannot be read.',
    ofCluster: ({ cluster, error }) =>
      error !== undefined && {
        message: `Its state is unreadable: ${error}`,
        remediation: `For details, run taintward doctor ${cluster}.`,
      },
    ofFleet: ({ registryError }) =>
      registryError !== undefined && {
        message: `The registered clusters are unreadable: ${sentence(registryError)}`,
        remediation: 'Check the store, and the permissions for it.',
      },
  },
  'not-running': {
    severity: 'critical',
    check: 'process',
    meaning: 'No process runs on this state directory.',
    isBlind: true,
    ofFleet: (facts) =>
      downState(facts) === 'not-running' && {
        ...defined({ since: lastRenewal(facts) }),
        message: `No npm start runs on this state directory: changes of nodes and pods are missed, and no pods are evicted.${renewalText(facts)}`,
        remediation: 'Start it again. Deadlines are kept.',
      },
  },
  'not-responding': {
    severity: 'critical',
    check: 'process',
    meaning: 'The process runs, but does not respond.',
    isBlind: true,
    ofFleet: (facts) =>
      downState(facts) === 'not-responding' && {
        ...defined({ since: lastRenewal(facts) }),
        message: `The running npm start does not respond: it is frozen, overloaded, or just starting.${renewalText(facts)}`,
        remediation:
          'Check whether the process is suspended (to continue it, run kill -CONT), or restart it.',
      },
  },
  'access-denied': {
    ...BLIND_RELAY,
    meaning: 'The credentials for a cluster are rejected, or lack permissions.',
    runbook: 'Cluster without relay',
    ofCluster: ({ service, faults: [fault] = [] }) =>
      service?.state === 'access-denied' && {
        message: `Access denied: ${sentence(service.why ?? fault?.error ?? 'see the log')}`,
      },
  },
  'lease-unavailable': {
    ...BLIND_RELAY,
    meaning: 'The relay can neither read nor renew the lease of a cluster.',
    runbook: 'Cluster without relay',
    ofFault: ({ error }) => ({
      message: `Its lease can be neither read nor renewed: ${sentence(error)}`,
      remediation: 'Check the store, and the permissions for it. Until then, the relay sends nothing.',
    }),
  },
  'queue-unavailable': {
    ...BLIND_RELAY,
    meaning: 'An agent cannot receive the messages of due evictions.',
    runbook: 'Agent silent',
    ofFault: ({ error }) => ({
      message: `Due messages cannot be received: ${sentence(error)}`,
      remediation: 'Check the queue of the agent, and the permissions for it.',
    }),
  },
  'guard-tripped': {
    severity: 'critical',
    check: 'guard',
    meaning: 'Many nodes are down or have custom taints, so the guard holds their evictions.',
    runbook: 'Guard tripped',
    ofCluster: ({ cluster, mode, trips = [] }) =>
      trips.map((trip) => {
        const scope = scopeText(trip);
        return {
          message: `The guard tripped with ${tripText(trip)}, and holds evictions. ${resetText(trip)}`,
          scope,
          since: trip.trippedAt,
          remediation:
            mode === 'observe'
              ? 'In observe mode, no pods are evicted.'
              : `If these evictions are intended, run taintward release guard ${cluster} --scope ${scope} --reason 'REASON'.`,
        };
      }),
  },
  'lease-expired': {
    ...BLIND_RELAY,
    meaning: 'No relay holds the lease of a cluster, or its holder no longer renews it.',
    runbook: 'Cluster without relay',
    ofCluster: (facts, at) => {
      const { holder, renewedAt } = facts;
      if (!isLeaseExpired(facts, at)) return false;
      const ago = renewedAt === undefined ? '' : ` for ${durationText(Math.max(0, at - renewedAt))}`;
      const message =
        holder === undefined
          ? `No relay has held its lease${ago}: changes of nodes and pods are missed.`
          : `${holder} has not renewed its lease${ago}: the relay is down, frozen, or cut off. Changes of nodes and pods are missed.`;
      return { message, ...defined({ since: renewedAt }), remediation: CHECK_RELAY };
    },
  },
  disconnected: {
    ...BLIND_RELAY,
    meaning: 'The relay of a cluster is disconnected from it, or has never connected.',
    runbook: 'Cluster unreachable',
    ofCluster: (facts, at) => {
      const { holder, connection, lastContactAt } = facts;
      if (!isSilent(facts, at) || isRecent(facts, at)) return false;
      const never = connection === 'never-connected';
      const what = never
        ? 'has never connected to the cluster'
        : 'is disconnected from the cluster, so changes of nodes and pods are missed';
      const why = silenceOf(facts);
      const events = never ? 'cluster.unreachable or relay.watch-failed' : 'relay.watch-failed';
      return {
        message: because(`${holder} holds its lease, but ${what}`, facts),
        ...defined({ since: lastContactAt }),
        remediation: `${CHECK_SERVER}${why === undefined ? ` For the cause, look for ${events} in the log.` : ''}`,
      };
    },
  },
  'same-cluster': {
    ...RELAY,
    meaning: 'A cluster is managed under another name, so nothing is evicted under this one.',
    ofFault: ({ error }, cluster) => ({
      message: sentence(error),
      remediation: `Until then, no pods are evicted as ${cluster}. Start without its context, or run taintward clusters remove ${cluster}.`,
    }),
  },
  'list-failing': {
    ...BLIND_RELAY,
    meaning: 'The nodes or pods of a cluster cannot be listed.',
    runbook: 'Cluster unreachable',
    ofFault: readText,
  },
  'watch-failing': {
    ...BLIND_RELAY,
    meaning: 'The nodes or pods of a cluster cannot be watched.',
    runbook: 'Cluster unreachable',
    ofFault: readText,
  },
  'store-failing': {
    ...BLIND_RELAY,
    meaning: 'The store, or the disk below it, rejects writes.',
    ofFault: ({ error }) => ({
      message: `Decisions cannot be stored: ${sentence(error)}`,
      remediation: 'Fix the store. Until then, no pods are evicted.',
    }),
  },
  'queue-failing': {
    ...BLIND_RELAY,
    meaning: 'The queue of deltas rejects messages, so no new eviction is scheduled.',
    runbook: 'Delta sending failing',
    ofFault: ({ error }) => ({
      message: `Changes cannot be sent: ${sentence(error)}`,
      remediation: 'Check the queues, and the permissions for them.',
    }),
  },
  'guard-unsaved': {
    ...RELAY,
    meaning: 'The state of the guard cannot be saved.',
    ofFault: ({ error }) => ({
      message: `The state of the guard cannot be saved: ${sentence(error)}`,
      remediation: 'Check the store, and the permissions for it.',
    }),
  },
  'clocks-differ': {
    ...RELAY,
    meaning: 'The clocks of an API server and the relay differ by more than 30 s, so evictions are held.',
    runbook: 'Clock skew',
    ofFault: ({ error }) => ({
      message: sentence(error),
      remediation: 'Synchronize both clocks, for example with NTP. Deadlines are kept.',
    }),
  },
  'heartbeat-suspended': {
    ...RELAY,
    meaning: 'The takeover heartbeat is suspended, so the built-in controller is about to evict.',
    runbook: 'Takeover heartbeat suspended',
    ofFault: ({ error }, cluster) => ({
      message: `The takeover heartbeat is suspended, so the built-in controller is about to evict: ${sentence(error)}`,
      remediation: `For details, run taintward takeover status ${cluster}.`,
    }),
  },
  'no-eviction-controller': {
    ...RELAY,
    meaning: 'Pods are due, and neither Taintward nor the built-in controller evicts them.',
    runbook: 'No eviction controller',
    ofFault: ({ error }) => ({
      message: `No controller evicts pods: ${sentence(error)}`,
      remediation: 'Unless this is intended, apply a policy with mode enforce.',
    }),
  },
  'built-in-evicts': {
    ...RELAY,
    meaning: 'The built-in controller evicted pods that are held or excluded here.',
    ofFault: ({ error, count }, cluster) => ({
      message: `${sentence(error)}${count === undefined ? '' : ` So far: ${count}.`}`,
      remediation: `Disable the built-in controller. If you cannot, run taintward takeover apply ${cluster}.`,
    }),
  },
  'conflicting-installation': {
    ...RELAY,
    meaning: 'Another installation evicts in the cluster, by its own rules.',
    runbook: 'Conflicting installation',
    ofFault: ({ error }) => ({ message: sentence(error) }),
  },
  'taint-time-in-future': {
    severity: 'warning',
    check: 'relay',
    meaning: 'A taint has a future time, which is ignored.',
    ofFault: ({ error }) => ({
      message: sentence(error),
      remediation:
        'Synchronize the clocks of the control plane. If a user wrote that time, remove the taint and add it again.',
    }),
  },
  'api-server-unreachable': {
    ...BLIND_RELAY,
    meaning: 'The API server of a cluster does not respond, so requests are suspended for some seconds.',
    runbook: 'API server unreachable',
    ofCluster: (facts, at) => {
      if (!isSilent(facts, at) || !isRecent(facts, at)) return false;
      return {
        message: `${because('Its API server does not respond', facts)} Requests are retried every few seconds.`,
        remediation: CHECK_SERVER,
      };
    },
  },
  delayed: {
    severity: 'warning',
    check: 'evictions',
    meaning: `An eviction is overdue by ${durationText(LATE_MS)} or more, and no rule holds it.`,
    runbook: 'Evictions delayed',
    ofCluster: ({ cluster, delayMs = 0, delayCause, delayed = 1 }, at) => {
      if (delayMs < LATE_MS) return false;
      const [overdue, it] =
        delayed === 1
          ? [`An eviction is overdue by ${durationText(delayMs)}`, 'it']
          : [`${delayed} evictions are overdue, the first by ${durationText(delayMs)}`, 'them'];
      return {
        message:
          delayCause === undefined
            ? `${overdue}, and nothing holds ${it}.`
            : `${overdue}. It fails: ${sentence(delayCause)}`,
        since: at - delayMs,
        remediation: `To find ${it}, run taintward pending ${cluster}.`,
      };
    },
  },
  failed: {
    severity: 'critical',
    check: 'evictions',
    meaning: 'Evictions failed for the whole giveUpAfter of the policy, and are not retried.',
    runbook: 'Evictions failed',
    ofCluster: ({ cluster, failed = 0 }) =>
      failed > 0 && {
        message: `${counted(failed, 'eviction', 'evictions')} failed.`,
        remediation: `Fix the cause that taintward pending ${cluster} shows, then run taintward retry ${cluster}.`,
      },
  },
  'queue-backlog': {
    severity: 'warning',
    check: 'queues',
    meaning: `More than ${BACKLOG} messages wait in a queue.`,
    runbook: 'Queue backlog',
    ofFleet: ({ backlog = {} }) =>
      Object.entries(backlog)
        .filter(([, count]) => count > BACKLOG)
        .map(([queue, count]) => ({
          message: `${count} messages are waiting in ${queue}.`,
          remediation: 'Check the log of its function for failures and throttling, and its concurrency.',
        })),
  },
  'dead-letters': {
    severity: 'warning',
    check: 'dead letters',
    meaning: 'Messages could not be processed, and were set aside.',
    runbook: 'Dead letters',
    ofFleet: ({ deadLetters = {} }) =>
      Object.entries(deadLetters)
        .filter(([, count]) => count > 0)
        .map(([queue, count]) => ({
          message: `${counted(count, 'dead-letter message', 'dead-letter messages')} of ${queue}.`,
          remediation:
            'For the cause, run taintward dead-letters list. To send them again, run taintward dead-letters redrive.',
        })),
  },
  'stuck-terminating': {
    severity: 'warning',
    check: 'evictions',
    meaning: 'Evicted pods still exist long after their grace period.',
    runbook: 'Pods stuck terminating',
    ofCluster: ({ cluster, stuck = 0 }) =>
      stuck > 0 && {
        message: `${counted(stuck, 'evicted pod is', 'evicted pods are')} stuck terminating.`,
        remediation: `For advice, run taintward pending ${cluster} --stuck.`,
      },
  },
  stopped: {
    severity: 'warning',
    check: 'stops',
    meaning: 'An operator stopped the evictions of a cluster, or of all clusters.',
    ofCluster: ({ cluster, stop: longest, ownStop = longest, stops = 1 }) =>
      ownStop?.scope === 'cluster' && {
        message: `Stopped${untilText(ownStop)} by ${ownStop.actor}: ${ownStop.reason}${stops > 1 ? `, the longest of ${stops} stops` : ''}.`,
        ...defined({ stop: ownStop.id }),
        since: ownStop.at,
        remediation: `To resume, run taintward resume ${cluster}${stops > 1 ? ` --id ${ownStop.id}` : ''} --reason 'REASON'.`,
      },
    ofFleet: ({ stop, clusters }) =>
      stop !== undefined &&
      !(clusters.length > 0 && clusters.every(({ cluster }) => stop.resumed?.includes(cluster))) && {
        message: `All clusters${stop.resumed ? ` except ${stop.resumed.join(', ')}` : ''} are stopped${untilText(stop)} by ${stop.actor}: ${stop.reason}.`,
        since: stop.at,
        remediation: "To resume, run taintward resume --all --reason 'REASON'.",
      },
  },
};

/** Returns what requires an action in a fleet, the most urgent first. */
export function issuesOf(facts: FleetFacts): readonly Issue[] {
  const { at, clusters } = facts;
  // The last report of a process that is down no longer applies.
  const isDown = downState(facts) !== undefined;
  const conditions = Object.entries(CONDITIONS) as readonly [ConditionType, Condition][];
  return conditions.flatMap(([type, { severity, check, ofFleet }]) => {
    const known = clusters.filter(({ error }) => error === undefined || type === 'unreadable');
    const judged = isDown && check === 'relay' ? [] : known;
    return [
      ...judged.flatMap((each) =>
        foundIn(type, each, at).map((found) => ({ type, severity, cluster: each.cluster, ...found })),
      ),
      ...[ofFleet?.(facts) || []].flat().map((found) => ({ type, severity, ...found })),
    ];
  });
}

function foundIn(type: ConditionType, facts: ClusterFacts, at: EpochMs): readonly Found[] {
  const { ofCluster, ofFault } = CONDITIONS[type];
  if (!ofFault) return [ofCluster?.(facts, at) || []].flat();
  const faults = faultsOf(facts, at).filter((fault) => fault.type === type);
  return faults.map((fault) => ({ since: fault.since, ...ofFault(fault, facts.cluster) }));
}

/** `undefined`: the fleet has no process, or it responds, or renewed a lease recently. */
function downState(facts: FleetFacts): 'not-running' | 'not-responding' | undefined {
  const { process, at } = facts;
  if (process === undefined || process === 'responding') return undefined;
  return process === 'not-responding' && isRenewed(lastRenewal(facts), at) ? undefined : process;
}

/** `undefined`: there never was a lease. */
const lastRenewal = ({ clusters }: FleetFacts): EpochMs | undefined =>
  Math.max(0, ...clusters.map(({ renewedAt = 0 }) => renewedAt)) || undefined;

function renewalText(facts: FleetFacts): string {
  const since = lastRenewal(facts);
  return since === undefined ? '' : ` Its last lease renewal was ${durationText(facts.at - since)} ago.`;
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

const isTwin = ({ type }: Fault): boolean => type === 'same-cluster';

/** Reports whether the relay's reports describe the cluster: it has access, and manages it under this name. */
const isReported = ({ service, faults = [] }: ClusterFacts): boolean =>
  service?.state !== 'access-denied' && service?.state !== 'syncing' && !faults.some(isTwin);

const isUnconnected = (facts: ClusterFacts): boolean =>
  isReported(facts) && facts.connection !== undefined && facts.connection !== 'connected';

const isLeaseExpired = (facts: ClusterFacts, at: EpochMs): boolean =>
  isUnconnected(facts) &&
  (facts.connection === 'stale' || facts.holder === undefined || !isRenewed(facts.renewedAt, at));

/** Reports whether a relay holds the lease, but gets no answers from the API server. */
const isSilent = (facts: ClusterFacts, at: EpochMs): boolean =>
  isReported(facts) &&
  !isLeaseExpired(facts, at) &&
  (isOutOfReach(facts.service, facts) || isUnconnected(facts));

const isRecent = ({ connection, lastContactAt }: ClusterFacts, at: EpochMs): boolean =>
  connection === 'connected' ||
  (lastContactAt !== undefined && connectionStatusOf(lastContactAt, at) === 'connected');

/** Reports whether the relay gets no answers at present, for however short a time: by its process, or else by its lease. */
export const isOutOfReach = (
  service: ClusterFacts['service'],
  lease: Pick<ClusterFacts, 'breakerOpen'> | undefined,
): boolean => (service ?? lease)?.breakerOpen === true || service?.state === 'disconnected';

/** Returns why there are no answers, as far as known. */
const silenceOf = ({ faults = [], service }: ClusterFacts): string | undefined =>
  faults.find(isUnanswered)?.error ?? service?.why;

function because(what: string, facts: ClusterFacts): string {
  const why = silenceOf(facts);
  return sentence(why === undefined ? what : `${what}: ${why}`);
}

const isUnanswered = ({ type, status }: Fault): boolean =>
  (type === 'list-failing' || type === 'watch-failing') && status === undefined;

/**
 * Returns the faults that count. Of a cluster that is managed under another name, only that does, and an API server that
 * doesn't respond is reported only once.
 */
function faultsOf(facts: ClusterFacts, at: EpochMs): readonly Fault[] {
  const { service, faults = [] } = facts;
  if (service?.state === 'access-denied') return [];
  const twins = faults.filter(isTwin);
  return (twins.length > 0 ? twins : faults).filter((fault) => !(isUnanswered(fault) && isSilent(facts, at)));
}

function readText({ type, error, resource, status }: Fault): Pick<Found, 'message' | 'remediation'> {
  return {
    message: `Its ${resource ?? 'cluster'} cannot be ${type === 'list-failing' ? 'listed' : 'watched'}: ${sentence(error)}`,
    remediation: status === 401 || status === 403 ? GRANT : CHECK_SERVER,
  };
}

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
