import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { keptLabel } from '#shared/explain/gate-text.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PendingLook } from '../look/pending.ts';

/** The effect of an operator's act on pending evictions. */
export interface Effect {
  /** One sentence each. */
  readonly says: readonly string[];
  /** Pods that the act evicts immediately. */
  readonly goes: readonly PendingLook[];
}

export interface EffectOptions {
  /** Rate at which held pods are released, per second. Absent: not known. */
  readonly drain?: number | undefined;
  readonly now: EpochMs;
}

/**
 * Returns the effect when the gates that `ends` selects end. Some pods are evicted, immediately or at their
 * deadlines, and other gates hold the rest.
 */
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

/** Returns the effect of a new stop, pause, or hold on these pods. */
export function kept(pending: readonly PendingLook[], now: EpochMs): readonly string[] {
  const free = pending.filter(({ record, gates }) => record.gaveUpAt === undefined && gates.length === 0);
  const due = free.filter(({ record }) => record.fireAt <= now).length;
  return [
    `${free.length === 1 ? '1 pending eviction is' : `${free.length} pending evictions are`} held by it${due === 0 ? '' : `, ${due} of them due now`}.`,
    ...heldText(pending.map(({ gates }) => gates).filter(({ length }) => length > 0)),
  ];
}

/** Returns the effect of a retry of failed evictions. */
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

/**
 * Returns a note about the zones of trips. Only the cluster shows which nodes are in a zone, so later
 * deadlines there are not counted.
 */
export const zonesText = (trips: readonly Trip[]): readonly string[] =>
  trips.flatMap(({ zone }) =>
    zone === undefined ? [] : [`Pods on nodes of zone ${zone} that become due later are evicted, too.`],
  );

/**
 * Returns a summary of the pods that other gates hold: "3 pods remain held: 2 stopped, 1 on hold and excluded
 * by policy."
 */
function heldText(all: readonly (readonly EvictionGate[])[]): readonly string[] {
  if (all.length === 0) return [];
  const groups = Map.groupBy(all, (gates) => gates.map(({ kind }) => keptLabel(kind)).join(' and '));
  const each = [...groups].map(([labels, { length }]) => `${length} ${labels}`).join(', ');
  return [`${count(all.length)} ${all.length === 1 ? 'remains' : 'remain'} held: ${each}.`];
}

const count = (number: number): string => (number === 1 ? '1 pod' : `${number} pods`);

const pods = (number: number): string => `${count(number)} ${number === 1 ? 'is' : 'are'}`;
