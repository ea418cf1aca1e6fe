import type { Cause } from '#shared/eviction/records.ts';
import { CANCELED, wordsOf } from '#shared/explain/gate-text.ts';
import type { HistoryEntry } from '#shared/state/history.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import { taintText } from '#shared/taints/taint.ts';
import { durationText } from '#shared/time/duration.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { Happening, Tainted } from './history.ts';

type Shown = Happening | Tainted;

export function causeTexts(causes: readonly Cause[]): readonly string[] {
  return causes.map(({ taint, since, known, toleration, seconds, policy }) => {
    const tolerated =
      toleration === undefined
        ? 'not tolerated'
        : `toleration ${toleration}: ${durationText(seconds * 1000)}`;
    const changed = policy === undefined ? '' : ` by ${policy}`;
    return `${taintText(taint)} since ${timeText(since)} (${known}), ${tolerated}${changed}`;
  });
}

const cell =
  (
    ofPod: (entry: HistoryEntry) => string,
    ofCluster: (entry: AuditEntry) => string = () => '',
    ofTaint: (entry: Tainted['entry']) => string = () => '',
  ) =>
  (shown: Shown): string => {
    if (shown.of === 'pod') return ofPod(shown.entry);
    return shown.of === 'taint' ? ofTaint(shown.entry) : ofCluster(shown.entry);
  };

/** Returns the event in a few words: "evicted", "guard released", "tainted". */
export const whatText = cell(
  ({ event }) => event.replaceAll('-', ' '),
  ({ kind }) => KINDS[kind] ?? kind.replaceAll('-', ' '),
  () => 'tainted',
);

/** Columns of the history, for tables and for CSV. */
export const HISTORY_COLUMNS: readonly { head: string; of: (shown: Shown) => string; wide?: true }[] = [
  { head: 'TIME', of: ({ entry }) => timeText(entry.at) },
  { head: 'CLUSTER', of: ({ entry }) => entry.cluster ?? '(all)' },
  { head: 'WHAT', of: whatText },
  {
    head: 'POD',
    of: cell(
      ({ namespace, pod }) => `${namespace}/${pod}`,
      ({ cluster }) => (cluster === undefined ? '(all clusters)' : ''),
    ),
  },
  { head: 'NODE', of: cell(({ node }) => node) },
  { head: 'DUE', of: cell(dueText) },
  { head: 'DELAY', of: cell(({ delayMs }) => (delayMs === undefined ? '' : durationText(delayMs))) },
  { head: 'REMOVED', of: cell(removedText) },
  { head: 'BY', of: cell(actorText, ({ actor }) => actor) },
  { head: 'UID', of: cell(({ uid }) => uid), wide: true },
  { head: 'CAUSE', of: cell(causeText, actText, taintedText) },
];

/** Other kinds are words themselves. */
const KINDS: Readonly<Partial<Record<AuditEntry['kind'], string>>> = {
  'release-guard': 'guard released',
  'guard-calm': 'guard reset',
};

function taintedText({ taint, nodes }: Tainted['entry']): string {
  return `${taint} on ${nodes === 1 ? '1 node' : `${nodes} nodes`}`;
}

function actText({ message, reason }: AuditEntry): string {
  return reason === undefined ? message : `${message}: ${reason}`;
}

function dueText({ dueAt }: HistoryEntry): string {
  return dueAt === undefined ? '' : timeText(dueAt);
}

/** Never negative, although clocks differ. */
function removedText({ at, deleted, removedAt }: HistoryEntry): string {
  if (removedAt === undefined) return '';
  return `after ${durationText(removedAt - (deleted?.at ?? at))}`;
}

function actorText({ event, deleted, by: gate }: HistoryEntry): string {
  if (deleted) {
    const who = deleted.by === 'taint-manager' ? 'built-in controller' : 'another client';
    return `${who}, ${timeText(deleted.at)}`;
  }
  if (gate) return wordsOf(gate).name(gate);
  return event === 'evicted' ? 'taintward' : '';
}

function causeText({ causes, cancelReason, deleted, error, previousDueAt }: HistoryEntry): string {
  return [
    ...(cancelReason && !deleted ? [CANCELED[cancelReason]] : []),
    ...(error ? [error] : []),
    ...(previousDueAt === undefined ? [] : [`previously due ${timeText(previousDueAt)}`]),
    ...causeTexts(causes),
  ].join('; ');
}

/** Returns everything known about an entry, except its time. */
export const whyText = cell(
  (entry) => {
    const actor = entry.event === 'evicted' && !entry.deleted ? '' : actorText(entry);
    const late = entry.delayMs === undefined ? '' : `${durationText(entry.delayMs)} after the deadline`;
    return [actor, causeText(entry), late].filter(Boolean).join('; ');
  },
  (entry) => `${entry.actor} ${actText(entry)}`,
  taintedText,
);

/** Returns the history as CSV, with the columns of the command line. */
export const historyCsv = (all: readonly Shown[]): string =>
  [
    HISTORY_COLUMNS.map(({ head }) => head),
    ...all.map((shown) => HISTORY_COLUMNS.map((column) => column.of(shown))),
  ]
    .map((cells) => `${cells.map(csvCell).join()}\r\n`)
    .join('');

/** A spreadsheet would run a text that others chose, if it began like a formula. */
const csvCell = (text: string): string => `"${text.replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;
