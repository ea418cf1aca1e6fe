import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { keptLabel } from '#shared/explain/gate-text.ts';
import { isSameGate } from '#shared/explain/gates.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PendingEviction } from '../look/pending.ts';

/** Numbers of pods that an act concerns, as in `-o json` and the console API. */
export interface Affected {
  readonly evictedNow: number;
  readonly evictedWhenDue: number;
  /** Pods that are held after the act. */
  readonly held: number;
}

/** The effect of an operator's act on pending evictions. */
export interface Effect {
  /** Pods that the act evicts immediately. */
  readonly goes: readonly PendingEviction[];
  readonly pods: Affected;
  /** One sentence each. */
  readonly sentences: readonly string[];
}

/** A pending eviction with all its gates before and after an act. */
export interface Judged {
  readonly eviction: PendingEviction;
  readonly before: readonly EvictionGate[];
  readonly after: readonly EvictionGate[];
}

interface EffectOptions {
  /** Maximum number of pods released per second. Absent: not known. */
  readonly pace?: number | undefined;
  readonly now: EpochMs;
  /** Returns the sentence for an act that neither holds nor releases pods. `stay`: those that other gates hold. */
  readonly none: (stay: number) => string | undefined;
}

/** Returns the effect of other rules on the evictions that an act concerns. */
export function effectOf(judged: readonly Judged[], { pace, now, none }: EffectOptions): Effect {
  const live = judged.filter(({ eviction }) => eviction.record.gaveUpAt === undefined);
  const free = live.filter(({ before }) => before.length === 0);
  const held = live.filter(({ before }) => before.length > 0);
  const freed = held.filter(({ after }) => after.length === 0).map(({ eviction }) => eviction);
  const goes = freed.filter(({ record }) => record.dueAt <= now);
  const caught = free.filter(({ after }) => after.length > 0).map(({ eviction }) => eviction);
  const stay = held.filter(({ after }) => after.length > 0);
  const pods = {
    evictedNow: goes.length,
    evictedWhenDue: freed.length - goes.length,
    held: caught.length + stay.length,
  };
  const nothing = freed.length + caught.length === 0 ? none(stay.length) : undefined;
  return {
    sentences: [
      ...(freed.length === 0 ? [] : releasedText(pods, pace)),
      ...(caught.length === 0 ? [] : [keptText(caught, now)]),
      ...(nothing === undefined ? [] : [nothing]),
      ...heldText(stay.map(remaining)),
    ],
    goes,
    pods,
  };
}

/** Reports whether a pod has other gates after the act. */
export const isOther = ({ before, after }: Judged): boolean =>
  before.length !== after.length || staying({ before, after }).length < after.length;

const staying = ({ before, after }: Omit<Judged, 'eviction'>): readonly EvictionGate[] =>
  after.filter((by) => before.some((each) => isSameGate(each, by)));

function remaining(judged: Judged): readonly EvictionGate[] {
  const stay = staying(judged);
  return stay.length > 0 ? stay : judged.after;
}

function releasedText(
  { evictedNow, evictedWhenDue: later }: Affected,
  perSecond: number | undefined,
): readonly string[] {
  const pace = perSecond === undefined ? '' : `, at ${perSecond} per second`;
  const others = evictedNow === 0 ? count(later) : `${later} more`;
  return [
    ...(evictedNow === 0 ? [] : [`${podsAre(evictedNow)} due and will be evicted${pace}.`]),
    ...(later === 0
      ? []
      : [`${others} will be evicted at ${later === 1 ? 'its deadline' : 'their deadlines'}.`]),
  ];
}

function keptText(free: readonly PendingEviction[], now: EpochMs): string {
  const due = free.filter(({ record }) => record.dueAt <= now).length;
  return `${free.length === 1 ? '1 pending eviction is' : `${free.length} pending evictions are`} held by it${due === 0 ? '' : `, ${due === free.length ? '' : `${due} of them `}due now`}.`;
}

/** Returns the effect of a retry of failed evictions. Other gates still hold some of them. */
export function retried(givenUp: readonly PendingEviction[]): Effect {
  const goes = givenUp.filter(({ gates }) => gates.length === 0);
  const stay = givenUp.filter(({ gates }) => gates.length > 0);
  const pods = { evictedNow: goes.length, evictedWhenDue: 0, held: stay.length };
  return { sentences: heldText(stay.map(({ gates }) => gates)), goes, pods };
}

/** Only the cluster shows which nodes are in a zone, so later deadlines there are not counted. */
export const zonesText = (freed: readonly string[]): readonly string[] =>
  freed.map((zone) => `Pods on nodes of zone ${zone} that become due later are evicted, too.`);

/** "3 pods remain held: 2 stopped, 1 on hold and excluded by policy." */
function heldText(all: readonly (readonly EvictionGate[])[]): readonly string[] {
  if (all.length === 0) return [];
  const groups = Map.groupBy(all, (gates) =>
    gates.map(({ kind }) => keptLabel(kind).replace(/^held /, '')).join(' and '),
  );
  const counts = [...groups]
    .map(([labels, { length }]) => (groups.size === 1 ? labels : `${length} ${labels}`))
    .join(', ');
  return [`${count(all.length)} ${all.length === 1 ? 'remains' : 'remain'} held: ${counts}.`];
}

const count = (number: number): string => (number === 1 ? '1 pod' : `${number} pods`);

const podsAre = (number: number): string => `${count(number)} ${number === 1 ? 'is' : 'are'}`;
