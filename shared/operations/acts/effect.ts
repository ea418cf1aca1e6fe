import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { keptLabel } from '#shared/explain/gate-text.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
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
  ends: (by: EvictionGate) => boolean,
  { drain, now }: EffectOptions,
): Effect {
  const held = pending.filter(({ record, gates }) => record.gaveUpAt === undefined && gates.some(ends));
  const left = held.filter(({ gates }) => gates.every(ends));
  const goes = left.filter(({ record }) => record.fireAt <= now);
  const later = left.length - goes.length;
  const stay = held.filter(({ gates }) => !gates.every(ends));
  if (held.length === 0) return { says: ['No evictions were held by it.'], goes };
  const pace = goes.length === 0 || drain === undefined ? '' : `, at ${drain} per second`;
  return {
    says: [
      `${pods(goes.length)} due and will be evicted${pace}.`,
      ...(later === 0
        ? []
        : [`${later} more will be evicted at ${later === 1 ? 'its deadline' : 'their deadlines'}.`]),
      ...heldText(stay.map(({ gates }) => gates.filter((by) => !ends(by)))),
    ],
    goes,
  };
}

/** What becomes of pods that something more is to keep. */
export function kept(pending: readonly PendingLook[], now: EpochMs): readonly string[] {
  const free = pending.filter(({ record, gates }) => record.gaveUpAt === undefined && gates.length === 0);
  const due = free.filter(({ record }) => record.fireAt <= now).length;
  return [
    `${free.length === 1 ? '1 pending eviction is' : `${free.length} pending evictions are`} held by it${due === 0 ? '' : `, ${due} of them due now`}.`,
    ...heldText(pending.map(({ gates }) => gates).filter(({ length }) => length > 0)),
  ];
}

/** What becomes of pods that were given up and are tried again. */
export function retried(givenUp: readonly PendingLook[]): Effect {
  const goes = givenUp.filter(({ gates }) => gates.length === 0);
  const stay = givenUp.filter(({ gates }) => gates.length > 0);
  return {
    says: [
      `${goes.length === 1 ? '1 failed eviction' : `${goes.length} failed evictions`} will be retried.`,
      ...heldText(stay.map(({ gates }) => gates)),
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
function heldText(all: readonly (readonly EvictionGate[])[]): readonly string[] {
  if (all.length === 0) return [];
  const groups = Map.groupBy(all, (gates) => gates.map(({ kind }) => keptLabel(kind)).join(' and '));
  const each = [...groups].map(([labels, { length }]) => `${length} ${labels}`).join(', ');
  return [`${count(all.length)} ${all.length === 1 ? 'remains' : 'remain'} held: ${each}.`];
}

const count = (number: number): string => (number === 1 ? '1 pod' : `${number} pods`);

const pods = (number: number): string => `${count(number)} ${number === 1 ? 'is' : 'are'}`;
