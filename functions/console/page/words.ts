import type { ConnectionStatus } from '#shared/conditions/conditions.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { GATE_KINDS, keptLabel, wordsOf } from '#shared/explain/gate-text.ts';
import type { PendingState } from '#shared/operations/look/pending-state.ts';
import type { ClusterStatus } from '#shared/operations/look/status.ts';
import type { EvictionEvent } from '#shared/state/history.ts';
import { capitalized } from '#shared/text/capitalized.ts';

/** A color's meaning: evicted or failed, waiting for an operator, or fine. `link` has none. */
export type Tone = 'goes' | 'held' | 'well' | 'link';

interface Word {
  readonly text: string;
  readonly tone?: Tone;
}

/** Returns the text and color of a pod that this gate holds. */
export function gateWord(kind: EvictionGate['kind']): Word {
  const { label: text, from } = wordsOf({ kind });
  return from === 'policy' ? { text } : { text, tone: 'held' };
}

export const STATE_WORDS: Readonly<Record<PendingState, Word>> = {
  scheduled: { text: 'scheduled' },
  due: { text: 'evicting', tone: 'goes' },
  ...(Object.fromEntries(GATE_KINDS.map((kind) => [kind, gateWord(kind)])) as Record<
    EvictionGate['kind'],
    Word
  >),
  blocked: { text: keptLabel('blocked'), tone: 'held' },
  rejected: { text: keptLabel('rejected'), tone: 'held' },
  'rate-limited': { text: 'rate limited' },
  retrying: { text: 'retrying', tone: 'goes' },
  failed: { text: keptLabel('failed'), tone: 'goes' },
};

/** Returns a clause of the command line as a sentence. */
export const sentence = (clause: string): string => `${capitalized(clause)}.`;

/** Leaves out of a note the words with which the state ends: "held by the guard", and "the guard (zone a)". */
export function furtherText(state: string, note: string): string {
  const words = note.split(' ');
  const last = words.findLastIndex((_, at) => ` ${state}`.endsWith(` ${words.slice(0, at + 1).join(' ')}`));
  return words.slice(last + 1).join(' ');
}

export const EVENT: Readonly<Record<EvictionEvent, Word>> = {
  scheduled: { text: 'scheduled' },
  rescheduled: { text: 'rescheduled' },
  held: { text: 'held', tone: 'held' },
  released: { text: 'released' },
  blocked: { text: 'blocked', tone: 'held' },
  'would-evict': { text: 'would evict' },
  failed: { text: 'failed', tone: 'goes' },
  evicted: { text: 'evicted', tone: 'goes' },
  'already-gone': { text: 'already gone' },
  canceled: { text: 'canceled', tone: 'well' },
  unregistered: { text: 'cluster unregistered' },
};

const CONNECTIONS: Readonly<Record<ConnectionStatus, Word>> = {
  connected: { text: 'connected', tone: 'well' },
  stale: { text: 'stale', tone: 'held' },
  disconnected: { text: 'disconnected', tone: 'goes' },
  'never-connected': { text: 'never connected', tone: 'goes' },
};

/** `undefined`: not known. */
export const connectionWord = (status: ConnectionStatus | undefined): Word =>
  status === undefined ? { text: 'unknown', tone: 'held' } : CONNECTIONS[status];

/** Returns the mode of a cluster. If several apply, returns the most binding. */
export function modeOf({ mode, stop, trips = [], connection }: ClusterStatus): Word {
  if (mode === undefined) return { text: 'unknown', tone: 'held' };
  if (stop) return { text: 'stopped', tone: 'goes' };
  if (mode === 'observe') return { text: 'observe', tone: 'link' };
  if (trips.length > 0) return { text: 'guard tripped', tone: 'held' };
  return { text: 'enforce', ...(connection === 'connected' ? { tone: 'well' } : {}) };
}
