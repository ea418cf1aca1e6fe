import type { PendingStanding } from '#functions/operator/standing.ts';
import type { ClusterStatus } from '#functions/operator/status.ts';
import type { Brake } from '#shared/eviction/brake.ts';
import type { HoldTarget } from '#shared/eviction/policy.ts';
import type { Reason, TimedTaint } from '#shared/eviction/records.ts';
import { BRAKE_KINDS, keptLabel, wordsOf } from '#shared/explain/brake-words.ts';
import type { HistoryEntry } from '#shared/store/history.ts';
import { momentText, spanText } from './moments.ts';

/** What a colour says: it goes, it waits for somebody, it is well; else nothing. */
export type Tone = 'goes' | 'held' | 'well' | 'link';

interface Word {
  readonly text: string;
  readonly tone?: Tone;
}

/** A pod that this keeps. */
export function brakeWord(kind: Brake['kind']): Word {
  const { label: text, from } = wordsOf({ kind });
  return from === 'policy' ? { text } : { text, tone: 'held' };
}

export const STANDING: Readonly<Record<PendingStanding, Word>> = {
  waiting: { text: 'counting down' },
  due: { text: 'going now', tone: 'goes' },
  ...(Object.fromEntries(BRAKE_KINDS.map((kind) => [kind, brakeWord(kind)])) as Record<Brake['kind'], Word>),
  budget: { text: keptLabel('budget'), tone: 'held' },
  admission: { text: keptLabel('admission'), tone: 'held' },
  rate: { text: 'waits its turn' },
  failing: { text: 'failed, tried again', tone: 'goes' },
  'gave-up': { text: keptLabel('gave-up'), tone: 'goes' },
};

export const WHAT: Readonly<Record<HistoryEntry['what'], Word>> = {
  scheduled: { text: 'scheduled' },
  moved: { text: 'moved' },
  held: { text: 'held', tone: 'held' },
  freed: { text: 'freed' },
  blocked: { text: 'blocked', tone: 'held' },
  'would-have': { text: 'would have gone' },
  'gave-up': { text: 'given up', tone: 'goes' },
  done: { text: 'evicted', tone: 'goes' },
  gone: { text: 'gone by itself' },
  cancelled: { text: 'saved', tone: 'well' },
  unregistered: { text: 'cluster unregistered' },
};

export const taintText = ({ key, value, effect }: Pick<TimedTaint, 'key' | 'value' | 'effect'>): string =>
  `${key}${value ? `=${value}` : ''}:${effect}`;

const CANCELLED: Readonly<Record<NonNullable<HistoryEntry['cancelled']>, string>> = {
  'taint-removed': 'the taint was removed',
  'tolerated-forever': 'it tolerates the taint for ever',
  'pod-gone': 'the pod was gone',
};

/** Why a pod goes at its moment. */
export function reasonText({ taint, toleration, seconds, policy }: Reason): string {
  const name = taintText(taint);
  const by = policy === undefined ? '' : ` (${policy === 'takeover' ? 'takeover' : `policy: ${policy}`})`;
  if (toleration === undefined) return `nothing tolerates ${name}${by}`;
  return `tolerations[${toleration}] allows ${name} for ${spanText(seconds * 1_000)}${by}`;
}

/** What history tells of a pod whose name is known. */
export type Told = Omit<HistoryEntry, 'ref' | 'namespace' | 'name'>;

/** Why something happened, as far as it is known. */
export function becauseText(entry: Told, now: number): string {
  const { by, cancelled, deleted, error, movedFrom, fireAt, reasons, lateMs } = entry;
  const parts = [
    ...(deleted
      ? [`deleted by ${deleted.by === 'taint-manager' ? 'the built-in controller' : 'somebody else'}`]
      : []),
    ...(cancelled && !deleted ? [CANCELLED[cancelled]] : []),
    ...(by ? [`${entry.what === 'freed' ? 'no longer: ' : ''}${wordsOf(by).name(by)}`] : []),
    ...(error === undefined ? [] : [error]),
    ...(movedFrom === undefined
      ? []
      : [`was due ${momentText(movedFrom, now)}, now ${momentText(fireAt, now)}`]),
    ...reasons.map(reasonText),
    ...(lateMs === undefined ? [] : [`${spanText(lateMs)} after its deadline`]),
  ];
  return parts.join('; ');
}

export function targetText(target: HoldTarget): string {
  switch (target.kind) {
    case 'pod':
      return `pod ${target.namespace}/${target.name}`;
    case 'workload':
      return `${target.owner.kind} ${target.namespace}/${target.owner.name}`;
    case 'node':
      return `node ${target.node}`;
    default:
      return target satisfies never;
  }
}

/** What a cluster is under, most binding first. */
export function modeOf({ mode, stop, trips = [] }: ClusterStatus, fleetStopped: boolean): Word {
  if (mode === undefined) return { text: 'unknown', tone: 'held' };
  if (mode === 'observe') return { text: 'observe', tone: 'link' };
  if (stop || fleetStopped) return { text: 'stopped', tone: 'goes' };
  if (mode === 'paused') return { text: 'paused', tone: 'held' };
  return trips.length > 0 ? { text: 'guard holds', tone: 'held' } : { text: 'enforce', tone: 'well' };
}
