import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { isTripOf } from '#shared/eviction/gate.ts';
import { reportOf, tripText } from '#shared/eviction/guard.ts';
import type { OperatorAction, Rules } from '#shared/eviction/policy.ts';
import { type GateAccount, wordsOf } from './gate-text.ts';

/** Returns what the current rules contain about a gate. */
export function accountOfGate(gate: EvictionGate, { stops, holds, trips }: Rules): GateAccount {
  switch (gate.kind) {
    case 'stopped': {
      const stop = stops.find(({ scope }) => scope === gate.scope);
      return { by: gate, ...(stop ? { act: actionOf(stop) } : {}) };
    }
    case 'hold': {
      const hold = holds.find(({ id }) => id === gate.id);
      return { by: gate, ...(hold ? { act: actionOf(hold), target: hold.target } : {}) };
    }
    case 'guard': {
      const trip = trips.find((each) => isTripOf(gate, each));
      return { by: gate, ...(trip ? { trip: tripText(reportOf(trip)) } : {}) };
    }
    default:
      return { by: gate };
  }
}

const actionOf = ({ actor, at, reason }: OperatorAction): OperatorAction => ({ actor, at, reason });

/** All gates of a pod: also those that are found once the first are open. To evict it, an operator must open all. */
export function allGates(
  rules: Rules,
  find: (rules: Rules) => readonly EvictionGate[],
): readonly EvictionGate[] {
  const all: EvictionGate[] = [];
  let left = rules;
  for (;;) {
    const found = find(left).filter((by) => !all.some((each) => isSameGate(each, by)));
    if (found.length === 0) return all;
    all.push(...found);
    left = found.reduce((without, by) => wordsOf(by).without(without, by), left);
  }
}

/** Reports whether two gates are the same for an operator: the same command opens both. */
export const isSameGate = (one: EvictionGate, other: EvictionGate): boolean =>
  wordsOf(one).name(one) === wordsOf(other).name(other);
