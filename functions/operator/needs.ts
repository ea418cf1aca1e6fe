import type { ServiceClusterView } from '#functions/local/service-view.ts';
import { FAULT_TYPES, type Fault, type FaultType } from '#shared/clusters/fault.ts';
import { DEAF_AFTER_MS, LEASE_TTL_MS } from '#shared/clusters/lease.ts';
import { tripText } from '#shared/eviction/guard.ts';
import type { ClusterName, EpochMs } from '#shared/eviction/identity.ts';
import type { Stop, Trip } from '#shared/eviction/policy.ts';
import type { EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import { overdueFrom } from '#shared/eviction/retry.ts';
import { durationText } from '#shared/time/duration.ts';

/** What is past its moment for so long, and held by nothing, is late. */
const LATE_MS = 60_000;

/** The most urgent first. */
const KINDS = [
  'unreadable',
  'not-running',
  'frozen',
  'refused',
  'guard-tripped',
  'lease-expired',
  'deaf',
  ...FAULT_TYPES,
  'out-of-reach',
  'late',
  'given-up',
  'dead-letters',
  'stuck',
  'stopped',
] as const;

/** Something that does not go on well by itself. */
export interface Need {
  readonly kind: (typeof KINDS)[number];
  /** Absent: the fleet. */
  readonly cluster?: ClusterName;
  readonly since?: EpochMs;
  /** A sentence; of which cluster it is, it does not say. */
  readonly text: string;
  /** What to do about it on the command line, as a sentence. */
  readonly remedy?: string;
}

/** Whether a relay hears a cluster: it did lately, not lately, or never; `stale`: it did, and nobody says any more whether it does. */
export type Hearing = 'live' | 'stale' | 'deaf' | 'never';

/** Of a cluster, what tells whether it needs somebody. */
export interface ClusterFacts {
  readonly cluster: ClusterName;
  /** What of it cannot be read; then nothing else is known. */
  readonly error?: string;
  /** As the process says that runs it. */
  readonly service?: ServiceClusterView;
  /** Who speaks for it; absent: nobody. */
  readonly holder?: string;
  readonly heardAt?: EpochMs;
  readonly hearing?: Hearing;
  /** When its lease was last renewed; absent: there never was one. */
  readonly renewedAt?: EpochMs;
  /** What who speaks for it finds wrong with it; absent: that is not known. */
  readonly faults?: readonly Fault[];
  /** Whether the relay has stopped asking its API server for some seconds, because that does not answer. */
  readonly breakerOpen?: boolean;
  readonly trips?: readonly Trip[];
  readonly gaveUp?: number;
  /** Evicted pods that do not leave. */
  readonly stuck?: number;
  readonly lateMs?: number;
  /** Of this cluster alone, and in force. */
  readonly stop?: Stop;
}

/** Of a fleet, likewise. */
export interface FleetFacts {
  readonly at: EpochMs;
  readonly clusters: readonly ClusterFacts[];
  /** Whether the one process answers that runs the fleet; absent: there is none. */
  readonly process?: 'answers' | 'silent' | 'none';
  /** Of all clusters together, and in force. */
  readonly stop?: Stop;
  /** How many there are, by their queue. */
  readonly deadLetters?: Readonly<Record<string, number>>;
}

/** What of a fleet needs somebody; the most urgent first. */
export function needsOf({ at, process, clusters, stop, deadLetters = {} }: FleetFacts): readonly Need[] {
  const down = process && processNeeds(process, clusters, at);
  const dead = Object.entries(deadLetters).filter(([, count]) => count > 0);
  return [
    ...(down ?? []),
    // Of a process that is down, nothing that it said is so any more.
    ...clusters.flatMap((each) => needsOfCluster(each, at, down === undefined)),
    ...dead.map(
      ([queue, count]): Need => ({
        kind: 'dead-letters',
        text: `${count === 1 ? 'There is 1 dead letter' : `There are ${count} dead letters`} of ${queue}.`,
        remedy: 'taintward dead-letters list shows why, redrive sends them again.',
      }),
    ),
    ...(stop
      ? [
          {
            kind: 'stopped' as const,
            since: stop.at,
            text: `All clusters are stopped by ${stop.who}: ${stop.why}.`,
            remedy: 'taintward resume --all goes on.',
          },
        ]
      : []),
  ].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
}

/** That the one process is dead or frozen; `undefined`: it answers, or renewed a lease a moment ago. */
function processNeeds(
  process: NonNullable<FleetFacts['process']>,
  clusters: readonly ClusterFacts[],
  at: EpochMs,
): readonly Need[] | undefined {
  const since = Math.max(0, ...clusters.map(({ renewedAt = 0 }) => renewedAt));
  const renewed = since === 0 ? {} : { since };
  const ago = since === 0 ? '' : ` It last renewed a lease ${durationText(at - since)} ago.`;
  if (process === 'none') {
    return [
      {
        ...{ kind: 'not-running', ...renewed },
        text: `No npm start runs on this state directory: nothing is noticed, and nobody is evicted.${ago}`,
        remedy: 'Start it again: countdowns are kept.',
      },
    ];
  }
  if (process === 'answers' || isRenewed(since, at)) return undefined;
  return [
    {
      ...{ kind: 'frozen', ...renewed },
      text: `The npm start that runs does not answer: it is frozen, overloaded, or just starting.${ago}`,
      remedy: 'See whether somebody stopped it (kill -CONT lets it go on), or start it anew.',
    },
  ];
}

function needsOfCluster(facts: ClusterFacts, at: EpochMs, isSaid: boolean): readonly Need[] {
  const { cluster, error, service, trips = [], gaveUp = 0, stuck = 0, lateMs = 0, stop } = facts;
  const needs: Need[] = [];
  const need = (kind: Need['kind'], text: string, more: Pick<Need, 'since' | 'remedy'>) =>
    void needs.push({ kind, cluster, text, ...more });
  if (error !== undefined) {
    need('unreadable', `It cannot be read: ${error}`, {});
    return needs;
  }
  if (service?.state === 'refused') {
    need('refused', `It does not let the service in: ${service.why ?? 'see the log'}`, {});
  } else if (isSaid) {
    if (service?.state !== 'syncing') needs.push(...hearingNeeds(facts, at));
    needs.push(...faultNeeds(facts));
  }
  for (const trip of trips) {
    need('guard-tripped', `The guard holds evictions: ${tripText(trip)}.`, {
      since: trip.trippedAt,
      remedy: `If that is no mistake, taintward release guard ${cluster}.`,
    });
  }
  if (lateMs >= LATE_MS) {
    need('late', `An eviction is late by ${durationText(lateMs)}, and nothing holds it.`, {
      since: at - lateMs,
      remedy: `taintward pending ${cluster} says which, taintward doctor ${cluster} why.`,
    });
  }
  if (gaveUp > 0) {
    need('given-up', `${gaveUp === 1 ? 'An eviction was' : `${gaveUp} evictions were`} given up.`, {
      remedy: `Mend what taintward pending ${cluster} says, then taintward retry ${cluster}.`,
    });
  }
  if (stuck > 0) {
    need('stuck', `${stuck === 1 ? 'An evicted pod does' : `${stuck} evicted pods do`} not leave.`, {
      remedy: `taintward pending ${cluster} --stuck says what helps.`,
    });
  }
  if (stop) {
    need('stopped', `Stopped by ${stop.who}: ${stop.why}.`, {
      since: stop.at,
      remedy: `taintward resume ${cluster} goes on.`,
    });
  }
  return needs;
}

/** That nobody hears it, or that it does not answer, if so. */
function hearingNeeds(facts: ClusterFacts, at: EpochMs): readonly Need[] {
  const { cluster, hearing, heardAt, renewedAt, holder } = facts;
  if (hearing === undefined) return [];
  if (hearing === 'live') {
    const text = 'Its API server does not answer: it is asked again every few seconds.';
    return isOutOfReach(facts) ? [{ kind: 'out-of-reach', cluster, text, remedy: LOOK_AT_SERVER }] : [];
  }
  if (hearing === 'stale' || holder === undefined || !isRenewed(renewedAt, at)) {
    const ago = renewedAt === undefined ? '' : ` for ${durationText(Math.max(0, at - renewedAt))}`;
    const text =
      holder === undefined
        ? `Nobody speaks for it${ago}: what changes there is not noticed.`
        : `${holder} has not renewed its lease${ago}, so it is dead, frozen or cut off: what changes there is not noticed.`;
    const since = renewedAt === undefined ? {} : { since: renewedAt };
    return [{ ...{ kind: 'lease-expired', cluster, text, ...since }, remedy: LOOK_AT_RELAY }];
  }
  const text =
    hearing === 'never'
      ? `No relay ever heard from it, and ${holder} speaks for it.`
      : `No relay hears it, and ${holder} speaks for it: what changes there is not noticed.`;
  const since = heardAt === undefined ? {} : { since: heardAt };
  return [{ ...{ kind: 'deaf', cluster, text, ...since }, remedy: LOOK_AT_RELAY }];
}

const LOOK_AT_SERVER = 'Look at its API server, and at the network to it; timers go on.';
const LOOK_AT_RELAY =
  'Look whether a relay runs, and at its log: relay.watch-failed says why it hears nothing. Timers go on.';
const GRANT = 'Give its credentials what is missing: taintward doctor says which rights they need.';

const isOutOfReach = ({ service, breakerOpen = service?.breakerOpen }: ClusterFacts): boolean =>
  breakerOpen === true;

/** What who speaks for it finds wrong with it. An API server that does not answer is told of once. */
function faultNeeds(facts: ClusterFacts): readonly Need[] {
  const { cluster, faults = [] } = facts;
  return faults
    .filter(({ type, status }) => status !== undefined || !isUnread(type) || !isOutOfReach(facts))
    .map((fault): Need => {
      const { type, since } = fault;
      return { kind: type, cluster, since, ...faultTexts(fault, cluster) };
    });
}

const isUnread = (type: FaultType): boolean => type === 'list-failing' || type === 'watch-failing';

function faultTexts({ type, error, resource, status, count }: Fault, cluster: ClusterName) {
  const because = error.replace(/[.…]?$/, '.');
  const read = resource ?? 'cluster';
  switch (type) {
    case 'list-failing':
    case 'watch-failing': {
      const remedy = status === 401 || status === 403 ? GRANT : LOOK_AT_SERVER;
      return {
        text: `Its ${read} cannot be ${type === 'list-failing' ? 'listed' : 'watched'}: ${because}`,
        remedy,
      };
    }
    case 'store-failing':
      return {
        text: `What is decided cannot be stored: ${because}`,
        remedy: 'Mend that: nothing is evicted until it can.',
      };
    case 'queue-failing':
      return {
        text: `What changes there cannot be sent: ${because}`,
        remedy: 'Look at its queues, and the rights to them.',
      };
    case 'guard-unsaved':
      return {
        text: `What the guard holds cannot be saved: ${because}`,
        remedy: 'Look at the store, and the rights to it.',
      };
    case 'heartbeat-suspended':
      return {
        text: `The heartbeat of its takeover is not renewed, so the built-in controller is about to evict: ${because}`,
        remedy: `taintward takeover status ${cluster} says more.`,
      };
    case 'no-eviction-controller':
      return {
        text: `Nobody evicts: ${because}`,
        remedy: 'taintward policy apply one of the mode enforce, unless that is meant.',
      };
    case 'built-in-evicts':
      return {
        text: `${because}${count === undefined ? '' : ` So far: ${count}.`}`,
        remedy: `taintward takeover apply ${cluster} where it cannot be switched off.`,
      };
    case 'conflicting-installation':
      return { text: because };
    default:
      return type satisfies never;
  }
}

/** Whether it says how the relay of a cluster does, rather than what waits there. */
export const isOfRelay = (kind: Need['kind']): boolean => OF_RELAY.includes(kind);

const OF_RELAY: readonly Need['kind'][] = [
  ...(['refused', 'lease-expired', 'deaf', 'out-of-reach'] as const),
  ...FAULT_TYPES,
];

/** Whether it means that what changes in a cluster may not be noticed. */
export const isBlind = (kind: Need['kind']): boolean => BLIND.includes(kind);

const BLIND: readonly Need['kind'][] = [
  ...(['not-running', 'frozen', 'refused', 'lease-expired', 'deaf', 'out-of-reach'] as const),
  ...(['list-failing', 'watch-failing', 'store-failing', 'queue-failing'] as const),
];

/** Whether a lease that was renewed then is held now. */
export const isRenewed = (renewedAt: EpochMs | undefined, at: EpochMs): boolean =>
  renewedAt !== undefined && at - renewedAt <= LEASE_TTL_MS;

/** Whether what was last heard at `heardAt` is heard `at`. */
export const hearingOf = (heardAt: EpochMs | undefined, at: EpochMs): Hearing =>
  heardAt === undefined ? 'never' : at - heardAt > DEAF_AFTER_MS ? 'deaf' : 'live';

/** For how long the one of these is past its moment that is so the longest, and that nothing holds; 0: none is (ms). */
export const latenessOf = (pending: readonly PendingOn[], at: EpochMs): number =>
  pending.reduce((most, { record, state }) => Math.max(most, at - (overdueFrom(record, state) ?? at)), 0);

/** What is to be evicted, and what is known of its node. */
export interface PendingOn {
  readonly record: EvictionRecord;
  readonly state: NodeState | undefined;
}
