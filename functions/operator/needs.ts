import type { ServiceClusterView } from '#functions/local/service-view.ts';
import { DEAF_AFTER_MS } from '#shared/clusters/lease.ts';
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
  'refused',
  'guard-tripped',
  'deaf',
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

/** Whether a relay hears a cluster: it did lately, not lately, or never. */
export type Hearing = 'live' | 'deaf' | 'never';

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
  /** Of all clusters together, and in force. */
  readonly stop?: Stop;
  /** How many there are, by their queue. */
  readonly deadLetters?: Readonly<Record<string, number>>;
}

/** What of a fleet needs somebody; the most urgent first. */
export function needsOf({ at, clusters, stop, deadLetters = {} }: FleetFacts): readonly Need[] {
  const dead = Object.entries(deadLetters).filter(([, count]) => count > 0);
  return [
    ...clusters.flatMap((each) => needsOfCluster(each, at)),
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

function needsOfCluster(facts: ClusterFacts, at: EpochMs): readonly Need[] {
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
  } else if (service?.state !== 'syncing') {
    needs.push(...hearingNeeds(facts, at));
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
function hearingNeeds(
  { cluster, heardAt, holder, service, breakerOpen = service?.breakerOpen }: ClusterFacts,
  at: EpochMs,
): readonly Need[] {
  const hearing = hearingOf(heardAt, at);
  if (hearing === 'live') {
    const text = 'Its API server does not answer: it is asked again every few seconds.';
    const remedy = `If that lasts, taintward doctor ${cluster}.`;
    return breakerOpen ? [{ kind: 'out-of-reach', cluster, text, remedy }] : [];
  }
  const who = holder === undefined ? 'nobody speaks for it' : `${holder} speaks for it`;
  const text =
    hearing === 'never'
      ? `No relay ever heard from it, and ${who}.`
      : `No relay hears it, and ${who}: what changes there is not noticed.`;
  return [
    {
      ...{ kind: 'deaf', cluster, text },
      ...(heardAt === undefined ? {} : { since: heardAt }),
      remedy: `Look whether the relay runs, and taintward doctor ${cluster}.`,
    },
  ];
}

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
