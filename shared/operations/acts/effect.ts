import type { Brake } from '#shared/eviction/brake.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { keptLabel } from '#shared/explain/brake-words.ts';
import type { PendingLook } from '../look/pending.ts';

/** What an order does to the pods that are to be evicted. */
export interface Effect {
  /** One sentence each. */
  readonly says: readonly string[];
  /** Those that go at once by it. */
  readonly goes: readonly PendingLook[];
}

export interface EffectOptions {
  /** How many pods a second are let go of what was held; absent: not known. */
  readonly drain?: number | undefined;
  readonly now: EpochMs;
}

/** What becomes of pods once the brakes that `ends` names are over: some go, now or when they are due, and others keep some. */
export function released(
  pending: readonly PendingLook[],
  ends: (by: Brake) => boolean,
  { drain, now }: EffectOptions,
): Effect {
  const held = pending.filter(({ record, brakes }) => record.gaveUpAt === undefined && brakes.some(ends));
  const left = held.filter(({ brakes }) => brakes.every(ends));
  const goes = left.filter(({ record }) => record.fireAt <= now);
  const later = left.length - goes.length;
  const stay = held.filter(({ brakes }) => !brakes.every(ends));
  if (held.length === 0) return { says: ['No evictions were held by it.'], goes };
  const pace = goes.length === 0 || drain === undefined ? '' : `, at ${drain} per second`;
  return {
    says: [
      `${pods(goes.length)} due and will be evicted${pace}.`,
      ...(later === 0
        ? []
        : [`${later} more will be evicted at ${later === 1 ? 'its deadline' : 'their deadlines'}.`]),
      ...heldText(stay.map(({ brakes }) => brakes.filter((by) => !ends(by)))),
    ],
    goes,
  };
}

/** What becomes of pods that something more is to keep. */
export function kept(pending: readonly PendingLook[], now: EpochMs): readonly string[] {
  const free = pending.filter(({ record, brakes }) => record.gaveUpAt === undefined && brakes.length === 0);
  const due = free.filter(({ record }) => record.fireAt <= now).length;
  return [
    `${free.length === 1 ? '1 pending eviction is' : `${free.length} pending evictions are`} held by it${due === 0 ? '' : `, ${due} of them due now`}.`,
    ...heldText(pending.map(({ brakes }) => brakes).filter(({ length }) => length > 0)),
  ];
}

/** What becomes of pods that were given up and are tried again. */
export function retried(givenUp: readonly PendingLook[]): Effect {
  const goes = givenUp.filter(({ brakes }) => brakes.length === 0);
  const stay = givenUp.filter(({ brakes }) => brakes.length > 0);
  return {
    says: [
      `${goes.length === 1 ? '1 failed eviction' : `${goes.length} failed evictions`} will be retried.`,
      ...heldText(stay.map(({ brakes }) => brakes)),
    ],
    goes,
  };
}

/** Which nodes are in a zone only their cluster shows: what is not due there yet is not counted. */
export const zonesText = (trips: readonly Trip[]): readonly string[] =>
  trips.flatMap(({ zone }) =>
    zone === undefined ? [] : [`Pods on nodes of zone ${zone} that become due later are evicted, too.`],
  );

/** Pods that other brakes keep: "3 pods remain held: 2 stopped, 1 on hold and excluded by policy." */
function heldText(all: readonly (readonly Brake[])[]): readonly string[] {
  if (all.length === 0) return [];
  const groups = Map.groupBy(all, (brakes) => brakes.map(({ kind }) => keptLabel(kind)).join(' and '));
  const each = [...groups].map(([labels, { length }]) => `${length} ${labels}`).join(', ');
  return [`${count(all.length)} ${all.length === 1 ? 'remains' : 'remain'} held: ${each}.`];
}

const count = (number: number): string => (number === 1 ? '1 pod' : `${number} pods`);

const pods = (number: number): string => `${count(number)} ${number === 1 ? 'is' : 'are'}`;
