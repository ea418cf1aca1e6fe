import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { keptLabel } from '#shared/explain/gate-text.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PendingLook } from '../look/pending.ts';

/** Pods that an act concerns. */
export interface Affected {
  /** Pods that the act evicts immediately. */
  readonly goes: readonly PendingLook[];
  /** Number of pods that the act lets be evicted at their deadlines. */
  readonly later: number;
  /** Number of pods that are held after the act. */
  readonly held: number;
}

/** The effect of an operator's act on pending evictions. */
export interface Effect extends Affected {
  /** One sentence each. */
  readonly says: readonly string[];
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
  const affected = { goes, later, held: stay.length };
  if (held.length === 0) return { says: ['No evictions were held by it.'], ...affected };
  return {
    says: [
      ...releasedText(affected, drain),
      ...heldText(stay.map(({ gates }) => gates.filter((by) => !ends(by)))),
    ],
    ...affected,
  };
}

/**
 * Returns the effect of other rules on pending evictions: their gates before, and in `look` their gates
 * after.
 */
export function replaced(
  pending: readonly { readonly look: PendingLook; readonly before: readonly EvictionGate[] }[],
  { drain, now }: EffectOptions,
): Effect {
  const live = pending.filter(({ look }) => look.record.gaveUpAt === undefined);
  const freed = live.filter(({ look, before }) => before.length > 0 && look.gates.length === 0);
  const goes = freed.map(({ look }) => look).filter(({ record }) => record.fireAt <= now);
  const caught = live.filter(({ look, before }) => before.length === 0 && look.gates.length > 0);
  const stay = live.filter(({ look, before }) => before.length > 0 && look.gates.length > 0);
  const affected = { goes, later: freed.length - goes.length, held: caught.length + stay.length };
  if (freed.length + caught.length === 0)
    return {
      says: ['No pending evictions are held or released by it.', ...heldText(stay.map(gatesAfter))],
      ...affected,
    };
  const caughtLooks = caught.map(({ look }) => look);
  return {
    says: [
      ...(freed.length === 0 ? [] : releasedText(affected, drain)),
      ...(caught.length === 0 ? [] : [keptText(caughtLooks, now)]),
      ...heldText(stay.map(gatesAfter)),
    ],
    ...affected,
  };
}

const gatesAfter = ({ look }: { readonly look: PendingLook }): readonly EvictionGate[] => look.gates;

function releasedText({ goes, later }: Affected, drain: number | undefined): readonly string[] {
  const pace = goes.length === 0 || drain === undefined ? '' : `, at ${drain} per second`;
  return [
    `${pods(goes.length)} due and will be evicted${pace}.`,
    ...(later === 0
      ? []
      : [`${later} more will be evicted at ${later === 1 ? 'its deadline' : 'their deadlines'}.`]),
  ];
}

/** Returns the effect of a new stop, pause, or hold on these pods. */
export function kept(pending: readonly PendingLook[], now: EpochMs): Effect {
  const free = pending.filter(({ record, gates }) => record.gaveUpAt === undefined && gates.length === 0);
  const stay = pending.map(({ gates }) => gates).filter(({ length }) => length > 0);
  return {
    says: [keptText(free, now), ...heldText(stay)],
    ...{ goes: [], later: 0, held: free.length + stay.length },
  };
}

function keptText(free: readonly PendingLook[], now: EpochMs): string {
  const due = free.filter(({ record }) => record.fireAt <= now).length;
  return `${free.length === 1 ? '1 pending eviction is' : `${free.length} pending evictions are`} held by it${due === 0 ? '' : `, ${due} of them due now`}.`;
}

/** Returns the effect of a retry of failed evictions. Other gates still hold some of them. */
export function retried(givenUp: readonly PendingLook[]): Effect {
  const goes = givenUp.filter(({ gates }) => gates.length === 0);
  const stay = givenUp.filter(({ gates }) => gates.length > 0);
  return { says: heldText(stay.map(({ gates }) => gates)), goes, later: 0, held: stay.length };
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
