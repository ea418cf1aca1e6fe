import type { Cause } from '#shared/eviction/records.ts';
import { CANCELED, wordsOf } from '#shared/explain/gate-text.ts';
import type { HistoryEntry } from '#shared/state/history.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import { taintText } from '#shared/taints/taint.ts';
import { durationText } from '#shared/time/duration.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { Happening } from './history.ts';

interface HistoryColumn {
  readonly head: string;
  readonly of: (happening: Happening) => string;
  readonly wide?: true;
}

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
  (ofPod: (entry: HistoryEntry) => string, ofCluster: (entry: AuditEntry) => string = () => '') =>
  (happening: Happening): string =>
    happening.of === 'pod' ? ofPod(happening.entry) : ofCluster(happening.entry);

/** Columns of the history, for tables and for CSV. */
export const HISTORY_COLUMNS: readonly HistoryColumn[] = [
  { head: 'TIME', of: ({ entry }) => timeText(entry.at) },
  { head: 'CLUSTER', of: ({ entry }) => entry.cluster ?? '(all)' },
  {
    head: 'WHAT',
    of: cell(
      ({ event }) => event.replaceAll('-', ' '),
      ({ kind }) => KINDS[kind],
    ),
  },
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
  {
    head: 'CAUSE',
    of: cell(causeText, ({ message, reason }) => (reason === undefined ? message : `${message}: ${reason}`)),
  },
];

const KINDS: Readonly<Record<AuditEntry['kind'], string>> = {
  policy: 'policy',
  stop: 'stop',
  resume: 'resume',
  hold: 'hold',
  release: 'release',
  'release-guard': 'guard released',
  retry: 'retry',
  'guard-tripped': 'guard tripped',
  'guard-calm': 'guard reset',
  'cluster-added': 'cluster added',
  'cluster-changed': 'cluster changed',
  'cluster-removed': 'cluster removed',
  'takeover-applied': 'takeover applied',
  'takeover-released': 'takeover released',
};

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
