import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { nextTryOf, overdueFrom } from '#shared/eviction/retry.ts';
import { isHeldText } from '#shared/eviction/skew.ts';
import { GATE_KINDS, gateText } from '#shared/explain/gate-text.ts';
import { accountOfGate } from '#shared/explain/gates.ts';
import { rulesOf, type StoredRules } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';
import { MATCHING, type PendingEviction } from './pending.ts';

/**
 * State of a pending eviction:
 * - `scheduled`: its deadline is in the future
 * - `due`: it is being evicted
 * - a kind of gate: the first gate that holds it, now or once it is due
 * - `blocked`, `rejected`, `rate-limited`: a disruption budget, admission, or the rate prevents it at present
 * - `retrying`: it failed, or the API server does not answer, and it is retried
 * - `failed`: retries are exhausted
 */
export const PENDING_STATES = [
  'scheduled',
  'due',
  ...GATE_KINDS,
  'blocked',
  'rejected',
  'rate-limited',
  'retrying',
  'failed',
] as const;
export type PendingState = (typeof PENDING_STATES)[number];

type Stated = Pick<PendingEviction, 'record' | 'gates'> & Partial<Pick<PendingEviction, 'state'>>;

function stateOf({ record, gates, state }: Stated, now: EpochMs): PendingState {
  const { gaveUpAt, blocked, turnAt = 0, dueAt } = record;
  if (gaveUpAt !== undefined) return 'failed';
  const [gate] = gates;
  if (gate) return gate.kind;
  if (retryOf({ record, state }, now)) return 'retrying';
  if (blocked) return blocked.by === 'admission' ? 'rejected' : 'blocked';
  if (dueAt > now) return 'scheduled';
  return turnAt > now ? 'rate-limited' : 'due';
}

/** Returns the state of a record at `now`, with a note about it. */
export function pendingStateOf(
  eviction: Stated,
  storedRules: StoredRules | undefined,
  now: EpochMs,
): { readonly state: PendingState; readonly note: string } {
  const state = stateOf(eviction, now);
  const note = isGate(state) ? heldText(eviction.gates, storedRules) : delayText(eviction, now);
  return { state, note };
}

/** Returns why an eviction that no rule holds doesn't happen. Usually empty. */
function delayText(eviction: Stated, now: EpochMs): string {
  const { gaveUpAt, failure, blocked, turnAt } = eviction.record;
  if (gaveUpAt !== undefined)
    return `failed at ${timeText(gaveUpAt)}: ${failure?.error ?? 'retries exhausted'}`;
  const retry = retryOf(eviction, now);
  if (retry) return retry.text;
  if (blocked) {
    const blocker = blocked.by === 'admission' ? 'admission' : 'disruption budget';
    return `${blocker} since ${timeText(blocked.since)}: ${blocked.reason}`;
  }
  return turnAt === undefined ? '' : `rate limited until ${timeText(turnAt)}`;
}

/** Numbers of pending evictions, with one meaning on every surface. Those without a number here are on their way. */
export interface PendingCounts {
  readonly pending: number;
  /** Their deadline has passed. */
  readonly due: number;
  /** Due, and held by a rule. */
  readonly held: number;
  /** The same, by the first of these rules. */
  readonly heldBy: Readonly<Partial<Record<EvictionGate['kind'], number>>>;
  /** Due, and only recorded, in observe mode. */
  readonly observed: number;
  /** Due, and kept for now by a disruption budget or by admission. */
  readonly blocked: number;
  /** Due, failed, and retried. */
  readonly retrying: number;
  /** Their retries are exhausted. */
  readonly failed: number;
}

export function countsOf(
  pending: readonly Pick<PendingEviction, 'record' | 'gates' | 'state'>[],
  now: EpochMs,
): PendingCounts {
  const heldBy: Partial<Record<EvictionGate['kind'], number>> = {};
  const due = pending.filter(({ record: { dueAt, gaveUpAt } }) => dueAt <= now || gaveUpAt !== undefined);
  let [held, observed, blocked, retrying, failed] = [0, 0, 0, 0, 0];
  for (const eviction of due) {
    const state = stateOf(eviction, now);
    if (state === 'observe') observed++;
    else if (state === 'blocked' || state === 'rejected') blocked++;
    else if (state === 'retrying') retrying++;
    else if (state === 'failed') failed++;
    else if (isGate(state)) {
      held++;
      heldBy[state] = (heldBy[state] ?? 0) + 1;
    }
  }
  return { pending: pending.length, due: due.length, held, heldBy, observed, blocked, retrying, failed };
}

const isGate = (state: PendingState): state is EvictionGate['kind'] =>
  (GATE_KINDS as readonly string[]).includes(state);

/** Returns the next deadline that no rule holds; `undefined`: none. `pending`: the earliest first. */
export const nextOf = (
  pending: readonly Pick<PendingEviction, 'record' | 'gates'>[],
  now: EpochMs,
): EpochMs | undefined =>
  pending.find(({ record, gates }) => record.dueAt > now && gates.length === 0)?.record.dueAt;

/** Returns the evictions that are late although no rule holds them, the longest delay first. */
export const lateOf = <Eviction extends Pick<PendingEviction, 'record' | 'state' | 'gates'>>(
  pending: readonly Eviction[],
  now: EpochMs,
): readonly { readonly eviction: Eviction; readonly delayMs: number }[] =>
  pending
    .flatMap((eviction) => {
      const { record, state, gates } = eviction;
      const delayMs = gates.length === 0 ? now - (overdueFrom(record, state) ?? now) : 0;
      return delayMs > 0 ? [{ eviction, delayMs }] : [];
    })
    .sort((a, b) => b.delayMs - a.delayMs);

/** Reports whether the deadline of an eviction has passed, and a rule holds it. */
export function isHeldNow(eviction: Stated, now: EpochMs): boolean {
  const state = stateOf(eviction, now);
  return eviction.record.dueAt <= now && isGate(state) && state !== 'observe';
}

/** Returns when and why an eviction that failed, or waits for the API server, is retried; `undefined`: neither. */
export function retryOf(
  { record, state }: Pick<PendingEviction, 'record'> & Partial<Pick<PendingEviction, 'state'>>,
  now: EpochMs,
): { readonly nextTryAt?: EpochMs; readonly error: string; readonly text: string } | undefined {
  const { failure } = record;
  const next = record.dueAt <= now && record.gaveUpAt === undefined ? nextTryOf(record, state) : undefined;
  if (!next) return failure && { ...failure, text: `retrying: ${failure.error}` };
  const isOutage = next === state?.outage;
  const { error } = isOutage ? next : (failure ?? next);
  const why = isOutage ? `the API server does not answer: ${error}` : error;
  const text = isHeldText(error) ? error : `retrying at ${timeText(next.nextTryAt)}: ${why}`;
  return { nextTryAt: next.nextTryAt, error, text };
}

/** All gates: "the stop of the cluster (anna: an incident) and hold h3f9a2c1d (…)". */
export const heldText = (gates: readonly EvictionGate[], storedRules: StoredRules | undefined): string =>
  gates
    .map((by) => gateText(storedRules ? accountOfGate(by, rulesOf(storedRules, MATCHING)) : { by }, timeText))
    .join(' and ');
